"""Tensors that follow from sizes alone, such as masks: made once for each device, and no part of a model's state.

As buffers they would be empty in a model that was built on the meta device and then filled with weights, and a stack of
models could not tell them from running averages. Made in every forward they would cost a GPU launches.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["constant"]


def constant(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`make(*sizes, device=...)` for the device of the tensor `like`; real numbers in its precision.

    >>> steps = constant(torch.arange)
    >>> steps(3, like=torch.zeros(1)), steps(3, like=torch.ones(2)) is steps(3, like=torch.zeros(1))
    (tensor([0, 1, 2]), True)
    """
    made: dict[tuple[object, ...], Tensor] = {}

    def anew(*sizes: int, like: Tensor) -> Tensor:
        values = make(*sizes, device=like.device)
        return values.to(like.dtype) if values.is_floating_point() else values

    def ask(*sizes: int, like: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or type(like) is not Tensor:  # a program or a dry run has tensors of its own
            return anew(*sizes, like=like)
        key = (*sizes, like.device, like.dtype)
        if key not in made:
            with torch.inference_mode(False):  # a tensor of inference mode would be of no use in training
                made[key] = anew(*sizes, like=like)
        return made[key]

    return ask
