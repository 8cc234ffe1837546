"""Any number of models of any shapes: those of one shape are stacked, as many at once as there is memory for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from teeter.errors import InputError
from teeter.train.loop import Trained, train
from teeter.train.measures import Measure
from teeter.train.recipe import Recipe
from teeter.train.run import Row
from teeter.train.stack import Stack, shape_of
from teeter.train.stack_loop import train_stack
from teeter.train.stack_step import StackStep, facts_of
from teeter.train.stack_streams import together
from teeter.train.streams import Stream

__all__ = ["Job", "groups", "train_many"]

_MOST = 256  # models in one stack: more gain nothing on any device we know
_SHARE = 0.8  # of the free memory that a stack may take


@dataclass(frozen=True, eq=False)
class Job:
    """One model to be trained: on what, how, and what is measured."""

    model: nn.Module
    stream: Stream
    recipe: Recipe
    measures: Mapping[str, Measure] = field(default_factory=dict)


Finished: TypeAlias = Callable[[int, int], None]  # (jobs done, of how many)


def train_many(
    jobs: Sequence[Job],
    *,
    every: int | Collection[int] = 100,
    until: Callable[[Row], bool] | None = None,
    folder: Path | str | None = None,
    keep: int = 1000,
    compile: bool = False,
    most: int | None = None,
    progress: Finished | None = None,
) -> list[Trained]:
    """Train all of them, each as `train` would alone, and give what they came to in the same order.

    Jobs whose models and recipes can be stacked are, up to `most` at a time (by default as many as fit into the
    device's memory); a model that cannot be, such as one with running averages, is trained by the loop. With a
    `folder`, what is finished and what is under way is kept there.

    >>> from teeter import cube
    >>> from teeter.train import BitStream
    >>> _ = torch.manual_seed(0)
    >>> jobs = [
    ...     Job(nn.Sequential(nn.Linear(n, 1), nn.Flatten(0)), BitStream(cube.first, n, 32, seed=0), Recipe(50, 32))
    ...     for n in (4, 5, 4)
    ... ]
    >>> [group for group in groups(jobs)]
    [[0, 2], [1]]
    >>> [made.rows[-1]["step"] for made in train_many(jobs)]
    [50, 50, 50]
    """
    if most is not None and most < 1:
        raise InputError(f"a stack holds at least one model, got most = {most}")
    made: dict[int, Trained] = {}
    for number, group in enumerate(groups(jobs)):
        if not stackable(jobs[group[0]].model):
            if until is not None:
                raise InputError(f"{type(jobs[group[0]].model).__name__} has buffers and is trained alone, to its end")
            for k in group:
                job, place = jobs[k], None if folder is None else Path(folder) / f"job-{k}"
                made[k] = train(
                    job.model, job.stream, job.recipe, measures=job.measures, every=every, folder=place, keep=keep
                )
                _tell(progress, made, jobs)
            continue
        size = most or fitting([jobs[k] for k in group])
        for start in range(0, len(group), size):
            some = group[start : start + size]
            place = None if folder is None else Path(folder) / f"group-{number}-from-{start}"
            trained = train_stack(
                [jobs[k].model for k in some],
                together([jobs[k].stream for k in some]),
                [jobs[k].recipe for k in some],
                measures=[jobs[k].measures for k in some],
                every=every,
                until=until,
                folder=place,
                keep=keep,
                compile=compile,
            )
            made |= dict(zip(some, trained, strict=True))
            _tell(progress, made, jobs)
            if any(each.stopped == "interrupted" for each in trained):
                raise KeyboardInterrupt
    return [made[k] for k in range(len(jobs))]


def _tell(progress: Finished | None, made: Mapping[int, Any], jobs: Sequence[Job]) -> None:
    if progress is not None:
        progress(len(made), len(jobs))


def groups(jobs: Sequence[Job]) -> Iterator[list[int]]:
    """The numbers of the jobs that can be stacked with each other, in the order of their first."""
    found: dict[Any, list[int]] = {}
    for k, job in enumerate(jobs):
        same = replace(job.recipe, rate=1.0, weight_decay=0.0, schedule="constant", warmup=0)
        inputs, targets = job.stream(0)
        shapes = inputs.shape if isinstance(inputs, torch.Tensor) else None, targets.shape
        found.setdefault((shape_of(job.model), same, shapes), []).append(k)
    yield from found.values()


def stackable(model: nn.Module) -> bool:
    """Whether all that a model is made of is weights."""
    return not any(True for _ in model.buffers())


def fitting(jobs: Sequence[Job]) -> int:
    """How many of these models train at once in the memory that is free: all, except on a GPU, where one is tried."""
    most, device = min(len(jobs), _MOST), next(jobs[0].model.parameters()).device
    if device.type != "cuda" or most == 1:
        return most
    job = jobs[0]
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    stack = Stack([job.model])
    advance = StackStep(stack, job.recipe, compile=False)
    advance.once(*together([job.stream])(0), facts_of([job.recipe], 0, 1, stack.flat)[0])
    each = torch.cuda.max_memory_allocated(device) - before
    free = torch.cuda.mem_get_info(device)[0]
    return max(1, min(most, int(_SHARE * free / max(each, 1))))
