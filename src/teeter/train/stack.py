"""K models of one shape trained as one program: hundreds of small models at the price of a few.

All weights lie in one tensor (K, parameters), of which every parameter is a view, so that a step is a forward and a
backward of batched products and one update of one tensor, in which each model has its own rate and weight decay. Model
k gets what it would get alone: its own initial weights, batches and hyperparameters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.forward import unfused
from teeter.models import Encoder
from teeter.train.stacked_encoder import stacked_encoder

__all__ = ["Stack"]

Weights = dict[str, Tensor]


class Stack:
    """The weights of K models of one shape, and their answers.

    >>> models = [nn.Linear(3, 2) for _ in range(4)]
    >>> stack = Stack(models)
    >>> stack.flat.shape, stack(torch.ones(4, 5, 3)).shape
    (torch.Size([4, 8]), torch.Size([4, 5, 2]))
    >>> torch.allclose(stack(torch.ones(4, 5, 3))[2], models[2](torch.ones(5, 3)))
    True
    """

    def __init__(self, models: Sequence[nn.Module], device: torch.device | str | None = None) -> None:
        shapes = [_shape(model) for model in models]
        if not models or any(shape != shapes[0] for shape in shapes):
            raise InputError("a stack holds models of one kind and shape, at least one")
        if any(True for _ in models[0].buffers()):
            raise InputError(f"{type(models[0]).__name__} keeps running averages or other buffers: train it alone")
        place = next(models[0].parameters()).device if device is None else device
        self.shape = copy.deepcopy(models[0]).to(place)
        rows = [torch.cat([part.detach().reshape(-1) for part in model.parameters()]) for model in models]
        self.flat = torch.stack(rows).to(place)
        self.weights: Weights = {}
        end = 0
        for name, part in models[0].named_parameters():
            start, end = end, end + part.numel()
            self.weights[name] = self.flat[:, start:end].view(-1, *part.shape).requires_grad_()

    def __len__(self) -> int:
        return len(self.flat)

    def __call__(self, inputs: Any) -> Tensor:
        """Each model's answers to its own inputs: (K, batch, ...)."""
        return answers(self.shape, self.weights, inputs)

    def model(self, k: int) -> nn.Module:
        """A copy of model k as it is now."""
        alone = copy.deepcopy(self.shape)
        for name, part in alone.named_parameters():
            part.data.copy_(self.weights[name][k])
        return alone


def _shape(model: nn.Module) -> tuple[Any, ...]:
    return repr(model), [(name, part.shape, part.dtype) for name, part in model.named_parameters()]


def answers(shape: nn.Module, weights: Weights, inputs: Any) -> Tensor:
    """The fast program where there is one for the kind of model, else the plain one."""
    if type(shape) is Encoder:
        return stacked_encoder(shape, weights, inputs)
    return plain_answers(shape, weights, inputs)


def plain_answers(shape: nn.Module, weights: Weights, inputs: Any) -> Tensor:
    """Any model without buffers, batched over its weights by torch: what every fast program is tested against."""

    def alone(own: Weights, batch: Any) -> Tensor:
        return torch.func.functional_call(shape, own, (batch,))

    with unfused():
        return torch.vmap(alone, randomness="different")(weights, inputs)


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": lambda outputs, targets: (outputs - targets).square().flatten(1).mean(1),
    "cross-entropy": lambda outputs, targets: (
        F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none").view(len(outputs), -1).mean(1)
    ),
}


def gradient(shape: nn.Module, weights: Weights, inputs: Any, targets: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """Each model's loss, (K,), and its gradient, (K, parameters): the models do not touch each other, so that the
    gradient of the sum holds them all."""
    losses = LOSSES[loss](answers(shape, weights, inputs), targets)
    parts = torch.autograd.grad(losses.sum(), list(weights.values()), allow_unused=True)
    rows = [
        torch.zeros_like(weight) if part is None else part for part, weight in zip(parts, weights.values(), strict=True)
    ]
    return losses.detach(), torch.cat([row.reshape(len(row), -1) for row in rows], 1)
