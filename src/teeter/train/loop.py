"""The one loop: a model, a stream of batches and a recipe in; rows of measurements and trained weights out.

A run that is killed and started again with the same arguments gives the same rows and weights, bit for bit: batches
and rates are pure functions of the step, and all else that a step depends on is in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.arithmetic import check_arithmetic
from teeter.perturb.inputs import Inputs, count, device_of
from teeter.train.interrupts import Interrupts
from teeter.train.measures import Measure
from teeter.train.recipe import Recipe
from teeter.train.run import Penalty, Row, Run
from teeter.train.state import fingerprint, own_randomness, weights_of
from teeter.train.streams import Stream

__all__ = ["Progress", "Trained", "checked", "row_steps", "train"]

Progress: TypeAlias = Callable[[int, int, Row], None]  # (steps done, of how many, the latest row)


@dataclass(frozen=True, eq=False)
class Trained:
    """What a run came to."""

    model: nn.Module  # in evaluation mode, ready to be measured
    rows: list[Row]  # one for each measured step
    steps: int  # that were done
    stopped: str  # "done" or "interrupted"; of several models together also "diverged" and "until"
    seconds: float  # spent in training, over all starts of the run
    measuring: float  # seconds spent in measures, likewise


def train(
    model: nn.Module,
    stream: Stream,
    recipe: Recipe,
    *,
    measures: Mapping[str, Measure] | None = None,
    every: int | Collection[int] = 100,
    folder: Path | str | None = None,
    keep: int = 1000,
    penalty: Penalty | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    compile: bool | str = False,
    record: bool = False,
) -> Trained:
    """Train the model in place, measuring as it goes.

    A row is made at step 0, every `every` steps (or at those listed) and at the end. It has the number of steps done as
    `step`, the mean `loss` over the batches since the row before (None at step 0, when there were none), the `rate` of
    the latest step, and what each of `measures` says of the model in evaluation mode; none of them changes the
    training. A `penalty` is a function (model, inputs, outputs) whose value is added to the loss; in the rows, `loss`
    is without it and `penalty` its mean.

    With a `folder`, the state is kept there every `keep` steps and at the end, and a run goes on from what it finds
    there. `seed` is for what the model itself draws, such as dropout; streams have their own. Ctrl-C ends the run after
    the step, keeps its state and returns what there is. A loss that is not finite raises `Diverged` when the next row
    or checkpoint is due: to look at every step would be to wait for the device at every step.

    The model is put into training mode, unless it is in it already: then parts that are not stay so. `compile` sends
    the forward and backward pass through torch.compile, and on a GPU the whole step is then launched as one CUDA graph
    (unless there is a penalty that is not `recorded`, or inputs come by name), in which nothing may wait for the
    device; a word such as "default" or "reduce-overhead" is a mode of torch.compile alone. `record` launches it so
    without compiling, for runs too short to make up for the time that compiling takes.
    `progress(step, steps, row)` is told before the first step and after every one, with the latest row.

    >>> from teeter import cube
    >>> from teeter.train import BitStream
    >>> _ = torch.manual_seed(0)
    >>> stream = BitStream(cube.first, 4, batch=32, seed=0)
    >>> made = train(nn.Linear(4, 1), stream, Recipe(steps=100, batch=32, rate=0.1, weight_decay=0.0), every=50)
    >>> [row["step"] for row in made.rows], made.rows[-1]["loss"] < 0.01
    ([0, 50, 100], True)
    """
    measures = dict(measures or {})
    marks = row_steps(every, recipe.steps)
    batch = stream(0)
    device = checked(model, batch, recipe, measures, keep)
    longest = max(later - earlier for earlier, later in pairwise(marks))
    still = penalty is None or getattr(penalty, "recorded", False)
    record = (record or compile is True) and device.type == "cuda" and still and isinstance(batch[0], Tensor)
    run = Run(model, recipe, device, _forward(model, compile), penalty, longest, record)
    identity = {} if folder is None else _identity(run, batch, marks, measures, seed, compile)

    with own_randomness(device, seed), Interrupts() as interrupts:
        if folder is not None:
            run.resume(folder, identity)
        if not model.training:
            model.train()
        while not interrupts.asked:
            with interrupts.allowed():  # between two steps nothing is half done
                if run.step in marks and not run.has_row:
                    run.measure(measures, interrupts)
                if progress is not None:
                    progress(run.step, recipe.steps, run.rows[-1])
                if run.step == recipe.steps:
                    break
                if folder is not None and run.step % keep == 0:
                    run.save(folder, identity)
                batch = stream(run.step)
            if not interrupts.asked:
                run.advance(*batch)
        if folder is not None:
            run.save(folder, identity)
    model.eval()
    finished = run.step == recipe.steps and run.has_row
    return Trained(model, run.rows, run.step, "done" if finished else "interrupted", run.seconds, run.measuring)


def _forward(model: nn.Module, compile: bool | str) -> Callable[[Any], Any]:
    """What a batch goes through in training; measures, and penalties that nudge its parts, see the model."""
    if not compile:
        return model
    return torch.compile(model, dynamic=False, mode=compile if isinstance(compile, str) else None)


def row_steps(every: int | Collection[int], steps: int) -> dict[int, None]:
    """The steps after which there is a row, in order."""
    listed = range(0, steps, every) if isinstance(every, int) and every > 0 else every
    if isinstance(listed, int) or not all(isinstance(step, int) and 0 <= step <= steps for step in listed):
        raise InputError(f"rows are made every so many steps, or at steps from 0 to {steps}, got {every}")
    return dict.fromkeys(sorted({0, *listed, steps}))


def checked(
    model: nn.Module, batch: tuple[Inputs, Tensor], recipe: Recipe, measures: Mapping[str, Measure], keep: int
) -> torch.device:
    """Where the model is; whatever is wrong is said before any work is done."""
    if not isinstance(model, nn.Module):
        raise InputError(f"training needs a torch module, got {type(model).__name__}")
    if not any(weight.requires_grad for weight in model.parameters()):
        raise InputError(f"the {type(model).__name__} has no weight to train")
    if keep < 1:
        raise InputError(f"a checkpoint is kept every so many steps, at least 1, got {keep}")
    if taken := sorted({"step", "loss", "rate", "penalty"} & measures.keys()):
        raise InputError(f"every row has a column {taken[0]} already: name that measure differently")
    device = next(model.parameters()).device
    inputs, targets = batch
    places = {weight.device for weight in model.parameters()} | {device_of(inputs), targets.device}
    if len(places) > 1:
        names = ", ".join(sorted(map(str, places)))
        raise InputError(f"the model, its inputs and targets are on one device, got {names}: use .to(device)")
    if recipe.batch is not None and count(inputs) != recipe.batch:
        raise InputError(f"the recipe has batches of {recipe.batch} and the stream gives {count(inputs)}: set batch=")
    check_arithmetic(recipe.arithmetic, device)
    return device


def _identity(
    run: Run,
    batch: tuple[Inputs, Tensor],
    marks: Collection[int],
    measures: Mapping[str, Measure],
    seed: int,
    compile: bool | str,
) -> dict[str, Any]:
    """What must be the same for a checkpoint to be of this run, in a form that JSON gives back as it was."""
    inputs, targets = batch
    named = {"inputs": inputs} if isinstance(inputs, Tensor) else dict(inputs)
    penalty = run.penalty
    return {
        **{f"recipe.{name}": value for name, value in asdict(run.recipe).items()},
        "seed": seed,
        "model": type(run.model).__name__,
        "initial weights": fingerprint(weights_of(run.model)),
        "first batch": fingerprint({**named, "targets": targets}),
        "penalty": None if penalty is None else getattr(penalty, "__qualname__", type(penalty).__qualname__),
        "measures": list(measures),
        "rows": fingerprint({"marks": torch.tensor(list(marks))}),
        "compile": compile,
        "device": run.device.type,
    }
