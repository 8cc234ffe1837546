"""Is what would be measured what was meant? Looks for the usual reasons why a sensitivity is nonsense."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import TeeterError
from teeter.measure.changes import answers, label_flip, one_sign
from teeter.measure.door import admit, check_mode, check_perturbation
from teeter.measure.forward import hookable, outputs
from teeter.perturb import Inputs, Noise, Perturbation
from teeter.perturb.inputs import count, take

__all__ = ["Finding", "doctor"]


@dataclass(frozen=True)
class Finding:
    """Something wrong (a sensitivity would be nonsense) or worth knowing, and what to do."""

    wrong: bool
    what: str

    def __str__(self) -> str:
        return f"{'wrong' if self.wrong else 'note'}: {self.what}"


def doctor(
    model: Callable[[Any], Any],
    inputs: Inputs,
    perturbation: Perturbation | None = None,
    labels: Tensor | None = None,
    rows: int = 32,
) -> list[Finding]:
    """What is wrong, or worth knowing, before a model is measured; an empty list is a clean bill of health.

    Looks at the first `rows` inputs: training mode, answers that differ from one forward to the next or with the
    company of other inputs, NaN, constant answers, labels that are not classes, tokens that are not there, hooks that
    do not fire or fire twice, and, for perturbations with a strength, flips at a strength of zero.

    >>> model = nn.Sequential(nn.Linear(3, 2), nn.Dropout())
    >>> for finding in doctor(model, torch.ones(4, 3)):
    ...     print(finding)
    wrong: the model is in training mode and has Dropout: call model.eval() first
    """
    try:
        check_mode(model)
    except TeeterError as problem:
        return [Finding(True, str(problem))]  # all else would only echo it
    inputs = admit(model, inputs)
    if perturbation is not None:
        check_perturbation(perturbation)
    some = take(inputs, torch.arange(min(rows, count(inputs))))
    n = count(some)
    try:
        with torch.no_grad(), hookable():
            first, second = (outputs(model(some), n) for _ in range(2))
            alone = torch.cat([outputs(model(take(some, torch.tensor([i]))), 1) for i in range(n)])
    except Exception as problem:  # whatever a model may raise
        return [Finding(True, _told(problem, f"the model does not run on these inputs{_types(model, some)}"))]
    found = [*_answers(first, second, alone), *_labels(first, labels)]
    if perturbation is not None:
        found += _nudges(model, some, n, perturbation, first)
    if isinstance(model, nn.Module) and model.training:
        found.append(Finding(False, "the model is in training mode, though nothing in it depends on that"))
    return found


def _answers(first: Tensor, second: Tensor, alone: Tensor) -> Iterator[Finding]:
    if not torch.equal(first, second):
        size = float((first - second).abs().max())
        yield Finding(
            True, f"two forwards of the same inputs differ by up to {size:.3g}: the model is not deterministic"
        )
    scale = float(first.abs().max()) or 1.0
    if float((first - alone).abs().max()) > 1e-3 * scale:
        yield Finding(True, "an input's output depends on the others in its batch (batch statistics, or a wrong axis?)")
    if len(first) > 1 and float((first - first[:1]).abs().max()) <= 1e-7 * scale:
        yield Finding(True, "all outputs are the same: the model does not look at its inputs")
    elif len(first) > 1 and first.numel() == len(first):
        said = one_sign(answers(first), first.flatten().abs())
        if said is not None:
            yield Finding(False, f"on the inputs looked at, every output {said}")
    elif len(first) > 1 and len(answers(first).unique()) == 1:
        yield Finding(False, "every answer is the same class on the inputs looked at")


def _labels(first: Tensor, labels: Tensor | None) -> Iterator[Finding]:
    if labels is None:
        return
    classes = first.shape[1] if first.ndim == 2 and first.shape[1] > 1 else 2
    known = {-1, 0, 1} if classes == 2 and first.ndim == 1 else set(range(classes))
    if labels.is_floating_point() and not bool((labels == labels.round()).all()):
        yield Finding(True, "labels are not whole numbers")
    elif not set(labels.unique().tolist()) <= known:
        yield Finding(
            True, f"labels go from {int(labels.min())} to {int(labels.max())}, the model has {classes} classes"
        )


def _nudges(
    model: Callable[[Any], Any], some: Inputs, n: int, perturbation: Perturbation, clean: Tensor
) -> Iterator[Finding]:
    try:
        positions = perturbation.positions(some).cpu()
        empty = int((~positions.any(-1)).sum())
        if empty:
            yield Finding(empty == n, f"{empty} of {n} inputs have no token to perturb")
        if empty == n:
            return
        token = positions.long().argmax(-1)
        noise = Noise(0, torch.arange(n), token, torch.zeros_like(token))
        with torch.no_grad(), hookable():
            outputs(perturbation.run(model, some, noise), n)
            if dataclasses.is_dataclass(perturbation) and hasattr(perturbation, "sigma2"):
                still: Any = dataclasses.replace(perturbation, sigma2=0.0)  # pyright: ignore[reportArgumentType]
                answer = outputs(still.run(model, some, noise), n)
                flips = int(label_flip(clean, answer).sum())
                if flips and not getattr(perturbation, "replaces", False):
                    yield Finding(True, f"{flips} of {n} answers change at a noise of zero")
    except Exception as problem:  # whatever a model or a perturbation of one's own may raise
        yield Finding(True, _told(problem, "the model does not run on perturbed inputs"))


def _told(problem: Exception, when: str) -> str:
    if isinstance(problem, TeeterError):
        return str(problem)
    first = (str(problem).splitlines() or [""])[0]
    return f"{when}: {type(problem).__name__}: {first}"


def _types(model: Callable[[Any], Any], inputs: Inputs) -> str:
    """The types of weights and inputs, where they differ."""
    parts = [inputs] if isinstance(inputs, Tensor) else list(inputs.values())
    weights = {p.dtype for p in model.parameters() if p.is_floating_point()} if isinstance(model, nn.Module) else set()
    given = {part.dtype for part in parts if part.is_floating_point()}
    if not weights or given <= weights:
        return ""
    told = (", ".join(sorted(map(str, types))) for types in (weights, given))
    return " (weights of {}, inputs of {})".format(*told)
