"""Tables: a function on n bits as a tensor of 2^n values.

Bit i of an index (least significant first) is set where x_i = -1. Tables may be stacked: every function in
`cube` that returns tensors reads the last axis and keeps the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from teeter.cube.memory import require
from teeter.errors import InputError, TooLarge

__all__ = ["block_bits", "blocks", "checked", "dimension", "is_signed", "points", "truth_table"]


def points(
    n: int,
    start: int = 0,
    stop: int | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Inputs number `start` to `stop` of {±1}^n, one a row.

    >>> points(2, dtype=torch.int8)
    tensor([[ 1,  1],
            [-1,  1],
            [ 1, -1],
            [-1, -1]], dtype=torch.int8)
    """
    n = _bits(n)
    if stop is None:  # whoever asks for a few has thought of it
        require((16 * n + 8) * max((1 << n) - start, 0), f"all points of n = {n} bits", device)
    index = torch.arange(start, 1 << n if stop is None else stop, device=device)
    return (1 - 2 * ((index.unsqueeze(-1) >> torch.arange(n, device=device)) & 1)).to(dtype)


def truth_table(
    f: Callable[[Tensor], Tensor],
    n: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    chunk: int = 1 << 16,
) -> Tensor:
    """All 2^n values of f, each input evaluated once, `chunk` inputs a call.

    f takes a (batch, n) tensor of ±1 and returns (batch,) or (batch, 1). A torch module works as it is: it is given
    inputs in the type and on the device of its parameters, and evaluated without dropout and the like, whatever mode
    it is in. The table is float64 by default, and of the module's type where that is float32.

    >>> from teeter import cube
    >>> truth_table(cube.majority, 3)
    tensor([ 1.,  1.,  1., -1.,  1., -1., -1., -1.], dtype=torch.float64)
    """
    n = _bits(n)
    given = dtype
    if isinstance(f, torch.nn.Module):
        weight = next((p for p in f.parameters() if p.is_floating_point()), None)
        if weight is not None:
            given, device = weight.dtype, weight.device if device is None else device
            dtype = torch.float32 if dtype is None and given == torch.float32 else dtype
    dtype = torch.float64 if dtype is None else dtype
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"a table is float32 or float64, got {dtype}")
    if chunk < 1:
        raise InputError(f"chunk must be at least 1, got {chunk}")
    device = torch.device("cpu" if device is None else device)
    require(dtype.itemsize << n, f"a table of n = {n} bits", device)
    table = torch.empty(1 << n, dtype=dtype, device=device)
    with torch.no_grad(), _at_rest(f):
        for start in range(0, len(table), chunk):
            stop = min(start + chunk, len(table))
            values = f(points(n, start, stop, dtype=given or dtype, device=device))
            table[start:stop] = _column(values, stop - start)
    return checked(table)


def _bits(n: int) -> int:
    try:
        bits = operator.index(n)
    except TypeError:
        raise InputError(f"the number of bits is a whole number, got n = {n!r}") from None
    if bits < 0:
        raise InputError(f"the number of bits is at least 0, got n = {n}")
    if bits > 60:
        raise TooLarge(f"n = {n} bits have 2^{n} inputs, more than any memory holds")
    return bits


@contextmanager
def _at_rest(f: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """A module in evaluation mode, and afterwards each of its parts in the mode it was in."""
    modes = {part: part.training for part in f.modules()} if isinstance(f, torch.nn.Module) else {}
    try:
        for part in modes:
            part.training = False
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _column(values: Tensor, rows: int) -> Tensor:
    if not isinstance(values, Tensor) or values.shape not in ((rows,), (rows, 1)):
        shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise InputError(f"f was given {rows} inputs and must return one number for each, got {shape}")
    return real(values).reshape(rows)


def dimension(table: Tensor) -> int:
    """n, for a table of 2^n values."""
    size = table.shape[-1] if table.ndim else 0
    if size < 1 or size & (size - 1):
        raise InputError(f"a table holds 2^n values along its last axis, got shape {tuple(table.shape)}")
    return size.bit_length() - 1


def checked(table: Tensor) -> Tensor:
    """The table as contiguous float32 or float64, or a clear error. Integers become float64."""
    if not isinstance(table, Tensor):
        raise InputError(f"a table is a torch tensor, got {type(table).__name__}: torch.as_tensor makes one")
    n = dimension(real(table))
    if table.dtype not in (torch.float32, torch.float64):
        table = table.double()
    # A sum is NaN or infinite if any entry is; only then is it worth looking at each of them.
    if not torch.isfinite(table.sum()) and not torch.isfinite(table).all():
        where = int((~torch.isfinite(table)).flatten().nonzero()[0, 0]) % (1 << n)
        raise InputError(f"a table holds finite numbers, got NaN or infinity (first at index {where})")
    return table.detach().contiguous()


def real(values: Tensor) -> Tensor:
    """The values, if they are real numbers."""
    if values.dtype == torch.bool or values.is_complex():
        raise InputError(f"a function on the cube has real values, got {values.dtype}: write true as -1, false as +1")
    return values


def block_bits(device: torch.device) -> int:
    """log2 of how many entries to work on at a time: on a CPU what its caches hold (4 to 8 MB; smaller blocks gain
    nothing on an idle machine and lose much on a busy one, where threads wait for each other at every step), elsewhere
    enough to keep the device busy without doubling the memory of a large table."""
    return 20 if device.type == "cpu" else 24


def blocks(x: Tensor) -> tuple[Tensor, ...]:
    """x, flat, cut into stretches of 2^block_bits entries."""
    return x.view(-1).split(1 << block_bits(x.device))


def is_signed(table: Tensor) -> bool:
    """Whether every value is +1 or -1."""
    cut = blocks(table.contiguous())
    ones = torch.ones_like(cut[0])
    return all(torch.equal(block.abs(), ones[: len(block)]) for block in cut)


def single(table: Tensor) -> Tensor:
    """The checked table of one function, for measures that are one number."""
    values = checked(table)
    if values.ndim != 1:
        raise InputError(f"one number comes from one table of shape (2^n,), got shape {tuple(values.shape)}")
    return values
