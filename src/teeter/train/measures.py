"""What is measured along the way: a measure is any function of the model, and these make the usual ones.

Each answers with a number, an `Estimate`, or a mapping of numbers. Batches have a fixed size here: a last bit may
depend on it, and a resumed run is to give the same rows.

>>> import torch
>>> from teeter import cube, perturb
>>> x = cube.points(5)
>>> sensitivity(x, perturb.BitFlip(), budget=2000)(cube.majority).value > 0.3
True
>>> accuracy(x, cube.majority(x))(cube.majority).value
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from teeter import measure
from teeter.errors import InputError, UnknownName
from teeter.measure import Estimate, Tally
from teeter.measure.changes import answers
from teeter.measure.forward import Batches
from teeter.perturb import Inputs, Perturbation
from teeter.perturb.inputs import count, device_of, take
from teeter.train.losses import LOSSES

__all__ = ["Measure", "accuracy", "blowup", "loss", "parameter_norm", "sensitivity", "sharpness"]

Measure: TypeAlias = Callable[[Any], float | Estimate | Mapping[str, float]]

_BATCH = 1024


def accuracy(inputs: Inputs, labels: Tensor, *, batch: int = _BATCH) -> Measure:
    """How often the answer is the label: the largest of several logits, or the sign of a scalar for labels ±1."""
    if labels.shape != (count(inputs),):
        raise InputError(f"{count(inputs)} inputs have as many labels, got {tuple(labels.shape)}")

    def measured(model: Callable[[Any], Any]) -> Estimate:
        right = answers(_outputs(model, inputs, batch)) == labels
        return Tally(right.double().cpu(), torch.ones(len(right))).estimate()

    return measured


def loss(inputs: Inputs, targets: Tensor, kind: str = "mse", *, batch: int = _BATCH) -> Measure:
    """The mean loss on inputs that stay the same, in evaluation mode."""
    if kind not in LOSSES:
        raise UnknownName("loss", kind, LOSSES)

    def measured(model: Callable[[Any], Any]) -> float:
        return float(LOSSES[kind](_outputs(model, inputs, batch), targets))

    return measured


def sensitivity(
    inputs: Inputs, perturbation: Perturbation, *, budget: int = 10_000, seed: int = 0, batch: int = _BATCH, **more: Any
) -> Measure:
    """`teeter.sensitivity` within so many forwards; `more` are its other arguments, such as `precision`, `change`."""
    return partial(
        measure.sensitivity,
        inputs=inputs,
        perturbation=perturbation,
        budget=budget,
        seed=seed,
        batch=batch,
        **more,
    )


def sharpness(
    inputs: Inputs,
    kind: Literal["direction", "output", "prediction"] = "direction",
    *,
    seed: int = 0,
    batch: int = _BATCH,
    **more: Any,
) -> Measure:
    """`teeter.sharpness`; `more` are its other arguments, such as `rho` and `draws`."""
    return partial(measure.sharpness, inputs=inputs, kind=kind, seed=seed, batch=batch, **more)


def blowup(inputs: Inputs, *, batch: int = _BATCH, **more: Any) -> Measure:
    """The logarithm of the network's blow-up, mean over inputs: where sharpness grows, this does (H Eq. 5, Figure 10).

    `more` are the other arguments of `teeter.blowup`, such as `positions`.
    """

    def measured(model: nn.Module) -> float | Estimate:
        logs = measure.blowup(model, inputs, batch=batch, **more).factors.log().sum(-1)
        if not bool(torch.isfinite(logs).all()):  # a layer without epsilon met a constant
            return float(logs.mean())
        return Tally(logs, torch.ones_like(logs), rate=False).estimate()

    return measured


def parameter_norm(**more: Any) -> Measure:
    """`teeter.parameter_norm`; `more` is its `skip`."""
    return partial(measure.parameter_norm, **more)


def _outputs(model: Callable[[Any], Any], inputs: Inputs, batch: int) -> Tensor:
    found: list[Tensor] = []

    def work(start: int, stop: int) -> None:
        answer = model(take(inputs, torch.arange(start, stop)))
        found.append(getattr(answer, "logits", answer))

    with torch.no_grad():
        Batches(batch, device_of(inputs)).run(0, count(inputs), work)
    return torch.cat(found)
