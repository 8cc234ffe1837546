"""What every measure is given is looked at once, here, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, count

__all__ = ["admit", "check_mode", "check_perturbation"]


def admit(model: Any, inputs: Any, *, draws: int = 1, seed: int = 0) -> Inputs:
    """The inputs as tensors, those of numpy too, or an error that says what is wrong with what was given.

    >>> admit(torch.sum, np.zeros((2, 3))).shape
    torch.Size([2, 3])
    """
    if not callable(model):
        raise InputError(f"a model is called with a batch of inputs, got {type(model).__name__}")
    check_mode(model)
    if not isinstance(seed, int):
        raise InputError(f"a seed is an int, got {seed!r}")
    if not isinstance(draws, Integral) or draws < 1:
        raise InputError(f"draws is at least 1, and a whole number, got {draws!r}")
    found = {k: _tensor(part) for k, part in inputs.items()} if isinstance(inputs, Mapping) else _tensor(inputs)
    count(found)
    return found


def check_perturbation(perturbation: Any) -> None:
    """Refuse what is not a perturbation, and say how to make one of it."""
    if isinstance(perturbation, type):
        name = perturbation.__name__
        raise InputError(f"a perturbation is an object, got the class {name}: write {name}(...)")
    if isinstance(perturbation, str):
        raise InputError(f"a perturbation is an object, got '{perturbation}': teeter.perturb.by_name makes one of it")
    if not (hasattr(perturbation, "positions") and hasattr(perturbation, "run")):
        raise InputError(f"a perturbation has methods positions and run, got {type(perturbation).__name__}")


def check_mode(model: Callable[[Any], Any]) -> None:
    """Refuse a module whose answer changes by itself because it is still being trained."""
    if isinstance(model, nn.Module):
        kinds = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
        restless = [
            type(m).__name__
            for m in model.modules()
            if m.training
            and (isinstance(m, kinds) or (isinstance(rate := getattr(m, "dropout", 0), float) and rate > 0))
        ]
        if restless:
            raise InputError(f"the model is in training mode and has {restless[0]}: call model.eval() first")


def _tensor(part: Any) -> Tensor:
    if isinstance(part, np.ndarray) and part.dtype.kind in "biuf" and part.ndim:
        return torch.from_numpy(part.copy())  # torch takes no array that is read-only or runs backwards
    if isinstance(part, Tensor) and part.ndim:
        return part
    got = f"one of no axis, {part!r}" if isinstance(part, Tensor) else type(part).__name__
    raise InputError(f"inputs are a tensor, or a mapping of tensors, with an axis of inputs, got {got}")
