"""The weights of K models of one shape in one tensor, and their answers to K batches as one program."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.forward import unfused
from teeter.models import Encoder
from teeter.train.stacked_encoder import stacked_encoder

__all__ = ["Stack", "plain_answers", "shape_of"]

Weights = dict[str, Tensor]


class Stack:
    """K models of one shape: `flat` is (K, parameters), and `weights` are its views by name, each (K, ...).

    >>> models = [nn.Linear(3, 2) for _ in range(4)]
    >>> stack = Stack(models)
    >>> stack.flat.shape, stack(torch.ones(4, 5, 3)).shape
    (torch.Size([4, 8]), torch.Size([4, 5, 2]))
    >>> torch.allclose(stack(torch.ones(4, 5, 3))[2], models[2](torch.ones(5, 3)))
    True
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        if not models:
            raise InputError("a stack holds at least one model, got none")
        for model in models[1:]:
            if shape_of(model) != shape_of(models[0]):
                raise InputError(f"a stack holds models of one shape, got\n{models[0]}\nand\n{model}")
        if any(True for _ in models[0].buffers()):
            raise InputError(f"{type(models[0]).__name__} has buffers, such as running averages: train it alone")
        self.shape = copy.deepcopy(models[0])
        rows = [torch.cat([part.detach().reshape(-1) for part in model.parameters()]) for model in models]
        self.flat = torch.stack(rows)
        self.weights: Weights = {}
        end = 0
        for name, part in models[0].named_parameters():
            start, end = end, end + part.numel()
            self.weights[name] = self.flat[:, start:end].view(-1, *part.shape).requires_grad_()

    def __len__(self) -> int:
        return len(self.flat)

    def __call__(self, inputs: Any) -> Tensor:
        """Each model's answers to its own inputs: (K, batch, ...)."""
        if type(self.shape) is Encoder:
            return stacked_encoder(self.shape, self.weights, inputs)
        return plain_answers(self.shape, self.weights, inputs)

    def put(self, k: int, model: nn.Module) -> nn.Module:
        """Fill a model of the same shape with the weights of model k as they are now."""
        for name, part in model.named_parameters():
            part.data.copy_(self.weights[name][k])
        return model


def shape_of(model: nn.Module) -> tuple[Any, ...]:
    """What models have in common that can be stacked: all but the values of their weights.

    Not every attribute is printed with a module: heads, for one, change no shape and yet the function.
    """
    parts = [
        (name, type(part), tuple(sorted((key, value) for key, value in vars(part).items() if _says(key, value))))
        for name, part in model.named_modules()
    ]
    weights = [(name, part.shape, part.dtype, part.device) for name, part in model.named_parameters()]
    return tuple(parts), tuple(weights)


def _says(name: str, value: Any) -> bool:
    plain = value is None or isinstance(value, bool | int | float | str)
    plain = plain or (isinstance(value, tuple) and all(isinstance(each, int | float | str) for each in value))
    return plain and name != "training" and not name.startswith("_")


def plain_answers(shape: nn.Module, weights: Weights, inputs: Any) -> Tensor:
    """Any model without buffers, batched over its weights by torch: what every faster program is tested against."""

    def alone(own: Weights, batch: Any) -> Tensor:
        return torch.func.functional_call(shape, own, (batch,))

    with unfused():
        return torch.vmap(alone, randomness="different")(weights, inputs)
