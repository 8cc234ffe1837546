"""Some of many, at random and the same for the same seed."""

from __future__ import annotations

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError

__all__ = ["subset"]


def subset(n: int, limit: int | None, seed: int = 0) -> Tensor:
    """Which of n are taken: random ones, since files tend to be sorted by class, but in their own order.

    >>> subset(10, 3), subset(3, None)
    (tensor([0, 3, 9]), tensor([0, 1, 2]))
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is at least 1, got {limit}")
    if limit is None or limit >= n:
        return torch.arange(n)
    return counter.bits(seed, torch.arange(n)).argsort()[:limit].sort().values
