"""Rows of a run: what every measure says of a model, or of each in a stack, without a trace left in training."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError, NotFinite, TeeterError
from teeter.measure import Estimate
from teeter.train.measures import Measure, OfStack, Said
from teeter.train.stack import Stack, Stacked
from teeter.train.state import own_randomness

__all__ = ["measured", "measured_stack", "undisturbed"]


def measured(model: nn.Module, measures: Mapping[str, Measure], device: torch.device) -> dict[str, float]:
    """The columns of one row. An Estimate gives NAME, NAME_low and NAME_high; a mapping gives NAME_KEY for each key.

    >>> from teeter.measure import Estimate
    >>> line, half = nn.Linear(1, 1), lambda model: Estimate(0.5, 0.4, 0.6, n=10)
    >>> measured(line, {"half": half, "size": lambda model: {"in": 1, "out": 1}}, torch.device("cpu"))
    {'half': 0.5, 'half_low': 0.4, 'half_high': 0.6, 'size_in': 1.0, 'size_out': 1.0}
    """
    found = {}
    for name, measure in measures.items():
        with undisturbed(model, device):
            found[name] = _columns(name, measure(model))
    return _row(measures, found)


def measured_stack(
    stack: Stack,
    places: Sequence[int],
    measures: Sequence[Mapping[str, Measure]],
    device: torch.device,
    pause: Callable[[], None],
) -> list[dict[str, float] | None]:
    """The columns of a row for each of the models at these places, which have these measures, or None for a model
    whose answers are no longer numbers.

    A measure that can be told of a stack is told of all models that have this very one under a name at once; where
    torch cannot batch what it does, and any other, of one model after the other. `pause` is called between.
    """
    found: list[dict[str, dict[str, float]]] = [{} for _ in places]
    parts: dict[tuple[int, ...], Stacked] = {}  # of the stack, that share a measure
    for name, measure in {(name, id(each)): (name, each) for own in measures for name, each in own.items()}.values():
        if not isinstance(measure, OfStack):
            continue
        sharing = [i for i, own in enumerate(measures) if own.get(name) is measure]
        these = tuple(places[i] for i in sharing)
        if these not in parts:
            parts[these] = stack.some(these)
        said = _at_once(name, parts[these], measure, device)
        if said is not None:
            for i, one in zip(sharing, said, strict=True):
                found[i][name] = _columns(name, one)
        pause()
    rows: list[dict[str, float] | None] = []
    alone: nn.Module | None = None
    for place, own, known in zip(places, measures, found, strict=True):
        rest = {name: measure for name, measure in own.items() if name not in known}
        if rest:
            alone = stack.put(place, copy.deepcopy(stack.shape) if alone is None else alone)
            try:
                for name, measure in rest.items():
                    known |= {name: measured(alone, {name: measure}, device)}
            except NotFinite:
                known.clear()
            pause()
        rows.append(_row(own, known) if known or not own else None)
    return rows


def _at_once(name: str, stack: Stacked, measure: OfStack, device: torch.device) -> Sequence[Said] | None:
    """What a measure says of each model, or None where it has to be told of one after the other."""
    try:
        with undisturbed(stack.shape, device):
            said = measure.of_stack(stack)
    except TeeterError:  # which the models say one by one, the first that it is true of
        return None
    except (RuntimeError, TypeError, ValueError, MemoryError) as problem:  # torch has many words for a lack of a rule
        warnings.warn(f"'{name}' is measured one model after the other: {problem}", RuntimeWarning, stacklevel=2)
        return None
    if len(said) != len(stack):
        raise InputError(f"'{name}' was told of {len(stack)} models and gave {len(said)} answers")
    return said


def _row(order: Mapping[str, Any], found: Mapping[str, dict[str, float]]) -> dict[str, float]:
    row: dict[str, float] = {}
    for name in order:
        columns = found[name]
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
