"""Flip one bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, field, replace
from teeter.perturb.noise import Noise

__all__ = ["BitFlip"]


@dataclass(frozen=True)
class BitFlip:
    """x_i to the other of two values; by default -x_i on {±1} (H Def. 3). There is no randomness in it.

    >>> flip = BitFlip(values=(0, 1))
    >>> at = Noise(0, torch.tensor([0]), torch.tensor([2]), torch.tensor([0]))
    >>> flip.run(lambda x: x, torch.tensor([[0, 1, 1]]), at)
    tensor([[0, 1, 0]])
    """

    values: tuple[int, int] = (-1, 1)
    field: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple | list) or len(self.values) != 2 or self.values[0] == self.values[1]:
            raise InputError(f"a bit has two values, one unlike the other, got {self.values!r}")

    def positions(self, inputs: Inputs) -> Tensor:
        bits = field(inputs, self.field)
        if bits.ndim != 2 or bits.dtype == torch.bool:
            raise InputError(f"BitFlip takes numbers of shape (inputs, bits), got {bits.dtype} {tuple(bits.shape)}")
        low, high = self.values
        if not bool(((bits == low) | (bits == high)).all()):
            raise InputError(f"BitFlip takes inputs of {low} and {high}: name your two values in BitFlip(values=...)")
        return torch.ones_like(bits, dtype=torch.bool)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        bits = field(inputs, self.field).clone()
        rows = torch.arange(len(bits), device=bits.device)
        token = noise.token.to(bits.device)
        bits[rows, token] = sum(self.values) - bits[rows, token]
        return model(replace(inputs, self.field, bits))
