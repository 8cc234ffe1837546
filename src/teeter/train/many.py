"""Any number of models of any shapes: those of one shape are stacked, as many at once as there is memory for."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from teeter.errors import InputError, TooLarge
from teeter.measure.forward import out_of_memory
from teeter.train.checkpoint import read_checkpoint
from teeter.train.loop import Trained, train
from teeter.train.measures import Measure
from teeter.train.recipe import Recipe, stackable
from teeter.train.run import Diverged, Row
from teeter.train.stack import Stack, shape_of
from teeter.train.stack_loop import train_stack
from teeter.train.stack_step import StackStep, facts_of
from teeter.train.stack_streams import together
from teeter.train.streams import Stream

__all__ = ["Job", "groups", "train_many"]

_MOST = 256  # models in one stack: a kill loses the steps of all of them since the last checkpoint
_SHARE = 0.8  # of the free memory that a stack may take


@dataclass(frozen=True, eq=False)
class Job:
    """One model to be trained: on what, how, and what is measured."""

    model: nn.Module
    stream: Stream
    recipe: Recipe
    measures: Mapping[str, Measure] = field(default_factory=dict)


JobsDone: TypeAlias = Callable[[int, int], None]  # (jobs done, of how many)


def train_many(
    jobs: Sequence[Job],
    *,
    every: int | Collection[int] = 100,
    until: Callable[[Row], bool] | None = None,
    folder: Path | str | None = None,
    keep: int = 1000,
    seed: int = 0,
    compile: bool = False,
    most: int | None = None,
    progress: JobsDone | None = None,
) -> list[Trained]:
    """Train all of them, each as `train` would alone, and give what they came to in the same order.

    Jobs whose models and recipes can be stacked are, up to `most` at a time (by default as many as fit into the
    device's memory; where that was too many, half as many); a model that cannot be, such as one with running averages
    or a recurrent one, is trained by the loop. One that diverges ends with `stopped="diverged"`. With a `folder`, what
    is finished and what is under way is kept there.

    >>> from teeter import cube
    >>> from teeter.train import BitStream
    >>> _ = torch.manual_seed(0)
    >>> jobs = [
    ...     Job(nn.Sequential(nn.Linear(n, 1), nn.Flatten(0)), BitStream(cube.first, n, 32, seed=0), Recipe(50, 32))
    ...     for n in (4, 5, 4)
    ... ]
    >>> groups(jobs)
    [[0, 2], [1]]
    >>> [made.rows[-1]["step"] for made in train_many(jobs)]
    [50, 50, 50]
    """
    if most is not None and most < 1:
        raise InputError(f"a stack holds at least one model, got most = {most}")
    if len({id(job.model) for job in jobs}) < len(jobs):
        raise InputError("each job has a model of its own, got one model twice")
    stacks, alone = divided(jobs)
    if until is not None and alone:
        kind = type(jobs[alone[0]].model).__name__
        raise InputError(f"{kind} cannot be stacked and is trained alone, to its end: leave until= out")
    place = None if folder is None else Path(folder)
    made: dict[int, Trained] = {}

    def note(numbers: list[int], trained: list[Trained]) -> None:
        made.update(zip(numbers, trained, strict=True))
        if progress is not None:
            progress(len(made), len(jobs))
        if any(each.stopped == "interrupted" for each in trained):
            raise KeyboardInterrupt

    for group in stacks:
        todo, fewer = list(group), most
        while todo:
            some = todo[: _kept_size(place, todo[0]) or fewer or fitting([jobs[k] for k in todo])]
            where = None if place is None else place / f"stack-{todo[0]}-of-{len(some)}"
            how: dict[str, Any] = dict(every=every, until=until, folder=where, keep=keep, seed=seed, compile=compile)
            trained = _stacked([jobs[k] for k in some], how)
            if trained is None:
                fewer = len(some) // 2
                continue
            note(some, trained)
            todo = todo[len(some) :]
    for k in alone:
        how = dict(every=every, folder=None if place is None else place / f"job-{k}", keep=keep, seed=seed)
        note([k], [_alone(jobs[k], how)])
    return [made[k] for k in range(len(jobs))]


def _stacked(jobs: list[Job], how: dict[str, Any]) -> list[Trained] | None:
    """What they came to, or None where memory does not hold that many: they are then as they were."""
    streams, recipes = together([job.stream for job in jobs]), [job.recipe for job in jobs]
    models, measures = [job.model for job in jobs], [job.measures for job in jobs]
    before = [[part.detach().to("cpu", copy=True) for part in model.parameters()] for model in models]
    try:
        return train_stack(models, streams, recipes, measures=measures, **how)
    except (RuntimeError, MemoryError) as problem:
        if not out_of_memory(problem):
            raise
        begun = None if how["folder"] is None else read_checkpoint(how["folder"])
        if len(jobs) == 1 or (begun is not None and begun.facts["step"] > 0):
            advice = "use smaller batches" if begun is None else f"remove {how['folder']} to begin with fewer at once"
            raise TooLarge(
                f"there is not enough memory to train {len(jobs)} x {type(models[0]).__name__} together: "
                f"free some, or {advice}"
            ) from problem
    # Only here is all of the stack gone: an exception holds what was at work when it was raised.
    for model, parts in zip(models, before, strict=True):
        for part, value in zip(model.parameters(), parts, strict=True):
            part.data.copy_(value)
    if how["folder"] is not None:
        shutil.rmtree(how["folder"], ignore_errors=True)
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def _alone(job: Job, how: dict[str, Any]) -> Trained:
    try:
        return train(job.model, job.stream, job.recipe, measures=job.measures, **how)
    except Diverged as problem:
        steps = problem.rows[-1]["step"] if problem.rows else 0
        return Trained(job.model.eval(), problem.rows, steps, "diverged", 0.0, 0.0)


def _kept_size(place: Path | None, first: int) -> int | None:
    """How many models the stack that begins with this job had when it was begun: memory may have been other then."""
    found = [] if place is None else sorted(place.glob(f"stack-{first}-of-*"))
    return int(found[0].name.rpartition("-")[2]) if found else None


def groups(jobs: Sequence[Job]) -> list[list[int]]:
    """The numbers of the jobs that share a shape, in the order of their first."""
    found: dict[Any, list[int]] = {}
    for k, job in enumerate(jobs):
        inputs, targets = job.stream(0)
        sizes = (inputs.shape, inputs.dtype) if isinstance(inputs, Tensor) else None, targets.shape, targets.dtype
        found.setdefault((shape_of(job.model), stackable(job.recipe), sizes), []).append(k)
    return list(found.values())


def divided(jobs: Sequence[Job]) -> tuple[list[list[int]], list[int]]:
    """The groups that can be stacked, and the jobs that cannot."""
    stacks: list[list[int]] = []
    alone: list[int] = []
    for group in groups(jobs):
        job = jobs[group[0]]
        inputs, targets = job.stream(0)
        try:
            if not isinstance(inputs, Tensor):
                raise InputError("a stack reads one tensor")
            Stack([job.model]).check(inputs.unsqueeze(0), targets.unsqueeze(0))
        except (InputError, RuntimeError, ValueError):  # torch says in many ways that it cannot batch a model
            alone += group
        else:
            stacks.append(group)
    return stacks, sorted(alone)


def fitting(jobs: Sequence[Job]) -> int:
    """How many of these models train at once in the memory that is free: all, except on a GPU, where one is tried."""
    most, device = min(len(jobs), _MOST), next(jobs[0].model.parameters()).device
    if device.type != "cuda" or most == 1:
        return most
    job = jobs[0]
    gc.collect()
    torch.cuda.empty_cache()
    try:
        each = _one(job, device)
    except (RuntimeError, MemoryError) as problem:
        if not out_of_memory(problem):
            raise
        return 1  # which will say so itself
    return max(1, min(most, int(_SHARE * torch.cuda.mem_get_info(device)[0] / max(each, 1))))


def _one(job: Job, device: torch.device) -> int:
    """The bytes that a model takes in training."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    stack = Stack([job.model])
    step = StackStep(stack, job.recipe, compile=False)
    step.once(*together([job.stream])(0), facts_of([job.recipe], 0, 1, stack.flat)[0])
    recorded = 3 * stack.flat.nbytes  # what a recording keeps beside it
    return torch.cuda.max_memory_allocated(device) - before + recorded
