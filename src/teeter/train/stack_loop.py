"""Many models of one shape trained as one program, each as the loop would train it alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from torch import nn

from teeter.train.interrupts import Interrupts
from teeter.train.loop import Progress, Trained
from teeter.train.measures import Measure
from teeter.train.recipe import Recipe
from teeter.train.run import Row
from teeter.train.stack_run import StackRun
from teeter.train.stack_streams import StackStream
from teeter.train.state import own_randomness

__all__ = ["train_stack"]


def train_stack(
    models: Sequence[nn.Module],
    stream: StackStream,
    recipe: Recipe | Sequence[Recipe],
    *,
    measures: Mapping[str, Measure] | Sequence[Mapping[str, Measure]] | None = None,
    every: int | Collection[int] = 100,
    folder: Path | str | None = None,
    keep: int = 1000,
    until: Callable[[Row], bool] | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    compile: bool = False,
) -> list[Trained]:
    """Train K models of one shape in place, each as `train` would: its own initial weights, batches (row k of what the
    stream gives), rate and weight decay.

    Recipes may differ in rate, schedule, warmup and weight decay. Rows, measures, `folder` and Ctrl-C are as in
    `train`, and each model may have measures of its own. Ready-made ones but `sensitivity` are told of all models that
    share the very measure at once, with the same answers; any other is told of one model after the other. A model whose
    loss is no longer finite does not disturb the others: it ends with `stopped="diverged"` and the rows it had. A model
    whose row satisfies `until` ends there, with `stopped="until"`; once half of the models have ended, the rest go on
    as a smaller stack. Models without buffers can be stacked; dropout is drawn for each, but not as the loop draws it.
    `compile` fuses what a step does, which takes half a minute and pays from some thousand steps on.

    >>> import torch
    >>> from teeter import cube
    >>> from teeter.train import Recipe, bit_streams
    >>> _ = torch.manual_seed(0)
    >>> models = [nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)) for _ in range(3)]
    >>> recipes = [Recipe(steps=100, batch=32, rate=rate, weight_decay=0.0) for rate in (0.1, 0.03, 0.0001)]
    >>> made = train_stack(models, bit_streams(cube.first, 4, 32, seeds=range(3)), recipes, every=50)
    >>> [each.rows[-1]["loss"] < 0.05 for each in made]
    [True, True, False]
    """
    recipes = [recipe] * len(models) if isinstance(recipe, Recipe) else list(recipe)
    each = [measures or {}] * len(models) if measures is None or isinstance(measures, Mapping) else list(measures)
    run = StackRun(models, recipes, each, every, until, compile)
    batch = stream(0)
    run.check(batch, keep)
    identity = {} if folder is None else run.identity(batch)
    with own_randomness(run.device, seed), Interrupts() as interrupts:
        if folder is not None:
            run.resume(folder, identity)
        while not interrupts.asked:
            with interrupts.allowed():
                if run.step in run.marks and not run.has_rows:
                    run.measure(interrupts)
                if progress is not None:
                    progress(run.step, run.steps, run.latest_row)
                if run.step == run.steps or not run.going:
                    break
                if folder is not None and run.step % keep == 0:
                    run.save(folder, identity)
                batch = stream(run.step)
            if not interrupts.asked:
                run.advance(*batch)
        if folder is not None:
            run.save(folder, identity)
    return run.finished()
