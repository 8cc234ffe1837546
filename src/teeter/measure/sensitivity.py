"""How often does an answer change when one token is nudged?

V Definition 4.1: the mean over inputs of the mean over an input's tokens of the chance that nudging it changes the
answer. Estimated from random (input, token, draw) triples, with an interval whose independent unit is the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.changes import label_flip
from teeter.measure.estimate import Estimate
from teeter.measure.forward import Batches, hookable, outputs
from teeter.measure.schedule import Broad, Paper, Triples
from teeter.measure.tally import FEW, Tally
from teeter.perturb import Inputs, Noise, Perturbation
from teeter.perturb.inputs import count, take

__all__ = ["Sensitivity", "merge", "sensitivity"]

_FIRST_LOOK, _GROWTH = 256, 1.25  # triples before the first look at the interval, and the factor to each next one
_NOISE = 3  # keeps the noise's hash apart from those of the schedule


@dataclass(frozen=True, repr=False)
class Sensitivity(Estimate):
    """An estimate that also knows what it cost and why it ended."""

    forwards: int = 0
    draws: int = 0
    design: str = "broad"
    stopped: str = "budget"  # precision, half-width, budget, design, inputs, interrupted
    notes: tuple[str, ...] = ()
    tally: Tally | None = field(default=None, compare=False)  # changes by input, for merging shards


def sensitivity(
    model: Callable[[Any], Any],
    inputs: Inputs,
    perturbation: Perturbation,
    *,
    change: Callable[[Tensor, Tensor], Tensor] = label_flip,
    precision: float | None = None,
    half_width: float | None = None,
    budget: int | None = None,
    confidence: float = 0.95,
    design: str = "broad",
    subset: int | None = None,
    draws: int = 5,
    seed: int = 0,
    batch: int | str = "auto",
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[Sensitivity], None] | None = None,
) -> Sensitivity:
    """Sensitivity of a model with an interval.

    It stops at `precision` (half-width relative to the value, 0.05 unless anything else is asked for), at an absolute
    `half_width`, or at `budget` forwards, whichever comes first; `stopped` says which. "inputs" means that more draws
    no longer help: the inputs at hand differ too much from each other, and more inputs are needed.

    Looks at the interval are at triple counts fixed beforehand, each a quarter more than the last, and a relative
    precision is believed only once thirty inputs have changed (for soft changes, once as good as ninety bear the mean);
    under this rule the interval of a rate keeps its coverage (tests/coverage). `design="paper"` tries every token of
    `subset` inputs, `draws` times each, as V does. `shard=(k, of)` runs every of-th triple (in the paper's design, the
    triples of every of-th input), for `merge`. `progress` is told the estimate after every look; an interrupt from the
    keyboard ends with what there is.

    >>> from teeter import cube, perturb
    >>> sensitivity(cube.majority, cube.points(5), perturb.BitFlip(), design="paper", draws=1).value * 5
    1.875
    """
    check_mode(model)
    n = count(inputs)
    positions = perturbation.positions(inputs).cpu()
    plan = _plan(design, positions, seed, subset, draws)
    limit, default = _limit(plan, precision, half_width, budget)
    precision = 0.05 if default else precision
    part, parts = shard
    if not 0 <= part < parts:
        raise InputError(f"shard is (k, of) with 0 <= k < of, got {shard}")

    if parts > 1 and budget is None and isinstance(plan, Broad):
        raise InputError("a shard needs a budget: only the whole can tell when a precision is reached")
    run = Run(model, inputs, perturbation, change, seed, n)
    batches = Batches(batch)
    tally = run.tally
    done, halves = 0, {}
    stopped = "design" if isinstance(plan, Paper) and limit == plan.total else "budget"
    try:
        for look in _looks(plan, limit):
            batches.run(done, look, lambda a, b: _share(run, plan, a, b, part, parts))
            done = look
            if int((tally.counts > 0).sum()) < 2:
                continue
            result = _result(tally, plan, done, confidence, stopped, run)
            if progress is not None:
                progress(result)
            halves[done] = result.half_width
            if parts > 1 or (precision is None and half_width is None):
                continue  # a shard cannot judge the whole, and a budget alone is there to be spent
            reason = _enough(result, precision, half_width, tally)
            if reason is None and isinstance(plan, Broad):
                reason = _stalled(halves, done, len(plan.inputs))
            if reason is not None:
                stopped = reason
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    if int((tally.counts > 0).sum()) < 2:
        raise InputError("an interval needs at least two inputs: give more inputs or a larger budget")
    return _result(tally, plan, done, confidence, stopped, run)


def merge(shards: list[Sensitivity], confidence: float = 0.95) -> Sensitivity:
    """The estimate from shards of one measurement, as if it had run in one piece."""
    tallies = [shard.tally for shard in shards if shard.tally is not None]
    if len(tallies) < 1 or len(tallies) != len(shards):
        raise InputError("merge takes at least one shard, each with its tally")
    total = tallies[0]
    for tally in tallies[1:]:
        total = total + tally
    first = shards[0]
    by = total.by_input() if first.design == "paper" else total
    e = by.estimate(confidence)
    stopped = "interrupted" if any(s.stopped == "interrupted" for s in shards) else first.stopped
    forwards, drawn = sum(s.forwards for s in shards), sum(s.draws for s in shards)
    return Sensitivity(
        e.value, e.low, e.high, e.n, confidence, forwards, drawn, first.design, stopped, first.notes, total
    )


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


class Run:
    """Evaluates triples and keeps the clean outputs it has met."""

    def __init__(self, model: Any, inputs: Inputs, perturbation: Perturbation, change: Any, seed: int, n: int) -> None:
        self.model, self.inputs, self.perturbation, self.change = model, inputs, perturbation, change
        self.seed = (seed << 2) + _NOISE
        self.tally = Tally.empty(n)
        self.clean: Tensor | None = None
        self.known = torch.zeros(n, dtype=torch.bool)
        self.drawn = 0
        parts = [inputs] if isinstance(inputs, Tensor) else list(inputs.values())
        self.device = parts[0].device

    def changes(self, triples: Triples) -> Tensor:
        """What each triple changed, also counted in the tally."""
        index = triples.input
        with torch.no_grad(), hookable():
            before = self._clean(index)
            where = (part.to(self.device) for part in (index, triples.token, triples.draw))
            answer = self.perturbation.run(self.model, take(self.inputs, index), Noise(self.seed, *where))
            after = outputs(answer, len(index))
            if after.shape != before.shape:
                raise InputError(f"clean outputs are {tuple(before.shape)} and perturbed ones {tuple(after.shape)}")
            changed = self.change(before, after)
        if changed.shape != (len(index),):
            raise InputError(f"a change is one value for each of {len(index)} inputs, got shape {tuple(changed.shape)}")
        self.tally.add(index, changed)
        self.drawn += len(index)
        return changed

    def _clean(self, index: Tensor) -> Tensor:
        fresh = index[~self.known[index]].unique()
        if len(fresh):
            answer = outputs(self.model(take(self.inputs, fresh)), len(fresh))
            if self.clean is None:
                self.clean = answer.new_empty(len(self.known), *answer.shape[1:])
            self.clean[fresh.to(answer.device)] = answer
            self.known[fresh] = True
        assert self.clean is not None
        return self.clean[index.to(self.clean.device)]

    def notes(self) -> tuple[str, ...]:
        if self.clean is None or self.clean.ndim != 2 or self.clean.shape[1] < 2:
            return ()
        answers = self.clean[self.known.to(self.clean.device)].argmax(-1)
        return ("every clean answer is the same class",) if bool((answers == answers[0]).all()) else ()


def _share(run: Run, plan: Broad | Paper, start: int, stop: int, part: int, parts: int) -> None:
    """Evaluate the triples that are this shard's: every parts-th, or in the paper's design those of its inputs."""
    triples = plan.triples(start, stop)
    number = triples.input if isinstance(plan, Paper) else torch.arange(start, stop)
    mine = number % parts == part
    if bool(mine.any()):
        run.changes(Triples(triples.input[mine], triples.token[mine], triples.draw[mine]))


def _plan(design: str, positions: Tensor, seed: int, subset: int | None, draws: int) -> Broad | Paper:
    if design == "broad":
        return Broad(positions, seed << 2)
    if design == "paper":
        return Paper(positions, seed << 2, subset, draws)
    raise InputError(f"the design is 'broad' or 'paper', got '{design}'")


def _limit(
    plan: Broad | Paper, precision: float | None, half_width: float | None, budget: int | None
) -> tuple[int, bool]:
    """How many triples at most, and whether the default precision applies."""
    for name, value in (("precision", precision), ("half_width", half_width)):
        if value is not None and not value > 0:
            raise InputError(f"{name} is positive, got {value}")
    if budget is not None and budget < 4:
        raise InputError(f"a budget is at least 4 forwards, got {budget}")
    default = precision is None and half_width is None and budget is None and isinstance(plan, Broad)
    if isinstance(plan, Paper):
        return plan.total if budget is None else plan.limit(budget), False
    return plan.limit(2_000_000 if budget is None else budget), default


def _looks(plan: Broad | Paper, limit: int) -> Iterator[int]:
    """Triple counts at which the interval is looked at; whole inputs only in the paper's design."""
    look = _FIRST_LOOK
    while look < limit:
        if isinstance(plan, Paper):
            whole = plan.ends[plan.ends >= look][0]
            if int(whole) >= limit:
                break
            yield int(whole)
            look = int(whole)
        else:
            yield look
        look = int(look * _GROWTH) + 1
    yield limit


def _result(tally: Tally, plan: Broad | Paper, done: int, confidence: float, stopped: str, run: Run) -> Sensitivity:
    e = (tally.by_input() if plan.name == "paper" else tally).estimate(confidence)
    forwards = run.drawn + int(run.known.sum())
    return Sensitivity(
        e.value, e.low, e.high, e.n, confidence, forwards, run.drawn, plan.name, stopped, run.notes(), tally
    )


def _enough(result: Sensitivity, precision: float | None, half_width: float | None, tally: Tally) -> str | None:
    met = tally.counts > 0
    weight = tally.sums[met].abs()
    # How many inputs the sum rests on: those that changed for a rate, fewer where some changed much more than others.
    bearing = float(weight.sum() ** 2 / weight.square().sum()) if bool(weight.any()) else 0.0
    believed = bearing >= min(FEW if tally.rate else 3 * FEW, 0.8 * int(met.sum()))
    if half_width is not None and result.half_width <= half_width and (tally.rate or believed):
        return "half-width"
    if precision is not None and believed and result.half_width <= precision * abs(result.value):
        return "precision"
    return None


def _stalled(halves: dict[int, float], done: int, inputs: int) -> str | None:
    """After eight rounds, whether twice the draws have bought less than a tenth of the interval."""
    if done < 8 * inputs:
        return None
    earlier = [half for at, half in halves.items() if at <= done / 2]
    return "inputs" if earlier and halves[done] > 0.9 * earlier[-1] else None
