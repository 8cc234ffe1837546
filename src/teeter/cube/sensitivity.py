"""Sensitivity on the cube, exactly: at every input, on average, at most.

Definition 3 of H: s(x, f) = 1/4 sum_i |f(x) - f(x^i)|^2 where x^i is x with bit i flipped, and as_n(f) its mean
over all x. For f with values ±1, s(x, f) counts the bits whose flip changes the answer.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from teeter.cube.memory import require
from teeter.cube.table import blocks, checked, dimension, is_signed, single
from teeter.cube.transform import add_product_, groups, rows, strips
from teeter.errors import InputError

__all__ = ["average_sensitivity", "flip_counts", "local_sensitivity", "max_sensitivity"]


def local_sensitivity(table: Tensor) -> Tensor:
    """s(x, f) at every input x (H Eq. 6), in the order of the table.

    >>> from teeter import cube
    >>> local_sensitivity(cube.truth_table(cube.majority, 3))
    tensor([0., 2., 2., 2., 2., 2., 2., 0.], dtype=torch.float64)
    """
    values = checked(table)
    return local_sensitivity_of(values, is_signed(values))


def local_sensitivity_of(table: Tensor, signed: bool) -> Tensor:
    """`local_sensitivity` of a checked table known to be ±1 or not."""
    tables = 1.5 if signed else 5.5  # at the worst moment, beside the table itself
    require(int(tables * table.numel() * table.itemsize), f"sensitivity at 2^{dimension(table)} inputs", table.device)
    return _flips(table) if signed else _quarter_squares(table)


def flip_counts(table: Tensor) -> Tensor:
    """How many single-bit flips change the answer, at every input; f must have values ±1."""
    values = checked(table)
    if not is_signed(values):
        raise InputError("flips are counted for functions with values +1 and -1: use local_sensitivity for others")
    return local_sensitivity_of(values, signed=True)


def average_sensitivity(table: Tensor) -> float:
    """as_n(f), the mean of s(x, f) over all inputs (H Eq. 7); the total influence of f.

    >>> from teeter import cube
    >>> average_sensitivity(cube.truth_table(cube.parity, 7))
    7.0
    """
    return float(local_sensitivity(single(table)).mean(dtype=torch.float64))


def max_sensitivity(table: Tensor) -> float:
    """The largest s(x, f) over all inputs."""
    return float(local_sensitivity(single(table)).max())


def _flips(table: Tensor) -> Tensor:
    # For values ±1, f(x) sum_i f(x^i) = n - 2 s(x, f). The sums are small integers, exact in float32 and,
    # on CUDA, under any setting of reduced-precision matrix products.
    n = dimension(table)
    near, far = groups(n, table.device)
    result = torch.empty_like(table)
    for source, target in zip(blocks(table), blocks(result), strict=True):
        values = source.float()
        neighbours = torch.zeros_like(values)
        for low, width in near:
            add_product_(rows(neighbours, low, width), _adjacency(width, values), rows(values, low, width), low)
        target.copy_(neighbours)
    for low, width in far:
        for source, target in zip(strips(table, low, width), strips(result, low, width), strict=True):
            add_product_(target, _adjacency(width, table), source, low)
    return torch.addcmul(table.new_tensor(n / 2), result, table, value=-0.5, out=result)


def _adjacency(width: int, like: Tensor) -> Tensor:
    return _adjacency_matrix(width, like.dtype, like.device)


@cache
def _adjacency_matrix(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 where two of the 2^width indices differ in exactly one bit."""
    index = torch.arange(1 << width, device=device)
    apart = index.unsqueeze(0) ^ index.unsqueeze(1)
    return ((apart != 0) & (apart & (apart - 1) == 0)).to(dtype)


def _quarter_squares(table: Tensor) -> Tensor:
    # Differences first and squares after: expanding the square would cancel for functions far from zero.
    n = dimension(table)
    low = min(n // 2, 6)
    result = _along_rows(table.view(-1, 1 << (n - low), 1 << low))
    if low:  # neighbours in the low bits lie side by side: transposed, every operation runs over long rows
        turned = table.view(-1, 1 << low).T.contiguous()
        result += _along_rows(turned.unsqueeze(0)).squeeze(0).T.reshape(result.shape)
    return result.mul_(0.25).view(table.shape)


def _along_rows(values: Tensor) -> Tensor:
    """Sum over the bits of the second axis of the squared differences, for (batch, 2^b, width)."""
    batch, size, width = values.shape
    result = torch.zeros_like(values)
    for i in range(size.bit_length() - 1):
        pairs = values.view(batch, -1, 2, 1 << i, width)
        square = (pairs[:, :, 0] - pairs[:, :, 1]).square_()
        sums = result.view(batch, -1, 2, 1 << i, width)
        sums[:, :, 0] += square
        sums[:, :, 1] += square
    return result
