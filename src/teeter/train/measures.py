"""What is measured along the way: a measure is any function of the model, and these make the usual ones.

Each answers with a number, an `Estimate`, or a mapping of numbers. Batches have a fixed size here: a last bit may
depend on it, and a resumed run is to give the same rows.

All of these but `sensitivity` also measure a whole stack as one program (`of_stack`), and say of every model what they
would say of it alone. Whoever calls `of_stack` sees to evaluation mode, as for a model.

>>> import torch
>>> from teeter import cube, perturb
>>> x = cube.points(5)
>>> sensitivity(x, perturb.BitFlip(), budget=2000)(cube.majority).value > 0.3
True
>>> accuracy(x, cube.majority(x))(cube.majority).value
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn, vmap

from teeter import measure
from teeter.errors import InputError, UnknownName
from teeter.measure import Blowup, Estimate, Tally
from teeter.measure.changes import answers
from teeter.measure.forward import Batches
from teeter.measure.stacked import stacked_answers, stacked_blowup, stacked_norm, stacked_sharpness
from teeter.perturb import Inputs, Perturbation
from teeter.perturb.inputs import count, device_of, take
from teeter.train.losses import LOSSES
from teeter.train.stack import Stacked

__all__ = [
    "Measure",
    "OfStack",
    "Said",
    "accuracy",
    "blowup",
    "fit",
    "loss",
    "outputs_of",
    "parameter_norm",
    "sensitivity",
    "sharpness",
]

Said: TypeAlias = float | Estimate | Mapping[str, float]
Measure: TypeAlias = Callable[[Any], Said]

_BATCH = 1024


@runtime_checkable
class OfStack(Protocol):
    """A measure that can also be told of a stack: one answer for each of its models."""

    def __call__(self, model: Any) -> Said: ...

    def of_stack(self, stack: Stacked) -> Sequence[Said]: ...


@dataclass(frozen=True, eq=False)
class Accuracy:
    """See `accuracy`."""

    inputs: Inputs
    labels: Tensor
    batch: int

    def __call__(self, model: Callable[[Any], Any]) -> Estimate:
        return _share(answers(outputs_of(model, self.inputs, self.batch)) == self.labels)

    def of_stack(self, stack: Stacked) -> list[Estimate]:
        right = vmap(answers)(_stacked(stack, self.inputs, self.batch)) == self.labels
        return [_share(each) for each in right.cpu()]


@dataclass(frozen=True, eq=False)
class Loss:
    """See `loss`."""

    inputs: Inputs
    targets: Tensor
    kind: str
    batch: int

    def __call__(self, model: Callable[[Any], Any]) -> float:
        return float(LOSSES[self.kind](outputs_of(model, self.inputs, self.batch), self.targets))

    def of_stack(self, stack: Stacked) -> list[float]:
        outputs = _stacked(stack, self.inputs, self.batch)
        return vmap(LOSSES[self.kind], in_dims=(0, None))(outputs, self.targets).tolist()


@dataclass(frozen=True, eq=False)
class Fit:
    """See `fit`."""

    inputs: Inputs
    labels: Tensor
    kind: str
    batch: int

    def __call__(self, model: Callable[[Any], Any]) -> dict[str, float]:
        return self._of(outputs_of(model, self.inputs, self.batch))

    def of_stack(self, stack: Stacked) -> list[dict[str, float]]:
        return [self._of(each) for each in _stacked(stack, self.inputs, self.batch)]

    def _of(self, outputs: Tensor) -> dict[str, float]:
        right = _share(answers(outputs) == self.labels)
        ends = {"accuracy": right.value, "accuracy_low": right.low, "accuracy_high": right.high}
        return {**ends, "loss": float(LOSSES[self.kind](outputs, self.labels))}


@dataclass(frozen=True, eq=False)
class Sharpness:
    """See `sharpness`."""

    inputs: Inputs
    batch: int
    more: Mapping[str, Any]

    def __call__(self, model: nn.Module) -> Estimate:
        return measure.sharpness(model, self.inputs, batch=self.batch, **self.more)

    def of_stack(self, stack: Stacked) -> list[Estimate]:
        more = {name: value for name, value in self.more.items() if name != "together"}
        room = {"batch": self.batch, "pairs": stack.pairs(self.inputs)}
        return stacked_sharpness(stack.shared, stack.weights, self.inputs, **room, **more)


@dataclass(frozen=True, eq=False)
class LogBlowup:
    """See `blowup`."""

    inputs: Inputs
    batch: int
    more: Mapping[str, Any]

    def __call__(self, model: nn.Module) -> float | Estimate:
        return self._mean(measure.blowup(model, self.inputs, batch=self.batch, **self.more))

    def of_stack(self, stack: Stacked) -> list[float | Estimate]:
        room = {"batch": self.batch, "pairs": stack.pairs(self.inputs, plain=True)}
        return [
            self._mean(each) for each in stacked_blowup(stack.shape, stack.weights, self.inputs, **room, **self.more)
        ]

    def _mean(self, found: Blowup) -> float | Estimate:
        logs = found.factors.log().sum(-1)
        if not bool(torch.isfinite(logs).all()):  # a layer without epsilon met a constant
            return float(logs.mean())
        return Tally(logs, torch.ones_like(logs), rate=False).estimate()


@dataclass(frozen=True, eq=False)
class ParameterNorm:
    """See `parameter_norm`."""

    more: Mapping[str, Any]

    def __call__(self, model: nn.Module) -> float:
        return measure.parameter_norm(model, **self.more)

    def of_stack(self, stack: Stacked) -> list[float]:
        return stacked_norm(stack.weights, **self.more)


def accuracy(inputs: Inputs, labels: Tensor, *, batch: int = _BATCH) -> OfStack:
    """How often the answer is the label: the largest of several logits, or the sign of a scalar for labels ±1."""
    return Accuracy(inputs, _labels(inputs, labels), batch)


def loss(inputs: Inputs, targets: Tensor, kind: str = "mse", *, batch: int = _BATCH) -> OfStack:
    """The mean loss on inputs that stay the same, in evaluation mode."""
    return Loss(inputs, targets, _kind(kind), batch)


def fit(inputs: Inputs, labels: Tensor, kind: str = "cross-entropy", *, batch: int = _BATCH) -> OfStack:
    """Both, from one forward of each input: under the name "train", `train_accuracy` with its ends and `train_loss`."""
    return Fit(inputs, _labels(inputs, labels), _kind(kind), batch)


def sensitivity(
    inputs: Inputs,
    perturbation: Perturbation,
    *,
    budget: int | None = 10_000,
    seed: int = 0,
    batch: int = _BATCH,
    **more: Any,
) -> Measure:
    """`teeter.sensitivity` within so many forwards, where a number is given; `more` are its other arguments, such as
    `precision`, `change`.

    The models of a stack are measured one after the other.
    """
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
    kind: Literal["direction", "output", "prediction", "rise"] = "direction",
    *,
    seed: int = 0,
    batch: int = _BATCH,
    **more: Any,
) -> OfStack:
    """`teeter.sharpness`; `more` are its other arguments, such as `rho` and `draws`."""
    return Sharpness(inputs, batch, {"kind": kind, "seed": seed, **more})


def blowup(inputs: Inputs, *, batch: int = _BATCH, **more: Any) -> OfStack:
    """The logarithm of the network's blow-up, mean over inputs: where sharpness grows, this does (H Eq. 5, Figure 10).

    `more` are the other arguments of `teeter.blowup`, such as `positions`.
    """
    return LogBlowup(inputs, batch, more)


def parameter_norm(**more: Any) -> OfStack:
    """`teeter.parameter_norm`; `more` is its `skip`."""
    return ParameterNorm(more)


def _labels(inputs: Inputs, labels: Tensor) -> Tensor:
    if labels.shape != (count(inputs),):
        raise InputError(f"{count(inputs)} inputs have as many labels, got {tuple(labels.shape)}")
    return labels


def _kind(loss: str) -> str:
    if loss not in LOSSES:
        raise UnknownName("loss", loss, LOSSES)
    return loss


def _share(right: Tensor) -> Estimate:
    return Tally(right.double().cpu(), torch.ones(len(right))).estimate()


def outputs_of(model: Callable[[Any], Any], inputs: Inputs, batch: int = _BATCH) -> Tensor:
    """What the model says of all inputs, in batches: where several things are measured of it, it is asked once."""
    found: list[Tensor] = []

    def work(start: int, stop: int) -> None:
        answer = model(take(inputs, torch.arange(start, stop)))
        found.append(getattr(answer, "logits", answer))

    with torch.no_grad():
        Batches(batch, device_of(inputs)).run(0, count(inputs), work)
    return torch.cat(found)


def _stacked(stack: Stacked, inputs: Inputs, batch: int) -> Tensor:
    with torch.no_grad():
        return stacked_answers(stack.shared, stack.weights, inputs, batch=batch, pairs=stack.pairs(inputs))
