"""A batch is a tensor, or a mapping of tensors as tokenizers give it; the first axis counts the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from teeter.errors import InputError

__all__ = ["Inputs", "count", "device_of", "field", "replace", "take"]

Inputs: TypeAlias = Tensor | Mapping[str, Tensor]


def count(inputs: Inputs) -> int:
    """How many inputs there are.

    >>> import torch
    >>> count({"input_ids": torch.zeros(3, 7), "attention_mask": torch.ones(3, 7)})
    3
    """
    sizes = {len(part) for part in ([inputs] if isinstance(inputs, Tensor) else inputs.values())}
    if len(sizes) != 1 or 0 in sizes:
        raise InputError(
            f"inputs hold at least one input, the same number in every tensor, got {sorted(sizes) or 'none'}"
        )
    return sizes.pop()


def device_of(inputs: Inputs) -> torch.device:
    """Where the inputs are."""
    return (inputs if isinstance(inputs, Tensor) else next(iter(inputs.values()))).device


def take(inputs: Inputs, index: Tensor) -> Inputs:
    """The inputs at these places."""
    if isinstance(inputs, Tensor):
        return inputs[index.to(inputs.device)]
    return {name: part[index.to(part.device)] for name, part in inputs.items()}


def field(inputs: Inputs, name: str | None) -> Tensor:
    """The tensor that a perturbation nudges: the inputs themselves, or the named one of a mapping."""
    if isinstance(inputs, Tensor):
        return inputs
    if name is None or name not in inputs:
        raise InputError(f"inputs are a mapping of {', '.join(inputs)}: say which of them to perturb, got {name!r}")
    return inputs[name]


def replace(inputs: Inputs, name: str | None, value: Tensor) -> Inputs:
    """The inputs with that tensor exchanged."""
    return value if isinstance(inputs, Tensor) else {**inputs, name or "": value}
