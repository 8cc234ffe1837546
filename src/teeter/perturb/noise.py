"""The random numbers of one batch of nudges, and what a perturbation is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError
from teeter.perturb.inputs import Inputs

__all__ = ["Noise", "Perturbation", "check_sigma2", "root_mean_square"]


@dataclass(frozen=True)
class Noise:
    """Row r of what it draws is a pure function of (seed, input[r], token[r], draw[r]) and the place in the row.

    >>> one = Noise(0, torch.tensor([5]), torch.tensor([2]), torch.tensor([0]))
    >>> two = Noise(0, torch.tensor([4, 5]), torch.tensor([2, 2]), torch.tensor([0, 0]))
    >>> torch.equal(one.normal(3)[0], two.normal(3)[1])
    True
    """

    seed: int
    input: Tensor
    token: Tensor
    draw: Tensor

    def normal(self, *shape: int) -> Tensor:
        """Standard normal, float32, of shape (rows, *shape)."""
        return counter.normal(*self._places(shape)).float().reshape(-1, *shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform in [0, 1), float64, of shape (rows, *shape)."""
        return counter.uniform(*self._places(shape)).reshape(-1, *shape)

    def integers(self, high: int, *shape: int) -> Tensor:
        """Uniform on 0 .. high-1, of shape (rows, *shape)."""
        return counter.integers(high, *self._places(shape)).reshape(-1, *shape)

    def _places(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        place = torch.arange(math.prod(shape), device=self.input.device)
        return self.seed, *(part.unsqueeze(-1) for part in (self.input, self.token, self.draw)), place


class Perturbation(Protocol):
    """Two methods make a perturbation; a class of one's own needs nothing else.

    >>> class Negate:
    ...     def positions(self, inputs):
    ...         return torch.ones(inputs.shape[:2], dtype=torch.bool)
    ...     def run(self, model, inputs, noise):
    ...         nudged = inputs.clone()
    ...         rows = torch.arange(len(inputs))
    ...         nudged[rows, noise.token] *= -1
    ...         return model(nudged)
    """

    def positions(self, inputs: Inputs) -> Tensor:
        """(inputs, tokens): True where there is a token to nudge, False at padding."""
        ...

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        """The model's output with token noise.token[r] of row r nudged."""
        ...


def check_sigma2(sigma2: float) -> float:
    """The standard deviation of a variance that can be one."""
    if not (sigma2 >= 0 and math.isfinite(sigma2)):
        raise InputError(f"sigma2 is a variance and at least 0, got {sigma2}")
    return math.sqrt(sigma2)


def root_mean_square(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The size of values over these axes, which stay as axes of one.

    Training through it, a token of zeros has a gradient of zero; that of a plain root would be infinite there.

    >>> token = torch.zeros(2, 3, requires_grad=True)
    >>> root_mean_square(token, (1,)).sum().backward()
    >>> token.grad
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    mean = values.float().square().mean(axes, keepdim=True)
    there = mean > 0
    return (torch.where(there, mean, 1).sqrt() * there).to(values)
