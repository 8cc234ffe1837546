"""One row of a run: what every measure says of the model, without a trace left in training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure import Estimate
from teeter.train.measures import Measure
from teeter.train.state import own_randomness

__all__ = ["measured", "undisturbed"]


def measured(model: nn.Module, measures: Mapping[str, Measure], device: torch.device) -> dict[str, float]:
    """The columns of one row. An Estimate gives NAME, NAME_low and NAME_high; a mapping gives NAME_KEY for each key.

    >>> from teeter.measure import Estimate
    >>> line, half = nn.Linear(1, 1), lambda model: Estimate(0.5, 0.4, 0.6, n=10)
    >>> measured(line, {"half": half, "size": lambda model: {"in": 1, "out": 1}}, torch.device("cpu"))
    {'half': 0.5, 'half_low': 0.4, 'half_high': 0.6, 'size_in': 1.0, 'size_out': 1.0}
    """
    row: dict[str, float] = {}
    for name, measure in measures.items():
        with undisturbed(model, device):
            columns = _columns(name, measure(model))
        if shared := sorted(row.keys() & columns.keys()):
            raise InputError(f"two measures give the column {shared[0]}: name one of them differently")
        row |= columns
    return row


@contextmanager
def undisturbed(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Evaluation mode, no gradients; afterwards every part is in the mode it was in, with the gradients it had, and
    random numbers go on where they were."""
    modes = [(part, part.training) for part in model.modules()]
    gradients = [(weight, weight.grad) for weight in model.parameters()]
    for weight, _ in gradients:
        weight.grad = None  # so that what a measure adds up lands in a tensor of its own
    model.eval()
    try:
        with torch.no_grad(), own_randomness(device):
            yield
    finally:
        for part, mode in modes:
            part.training = mode
        for weight, gradient in gradients:
            weight.grad = gradient


def _columns(name: str, found: Any) -> dict[str, float]:
    if isinstance(found, Estimate):
        return {name: float(found.value), f"{name}_low": float(found.low), f"{name}_high": float(found.high)}
    if isinstance(found, Mapping):
        return {f"{name}_{key}": _number(name, value) for key, value in found.items()}
    return {name: _number(name, found)}


def _number(name: str, value: Any) -> float:
    try:
        return float(value.detach() if isinstance(value, Tensor) else value)
    except (TypeError, ValueError):
        raise InputError(
            f"a measure answers with a number, an Estimate or a mapping of numbers, but '{name}' gave {value!r}"
        ) from None
