"""Sharpness, blow-up and norm of K models of one shape at once, each as it would be alone.

The models are their weights by name, (K, ...) each, in the order of `named_parameters`. A program is a function of such
weights and of inputs, the same for all models, to answers (K, inputs, ...). Alone, a small model waits for the launches
of its kernels; the noise on weights does not depend on the model, and is drawn once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from teeter.errors import InputError, NotFinite
from teeter.measure.blowup import Blowup, gathered, norms_of, watched
from teeter.measure.estimate import Estimate
from teeter.measure.forward import Batches, unfused
from teeter.measure.sharpness import TOGETHER, Nudging, enough, skipped
from teeter.perturb.inputs import Inputs, count, device_of, take

__all__ = ["Program", "Weights", "stacked_answers", "stacked_blowup", "stacked_norm", "stacked_sharpness"]

Weights: TypeAlias = Mapping[str, Tensor]
Program: TypeAlias = Callable[[Weights, Inputs], Tensor]


def stacked_answers(program: Program, weights: Weights, inputs: Inputs, *, batch: int, pairs: int) -> Tensor:
    """What every model says of every input, (K, inputs, ...), computed for so many pairs at once.

    >>> line = lambda weights, x: x @ weights["a"].transpose(1, 2)
    >>> stacked_answers(line, {"a": torch.ones(5, 1, 3)}, torch.ones(4, 3), batch=2, pairs=7).shape
    torch.Size([5, 4, 1])
    """
    found = []
    rows = min(batch, pairs, count(inputs))
    for some in _groups(weights, pairs // rows):
        parts: list[Tensor] = []

        def work(start: int, stop: int, some: Weights = some, parts: list[Tensor] = parts) -> None:
            parts.append(program(some, _between(inputs, start, stop)).detach())

        Batches(rows).run(0, count(inputs), work)
        found.append(torch.cat(parts, 1))
    return torch.cat(found)


def stacked_sharpness(
    program: Program, weights: Weights, inputs: Inputs, *, batch: int, pairs: int, **more: Any
) -> list[Estimate]:
    """`sharpness` of each model; `more` are the arguments of `Nudging`.

    >>> line = lambda weights, x: x @ weights["a"].transpose(1, 2)
    >>> alike = {"a": torch.ones(5, 1, 3)}
    >>> len(set(stacked_sharpness(line, alike, torch.eye(3), batch=3, pairs=100)))
    1
    """
    how, n = Nudging(**more), enough(inputs)
    clean = stacked_answers(program, weights, inputs, batch=batch, pairs=pairs)
    if clean.ndim not in (2, 3) or clean.shape[1] != n:
        raise InputError(f"models given {n} inputs return ({n},) or ({n}, classes) numbers each")
    models, size = len(clean), sum(part[0].numel() for part in weights.values())
    clean = clean.reshape(models, n, -1)
    how.check_targets(clean[0])
    rows, width = min(batch, pairs, n), clean.shape[-1]
    changes = torch.empty(models, how.draws, n, dtype=torch.float64, device=clean.device)
    finite = torch.isfinite(clean).all()
    held = max(min(how.draws, TOGETHER // max(size, 1)), 1)  # draws of noise
    for first in range(0, how.draws, held):
        these = range(first, min(first + held, how.draws))
        noise = how.noise({name: part[0] for name, part in weights.items()}, these)
        every = torch.arange(models * len(these), device=clean.device)
        for copies in every.split(max(min(pairs // rows, TOGETHER // max(size, 1)), 1)):
            model, draw = copies // len(these), copies % len(these)
            nudged = {
                name: part.detach()[model].add_(noise[name][draw]) if name in noise else part.detach()[model]
                for name, part in weights.items()
            }

            def work(start: int, stop: int, to: Any = (model, draw + first), nudged: Weights = nudged) -> None:
                nonlocal finite
                answers = program(nudged, _between(inputs, start, stop)).detach()
                finite = finite & torch.isfinite(answers).all()
                before = clean[to[0], start:stop].reshape(-1, width)
                changed = how.changes(before, answers.reshape(-1, width), slice(start, stop))
                changes[*to, start:stop] = changed.reshape(-1, stop - start)

            Batches(rows).run(0, n, work)
    if not bool(finite):
        raise NotFinite("a model returned NaN or infinity")
    return how.estimates(changes)


def stacked_blowup(
    shape: nn.Module,
    weights: Weights,
    inputs: Inputs,
    *,
    batch: int,
    pairs: int,
    positions: Literal["all", "last"] = "all",
    plus_one: bool = False,
) -> list[Blowup]:
    """`blowup` of each model; `shape` is a model like them, whose own weights do not count.

    >>> twice = {"weight": torch.ones(2, 4), "bias": torch.zeros(2, 4)}
    >>> x = torch.tensor([[[1.0, -1.0, 1.0, -1.0]]])
    >>> [each.product for each in stacked_blowup(nn.LayerNorm(4, eps=0.0), twice, x, batch=1, pairs=9)]
    [tensor([1.], dtype=torch.float64), tensor([1.], dtype=torch.float64)]
    """
    norms = norms_of(shape, positions)
    order: tuple[str, ...] = ()

    def program(some: Weights, here: Inputs) -> Tensor:
        def alone(own: Weights) -> Tensor:
            nonlocal order
            with watched(norms, positions) as seen:
                functional_call(shape, dict(own), (here,))
            order, factors = gathered(seen, count(here))
            return factors

        with torch.no_grad(), unfused():
            return vmap(alone)(dict(some))

    factors = stacked_answers(program, weights, inputs, batch=batch, pairs=pairs).cpu() + (1 if plus_one else 0)
    return [Blowup(order, each) for each in factors]


def stacked_norm(weights: Weights, skip: Sequence[str] = ()) -> list[float]:
    """`parameter_norm` of each model.

    >>> stacked_norm({"a": torch.tensor([[3.0], [6.0]]), "b": torch.tensor([[4.0], [8.0]])})
    [5.0, 10.0]
    """
    kept = [part.detach().flatten(1) for name, part in weights.items() if not skipped(name, skip)]
    if not kept:
        return [0.0] * _models(weights)
    each = [torch.linalg.vector_norm(part, dim=1, dtype=torch.float64) for part in kept]
    return torch.stack(each).norm(dim=0).tolist()


def _models(weights: Weights) -> int:
    return len(next(iter(weights.values())))


def _groups(weights: Weights, size: int) -> list[dict[str, Tensor]]:
    """The weights of so many models at a time, at least one."""
    parts = {name: part.detach().split(max(size, 1)) for name, part in weights.items()}
    return [dict(zip(parts, group, strict=True)) for group in zip(*parts.values(), strict=True)]


def _between(inputs: Inputs, start: int, stop: int) -> Inputs:
    return take(inputs, torch.arange(start, stop, device=device_of(inputs)))
