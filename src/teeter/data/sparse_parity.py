"""Sparse parity, the task on which V Appendix A.6 watches sensitivity rise before accuracy: d = 40 bits, 4 of which
matter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from teeter import counter, cube
from teeter.data.bits import labelled_bits
from teeter.errors import InputError, UnknownName

__all__ = ["SparseParity"]

_PARTS = {"train": 0, "test": 1}


@dataclass(frozen=True)
class SparseParity:
    """x uniform on {±1}^d and y the product of x_i over i in S, |S| = p. The paper does not say which S: here the seed
    draws it. The average sensitivity of the target is p, so that of V's Definition 4.1 is p / d = 0.1.

    >>> task = SparseParity(seed=3)
    >>> x, y = task.examples(1000)
    >>> x.shape, torch.equal(y, x[:, list(task.support)].prod(-1))
    (torch.Size([1000, 40]), True)
    """

    d: int = 40
    p: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.p <= self.d:
            raise InputError(f"p of d bits matter, 0 < p <= d, got p = {self.p}, d = {self.d}")

    @property
    def support(self) -> tuple[int, ...]:
        """S, in ascending order, counted from 0."""
        return tuple(sorted(counter.bits(self.seed, torch.arange(self.d)).argsort()[: self.p].tolist()))

    def examples(
        self,
        count: int,
        part: str = "train",
        *,
        start: int = 0,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> tuple[Tensor, Tensor]:
        """The first `count` strings of a part and their labels ±1; the parts are drawn independently of each other."""
        if part not in _PARTS:
            raise UnknownName("part", part, _PARTS)
        f = cube.sparse_parity(self.support)
        more = {"step": _PARTS[part], "start": start}
        return labelled_bits(f, self.d, count, seed=self.seed, device=device, dtype=dtype, **more)
