"""The Walsh-Hadamard transform: the coefficients of f in the basis of parities.

f = sum over S of f^(S) chi_S with chi_S(x) = prod_{i in S} x_i and f^(S) = E_x f(x) chi_S(x). Index bit i of a
coefficient is set where i is in S.

Two ways to the same numbers. `butterflies_` is the textbook algorithm, n passes over memory. `kronecker_` takes
four bits at a time as a product with the 16 x 16 Hadamard matrix, on blocks that fit the cache and are brought
there once for all of the low bits: the extra arithmetic is free beside the memory traffic it saves. A CPU runs the
second. CUDA runs the first: its passes are limited by memory alone, and no user's setting of reduced-precision
matrix products can touch them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from teeter.cube.memory import require
from teeter.cube.table import block_bits, blocks, checked, dimension
from teeter.errors import InputError

__all__ = ["inverse_walsh", "walsh", "walsh_"]

_BITS = 4  # bits taken by one matrix product: 2^4 = 16 was fastest among 3..6 in float32 and float64


def walsh(table: Tensor) -> Tensor:
    """Walsh coefficients f^(S) = E_x f(x) chi_S(x) of each table along the last axis.

    >>> from teeter import cube
    >>> walsh(cube.truth_table(cube.majority, 3))
    tensor([ 0.0000,  0.5000,  0.5000,  0.0000,  0.5000,  0.0000,  0.0000, -0.5000],
           dtype=torch.float64)
    """
    given = checked(table)
    require(given.numel() * given.itemsize, f"the spectrum of n = {dimension(given)} bits", given.device)
    return _transform_(given.clone(), scale=True)


def walsh_(table: Tensor) -> Tensor:
    """`walsh` that overwrites its argument, for tables that fit into memory once but not twice."""
    if checked(table).data_ptr() != table.data_ptr():
        raise InputError(
            f"walsh_ overwrites a contiguous float32 or float64 table, got {table.dtype}: use walsh, which copies"
        )
    return _transform_(table.detach(), scale=True)


def inverse_walsh(spectrum: Tensor) -> Tensor:
    """The table of f from its coefficients: f(x) = sum over S of f^(S) chi_S(x)."""
    given = checked(spectrum)
    require(given.numel() * given.itemsize, f"the table of n = {dimension(given)} bits", given.device)
    return _transform_(given.clone(), scale=False)


def _transform_(x: Tensor, scale: bool) -> Tensor:
    n = dimension(x)
    factor = 2.0**-n if scale else 1.0  # a power of two: multiplying by it is exact
    if x.device.type != "cpu":
        return butterflies_(x, n).mul_(factor)
    with torch.autocast("cpu", enabled=False):  # a user's choice for models, not for this
        return kronecker_(x, n, factor)


def butterflies_(x: Tensor, n: int) -> Tensor:
    """(a, b) to (a + b, a - b) for every pair that differs in bit i, for i = 0 .. n-1."""
    for i in range(n):
        pairs = x.view(-1, 2, 1 << i)
        difference = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = difference
    return x


def kronecker_(x: Tensor, n: int, factor: float = 1.0) -> Tensor:
    """The same, times `factor`, by H_{2^n} = H_16 x ... x H_16, one matrix at a time."""
    near, far = groups(n, x.device)
    if not near:  # n = 0
        return x.mul_(factor)
    scaled = [hadamard(width, x.dtype) * (factor if low == 0 else 1.0) for low, width in near]
    for block in blocks(x):
        for (low, width), matrix in zip(near, scaled, strict=True):
            tile = rows(block, low, width)
            tile.copy_(product(matrix, tile, low))
    for low, width in far:
        for tile in strips(x, low, width):
            tile.copy_(product(hadamard(width, x.dtype), tile, low))
    return x


@cache
def hadamard(width: int, dtype: torch.dtype) -> Tensor:
    """The 2^width Hadamard matrix (Sylvester)."""
    matrix = torch.ones(1, 1, dtype=dtype)
    for _ in range(width):
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def groups(n: int, device: torch.device) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The n bits in groups (low, width) of at most four: those within a block, and those across blocks.

    >>> groups(22, torch.device("cpu"))
    ([(0, 4), (4, 4), (8, 4), (12, 4), (16, 4)], [(20, 2)])
    """
    every = [(low, min(_BITS, n - low)) for low in range(0, n, _BITS)]
    near = [(low, width) for low, width in every if low + width <= block_bits(device)]
    return near, every[len(near) :]


def rows(block: Tensor, low: int, width: int) -> Tensor:
    """The block with the bits low .. low+width-1 along the second-last axis, or the last if low = 0."""
    return block.view(-1, 1 << width) if low == 0 else block.view(-1, 1 << width, 1 << low)


def strips(x: Tensor, low: int, width: int) -> Iterator[Tensor]:
    """Views of the size of a block that cover x, each with the bits low .. low+width-1 along its first axis."""
    for part in x.view(-1, 1 << width, 1 << low):
        yield from part.split(1 << (block_bits(x.device) - width), dim=-1)


def product(matrix: Tensor, tile: Tensor, low: int) -> Tensor:
    """A symmetric matrix applied along the axis that `rows` or `strips` laid out."""
    return tile @ matrix if low == 0 else matrix @ tile


def add_product_(target: Tensor, matrix: Tensor, tile: Tensor, low: int) -> Tensor:
    """target += product(matrix, tile, low), without the memory in between."""
    if low == 0:
        return target.addmm_(tile, matrix)
    if tile.ndim == 2:
        return target.addmm_(matrix, tile)
    return target.baddbmm_(matrix.expand(len(tile), *matrix.shape), tile)
