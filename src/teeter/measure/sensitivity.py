"""How often does an answer change when one token is nudged?

V Definition 4.1: the mean over inputs of the mean over an input's tokens of the chance that nudging it changes the
answer. Estimated from random (input, token, draw) triples, with an interval whose independent unit is the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.measure.adaptive import Adaptive
from teeter.measure.arithmetic import Compiled, check_arithmetic, computing_in
from teeter.measure.changes import label_flip
from teeter.measure.door import admit, check_perturbation
from teeter.measure.estimate import Estimate
from teeter.measure.forward import Batches
from teeter.measure.run import Run
from teeter.measure.schedule import Broad, Paper, Triples
from teeter.measure.stopping import FIRST_LOOK, Stop, stalled
from teeter.measure.tally import Sight, Tally
from teeter.perturb import HiddenNoise, Inputs, Perturbation, WeightNoise
from teeter.perturb.inputs import count, device_of

__all__ = ["Sensitivity", "merge", "sensitivity"]

_BUDGET = 2_000_000  # forwards, where none is given
_LOOKED_AT = 32  # clean outputs that are compared with the model's own before any are believed
_COMPARED = 2048  # triples run twice to see what another arithmetic does


@dataclass(frozen=True, repr=False)
class Sensitivity(Estimate):
    """An estimate that also knows what it cost and why it ended."""

    forwards: int = 0
    draws: int = 0
    design: str = "broad"
    stopped: str = "budget"  # precision, half-width, budget, design, inputs, interrupted
    notes: tuple[str, ...] = ()
    effect: Estimate | None = None  # what the chosen arithmetic adds to the value, against float32
    tally: Tally | None = field(default=None, compare=False)  # changes by input, for merging shards
    shard: tuple[int, int] = (0, 1)  # which part of how many


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
    clean: Tensor | None = None,
    arithmetic: str | None = None,
    compile: bool = False,
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[Sensitivity], None] | None = None,
) -> Sensitivity:
    """Sensitivity of a model with an interval.

    It stops at `precision` (half-width relative to the value, 0.05 unless anything else is asked for), at an absolute
    `half_width`, or at `budget` forwards, whichever comes first; `stopped` says which. "inputs" means that more draws
    no longer help: the inputs at hand differ too much from each other, and more inputs are needed.

    The interval is looked at first after 256 triples and next where it should be narrow enough by then, but at least
    a tenth and at most as much again further on (the second time, at most four times as far); a relative precision is
    believed only once thirty inputs have changed (for soft changes, once as good as ninety bear the mean). Under this
    rule the interval of a rate keeps its coverage (tests/coverage).

    `design` is "broad" (one token of every input), "adaptive" (more draws where the clean answer is close to another:
    the same interval for fewer forwards where flips are rare; for changes that are true or false), or "paper" (every
    token of `subset` inputs, `draws` times each, as V does). `clean` are the model's outputs on the inputs as they are,
    where they are at hand: that saves half of the forwards, and shows the adaptive design all margins.

    `arithmetic` computes in "float32", "tf32" (CUDA) or "bf16" and measures on the side what that does to the value
    (`effect`, from up to 2,048 triples run in both; these forwards, up to half as many again, come on top of the
    budget). `compile` compiles the model, which pays from about a million forwards on. `shard=(k, of)` runs every of-th
    triple (in the paper's design, the triples of every of-th input), for `merge`. `progress` is told the estimate after
    every look; an interrupt from the keyboard ends with what there is.

    >>> from teeter import cube, perturb
    >>> sensitivity(cube.majority, cube.points(5), perturb.BitFlip(), design="paper", draws=1).value * 5
    1.875
    """
    inputs = admit(model, inputs, draws=draws, seed=seed)
    check_perturbation(perturbation)
    device = device_of(inputs)
    check_arithmetic(arithmetic, device)
    part, parts = shard
    if not 0 <= part < parts:
        raise InputError(f"shard is (k, of) with 0 <= k < of, got {shard}")
    plan = _plan(design, perturbation.positions(inputs).to(device), seed, subset, draws, clean is None)
    if len(plan.inputs) < 2:
        raise InputError("an interval needs at least two inputs with a token to perturb, got 1")
    if clean is not None and arithmetic in ("tf32", "bf16"):
        raise InputError(
            f"clean outputs at hand and {arithmetic} do not go together: they may be of another arithmetic"
        )
    if parts > 1 and (isinstance(plan, Adaptive) or (budget is None and isinstance(plan, Broad))):
        lacks = "the adaptive design learns from all triples" if isinstance(plan, Adaptive) else "only the whole can"
        raise InputError(f"a shard needs a budget and a fixed design: {lacks} tell where to stop")
    if precision is None and half_width is None and budget is None and not isinstance(plan, Paper):
        precision = 0.05
    stop = Stop(precision, half_width, budget, confidence, judges=parts == 1)
    batches = Batches(batch, device)
    run = Run(_compiled(model, perturbation, batches) if compile else model, inputs, perturbation, change, seed)
    with computing_in(arithmetic, device):
        if clean is not None:
            run.given(clean, min(_LOOKED_AT, (budget or _BUDGET) // 8 + 1), batches)
        if isinstance(plan, Adaptive):
            stopped = _adaptive(plan, run, batches, stop, progress)
        else:
            stopped = _fixed(plan, run, batches, stop, part, parts, progress)
    run.check()
    if int((run.tally.counts > 0).sum()) < 2:
        if stopped == "interrupted":
            raise KeyboardInterrupt  # there is nothing to tell yet
        raise InputError("an interval needs at least two inputs: give more inputs or a larger budget")
    notes, effect = run.notes(), None
    n, some = count(inputs), len(plan.places.inputs)
    if some < n:
        notes = (*notes, f"{n - some} of {n} inputs have no token to perturb and do not count")
    if design == "adaptive" and not isinstance(plan, Adaptive):
        notes = (f"too few inputs ({len(plan.inputs)}) to learn from: the design was broad", *notes)
    if arithmetic in ("tf32", "bf16") and part == 0 and stopped != "interrupted":
        try:
            effect, spent = _effect(arithmetic, model, inputs, perturbation, change, seed, batches, stop)
            run.aside += spent
        except KeyboardInterrupt:
            notes = (*notes, f"interrupted before the effect of {arithmetic} was known")
    run.tally = run.tally.cpu()
    return replace(_result(run, plan.name, confidence, stopped, notes, effect), shard=shard)


def merge(shards: list[Sensitivity], confidence: float = 0.95) -> Sensitivity:
    """The estimate from shards of one measurement, as if it had run in one piece."""
    tallies = [shard.tally for shard in shards if shard.tally is not None]
    if len(tallies) < 1 or len(tallies) != len(shards):
        raise InputError("merge takes at least one shard, each with its tally")
    if any(shard.design == "adaptive" for shard in shards):
        raise InputError("runs of the adaptive design do not merge: each has learned by itself")
    sizes, parts = {len(tally.sums) for tally in tallies}, [shard.shard for shard in shards]
    if len(sizes) > 1:
        raise InputError(
            f"shards are of the same inputs, got some of {' and of '.join(map(str, sorted(sizes)))} inputs"
        )
    if len(set(parts)) < len(parts) or len({of for _, of in parts}) > 1:
        raise InputError(f"every shard of one measurement is given once, got {', '.join(map(str, parts))}")
    total = tallies[0]
    for tally in tallies[1:]:
        total = total + tally
    first = shards[0]
    by = total.by_input() if first.design == "paper" else total
    e = by.estimate(confidence)
    return Sensitivity(
        e.value,
        e.low,
        e.high,
        e.n,
        confidence,
        forwards=sum(s.forwards for s in shards),
        draws=sum(s.draws for s in shards),
        design=first.design,
        stopped="interrupted" if any(s.stopped == "interrupted" for s in shards) else first.stopped,
        notes=first.notes,
        effect=next((shard.effect for shard in shards if shard.effect is not None), None),
        tally=total,
    )


def _fixed(
    plan: Broad | Paper,
    run: Run,
    batches: Batches,
    stop: Stop,
    part: int,
    parts: int,
    progress: Callable[[Sensitivity], None] | None,
) -> str:
    """Run a design that does not depend on answers; says why it ended."""
    if isinstance(plan, Paper):
        limit = plan.total if stop.budget is None else plan.limit(stop.budget - run.met, not run.knows_all)
    else:
        limit = plan.limit((stop.budget or _BUDGET) - run.met, not run.knows_all)

    def work(a: int, b: int) -> None:
        triples = plan.triples(a, b)
        if parts > 1:  # every parts-th triple, or in the paper's design those of every parts-th input
            number = triples.input if isinstance(plan, Paper) else torch.arange(a, b, device=run.device)
            # What the whole has met by now, this shard may not have.
            triples = replace(triples[number % parts == part], fresh=None)
        if len(triples.input):
            run.changes(triples)

    done, look, widths = 0, FIRST_LOOK, {}
    try:
        while done < limit:
            look = _whole(plan, min(look, limit))
            batches.run(done, look, work)
            done = look
            rounds = len(plan.inputs) if isinstance(plan, Broad) else limit
            reason, result = _look(run, plan.name, stop, progress, run.tally.sight(), widths, done, rounds)
            if reason is not None:
                return reason
            watched = stop.aims or progress is not None
            look = stop.next_look(look, result) if watched else limit  # nobody to look: whole batches to the end
    except KeyboardInterrupt:
        return "interrupted"
    return "design" if isinstance(plan, Paper) and limit == plan.total else "budget"


def _adaptive(
    plan: Adaptive, run: Run, batches: Batches, stop: Stop, progress: Callable[[Sensitivity], None] | None
) -> str:
    """Run the design that learns, block by block; says why it ended."""
    budget = stop.budget or _BUDGET
    done, look, widths, n = 0, FIRST_LOOK, {}, len(plan.inputs)
    run.tally.draws = math.inf  # an input's own mean can be known better than by as many draws on other inputs
    before, drawn = run.tally.clone(), 0
    try:
        while True:
            end = min(look, (done // n + 1) * n, done + plan.fits(done, budget - run.forwards))
            if end <= done:
                return "budget"
            fresh = plan.fresh(done, end)
            batches.run(0, len(fresh), lambda a, b, fresh=fresh: run.meet(fresh[a:b]))
            block = plan.triples(done, end, run, budget - run.forwards)
            if block is None:
                return "budget"
            index, triples = block
            changed = torch.zeros(len(triples.input), dtype=torch.float64, device=run.device)

            def work(a: int, b: int, triples: Triples = triples, changed: Tensor = changed) -> None:
                changed[a:b] = run.changes(triples[a:b])

            batches.run(0, len(changed), work)
            run.tally.visit(index)
            if not run.tally.rate:
                raise InputError("the adaptive design is for changes that are true or false: use design='broad'")
            seen = run.tally.sight()
            plan.learn(triples, changed, run, end, int(seen.changed))
            done, before, drawn = end, run.tally.clone(), run.drawn
            if done < look:
                continue
            reason, result = _look(run, plan.name, stop, progress, seen, widths, done, n)
            if reason is not None:
                return reason
            look = stop.next_look(look, result, plan.variance(done))
    except KeyboardInterrupt:
        run.tally, run.drawn = before, drawn  # half a block would count inputs whose draws are missing
        return "interrupted"


def _look(
    run: Run,
    name: str,
    stop: Stop,
    progress: Callable[[Sensitivity], None] | None,
    seen: Sight,
    widths: dict[int, float],
    done: int,
    inputs: int,
) -> tuple[str | None, Sensitivity | None]:
    """Why it ends here, if it does, and the estimate so far, where there is one and someone to see it."""
    run.check()
    if seen.inputs < 2 or not (stop.aims or progress is not None):
        return None, None
    result = _result(run, name, stop.confidence, "budget", seen=seen if name != "paper" else None)
    if progress is not None:
        progress(result)
    if not stop.aims:
        return None, result
    widths[done] = result.half_width
    return stop.enough(result, seen, run.tally.rate) or stalled(widths, done, inputs), result


def _result(
    run: Run,
    name: str,
    confidence: float,
    stopped: str,
    notes: tuple[str, ...] = (),
    effect: Estimate | None = None,
    seen: Sight | None = None,
) -> Sensitivity:
    tally = run.tally
    e = (tally.by_input() if name == "paper" else tally).estimate(confidence, seen)
    return Sensitivity(
        e.value, e.low, e.high, e.n, confidence, run.forwards, run.drawn, name, stopped, notes, effect, tally
    )


def _effect(
    kind: str,
    model: Callable[[Any], Any],
    inputs: Inputs,
    perturbation: Perturbation,
    change: Callable[[Tensor, Tensor], Tensor],
    seed: int,
    batches: Batches,
    stop: Stop,
) -> tuple[Estimate, int]:
    """What an arithmetic adds to the value, the same triples in it and in float32, paired; and its forwards."""
    device = device_of(inputs)
    plan = Broad(perturbation.positions(inputs).to(device), seed << 2)
    triples = min(_COMPARED, len(plan.inputs), max((stop.budget or _BUDGET) // 8, 2))
    runs = []
    for each in (kind, "float32"):
        run = Run(model, inputs, perturbation, change, seed)
        with computing_in(each, device):
            batches.run(0, triples, lambda a, b, run=run: run.changes(plan.triples(a, b)))  # pyright: ignore
        runs.append(run)
    lower, full = (run.tally.cpu() for run in runs)
    e = Tally(lower.sums - full.sums, full.counts, rate=False).estimate(stop.confidence)
    # Few triples that differ say little: then the interval is as wide as if none had.
    unseen = -math.expm1(math.log((1 - stop.confidence) / 2) / e.n) if full.rate else 0.0
    low, high = min(e.low, e.value - unseen), max(e.high, e.value + unseen)
    return Estimate(e.value, low, high, e.n, stop.confidence), sum(run.forwards for run in runs)


def _compiled(model: Callable[[Any], Any], perturbation: Perturbation, batches: Batches) -> Compiled:
    if isinstance(perturbation, HiddenNoise | WeightNoise):
        raise InputError(f"compile serves what nudges the input; {type(perturbation).__name__} reaches into the model")
    return Compiled(model, batches)


def _plan(
    design: str, positions: Tensor, seed: int, subset: int | None, draws: int, clean: bool
) -> Broad | Paper | Adaptive:
    if design in ("broad", "adaptive"):
        broad = Broad(positions, seed << 2)
        few = len(broad.inputs) < FIRST_LOOK  # nothing could be learned before every input was tried
        return broad if design == "broad" or few else Adaptive(positions, seed << 2, clean)
    if design == "paper":
        return Paper(positions, seed << 2, subset, draws)
    raise InputError(f"the design is 'broad', 'adaptive' or 'paper', got '{design}'")


def _whole(plan: Broad | Paper, look: int) -> int:
    """Looks at whole inputs only in the paper's design."""
    return look if isinstance(plan, Broad) else int(plan.ends[plan.ends >= look][0])
