"""The random numbers of one corruption at one severity."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from teeter import counter

__all__ = ["Draws"]


@dataclass(frozen=True)
class Draws:
    """Row r of what it draws is a pure function of (seed, corruption, severity, image[r]), what it is drawn for, and
    the place in the row.

    >>> one = Draws(0, "snow", 1, torch.tensor([7]))
    >>> two = Draws(0, "snow", 1, torch.tensor([9, 7]))
    >>> torch.equal(one.uniform(0, 32, 32)[0], two.uniform(0, 32, 32)[1])
    True
    """

    seed: int
    corruption: str
    severity: int
    image: Tensor

    def normal(self, purpose: int, *shape: int) -> Tensor:
        """Standard normal, float64, of shape (images, *shape)."""
        return counter.normal(*self._places(purpose, shape)).reshape(-1, *shape)

    def uniform(self, purpose: int, *shape: int) -> Tensor:
        """Uniform in [0, 1), float64, of shape (images, *shape)."""
        return counter.uniform(*self._places(purpose, shape)).reshape(-1, *shape)

    def integers(self, high: int, purpose: int, *shape: int) -> Tensor:
        """Uniform on 0 .. high-1, of shape (images, *shape)."""
        return counter.integers(high, *self._places(purpose, shape)).reshape(-1, *shape)

    def _places(self, purpose: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
        name = zlib.crc32(self.corruption.encode())  # not its place in a list, which may change
        place = torch.arange(math.prod(shape))
        return self.seed, name, self.severity, purpose, self.image.unsqueeze(-1), place
