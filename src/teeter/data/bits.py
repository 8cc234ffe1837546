"""Bit strings and what a function on the cube says of them, drawn on the device that trains on them.

Row i of step t is a pure function of (seed, t, i): the same for every batch size, order, shard and device.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError

__all__ = ["bit_strings", "labelled_bits"]


def bit_strings(
    n: int,
    count: int,
    *,
    seed: int,
    step: int = 0,
    start: int = 0,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Rows `start` to `start + count` of a step: uniform strings of n bits ±1, as a (count, n) tensor (H section 5).

    Each hash of (seed, step, row, word) gives 64 bits of a string.

    >>> strings = bit_strings(5, 4, seed=0)
    >>> torch.equal(bit_strings(5, 2, seed=0, start=1), strings[1:3])
    True
    """
    if n < 1 or count < 0:
        raise InputError(f"strings have at least one bit and there are none or more of them, got n = {n}, {count}")
    if not (dtype.is_floating_point or dtype.is_signed):
        raise InputError(f"bits are +1 and -1, which {dtype} does not hold")
    row = torch.arange(start, start + count, device=device).unsqueeze(-1)
    word = torch.arange((n + 63) // 64, device=device)
    place = torch.arange(64, device=device)
    hashes = counter.bits(seed, step, row, word)  # (count, words)
    ones = (hashes.unsqueeze(-1) >> place) & 1
    return (1 - 2 * ones.flatten(1)[:, :n]).to(dtype)


def labelled_bits(
    function: Callable[[Tensor], Tensor],
    n: int,
    count: int,
    *,
    seed: int,
    step: int = 0,
    start: int = 0,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Strings and the function's values on them: any function of `teeter.cube`, or another that takes such rows.

    >>> from teeter import cube
    >>> x, y = labelled_bits(cube.parity, 6, 1000, seed=0)
    >>> torch.equal(y, x.prod(-1))
    True
    """
    x = bit_strings(n, count, seed=seed, step=step, start=start, device=device, dtype=dtype)
    return x, function(x)
