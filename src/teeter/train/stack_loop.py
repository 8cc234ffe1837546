"""Many models of one shape trained as one program, each as the loop would train it alone."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.arithmetic import check_arithmetic
from teeter.train.checkpoint import read_checkpoint, same_run, write_checkpoint
from teeter.train.interrupts import Interrupts
from teeter.train.loop import Progress, Trained, row_steps
from teeter.train.measures import Measure
from teeter.train.recipe import Recipe
from teeter.train.rows import measured
from teeter.train.run import Row
from teeter.train.stack import Stack
from teeter.train.stack_step import StackStep, facts_of
from teeter.train.stack_streams import StackStream
from teeter.train.state import fingerprint

__all__ = ["train_stack"]

_AHEAD = 1000  # steps whose rates are sent to the device at once


def train_stack(
    models: Sequence[nn.Module],
    stream: StackStream,
    recipe: Recipe | Sequence[Recipe],
    *,
    measures: Mapping[str, Measure] | None = None,
    every: int | Collection[int] = 100,
    folder: Path | str | None = None,
    keep: int = 1000,
    progress: Progress | None = None,
    compile: bool = False,
) -> list[Trained]:
    """Train K models of one shape in place, each as `train` would: its own initial weights, batches (row k of what the
    stream gives), rate and weight decay.

    Recipes may differ in rate, schedule, warmup and weight decay. Rows, measures, `folder` and Ctrl-C are as in
    `train`; a measure is told of one model after the other. A model whose loss is no longer finite does not disturb the
    others: it ends with `stopped="diverged"` and the rows it had. Models without buffers can be stacked; dropout is
    drawn for each, but not as the loop draws it. `compile` fuses what a step does, which takes half a minute and pays
    from some thousand steps on.

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
    run = _StackRun(models, recipes, dict(measures or {}), every, compile)
    identity = {} if folder is None else run.identity(stream(0), compile)
    with Interrupts() as interrupts:
        if folder is not None:
            run.resume(folder, identity)
        while not interrupts.asked:
            with interrupts.allowed():
                if run.step in run.marks and not run.has_rows:
                    run.measure(interrupts)
                if progress is not None:
                    progress(run.step, run.steps, run.rows[0][-1])
                if run.step == run.steps:
                    break
                if folder is not None and run.step % keep == 0:
                    run.save(folder, identity)
                batch = stream(run.step)
            if not interrupts.asked:
                run.advance(*batch)
        if folder is not None:
            run.save(folder, identity)
    return run.finished()


class _StackRun:
    """A stack on its way; `step` is how many steps it has done."""

    def __init__(
        self,
        models: Sequence[nn.Module],
        recipes: list[Recipe],
        measures: dict[str, Measure],
        every: int | Collection[int],
        compile: bool,
    ) -> None:
        if len(recipes) != len(models) or not recipes:
            raise InputError(f"{len(models)} models have one recipe or as many, got {len(recipes)}")
        same = [replace(each, rate=1.0, weight_decay=0.0, schedule="constant", warmup=0) for each in recipes]
        if any(each != same[0] for each in same):
            raise InputError(
                "recipes of a stack differ in rate, schedule, warmup and weight decay, and in nothing else"
            )
        self.models, self.recipes, self.measures = list(models), recipes, measures
        self.marks = row_steps(every, recipes[0].steps)
        self.stack, self.steps = Stack(models), recipes[0].steps
        self.device = self.stack.flat.device
        check_arithmetic(recipes[0].arithmetic, self.device)
        self.advance_on = StackStep(self.stack, recipes[0], compile)
        longest = max(later - earlier for earlier, later in pairwise(self.marks))
        self.seen = torch.zeros(longest, len(models), dtype=torch.float64, device=self.device)
        self.step = 0
        self.rows: list[list[Row]] = [[] for _ in models]
        self.seconds = self.measuring = 0.0
        self.facts: tuple[int, Tensor] = (-_AHEAD, self.seen[:0])
        self.clock = time.perf_counter()
        self.latest = -1  # the step of the latest rows

    @property
    def has_rows(self) -> bool:
        return self.latest == self.step

    @property
    def since(self) -> int:
        """Steps since the latest rows."""
        return self.step - max(self.latest, 0)

    def advance(self, inputs: Tensor, targets: Tensor) -> None:
        begin, table = self.facts
        if not begin <= self.step < begin + _AHEAD:
            begin = self.step
            table = facts_of(self.recipes, begin, min(begin + _AHEAD, self.steps), self.stack.flat)
            self.facts = begin, table
        self.advance_on(inputs, targets, table[self.step - begin])
        self.seen[self.since].copy_(self.advance_on.losses)
        self.step += 1

    def measure(self, interrupts: Interrupts) -> None:
        """One row for every model that is still finite."""
        losses = self.seen[: self.since].cpu()
        self.seconds += self.lap()
        rates = facts_of(self.recipes, max(self.step - 1, 0), max(self.step, 1), self.seen)[0, :, 0].tolist()
        sound = torch.isfinite(losses).all(0) & torch.isfinite(self.stack.flat).all(1).cpu()
        alone = copy.deepcopy(self.stack.shape)
        fresh: dict[int, Row] = {}
        for k in range(len(self.models)):
            if sound[k] and (self.latest < 0 or self._alive(k)):
                loss = float(losses[:, k].mean()) if len(losses) else None
                row = {"step": self.step, "loss": loss, "rate": rates[k]}
                fresh[k] = row | measured(self.stack.put(k, alone), self.measures, self.device)
            if interrupts.asked:
                raise KeyboardInterrupt
        for k, row in fresh.items():  # all of them or none
            self.rows[k].append(row)
        self.measuring += self.lap()
        self.latest = self.step

    def _alive(self, k: int) -> bool:
        return bool(self.rows[k]) and self.rows[k][-1]["step"] == self.latest

    def save(self, folder: Path | str, identity: Mapping[str, Any]) -> None:
        self.seconds += self.lap()
        tensors = {"flat": self.stack.flat.detach(), "moments": self.advance_on.moments, "seen": self.seen}
        facts = {"step": self.step, "latest": self.latest, "rows": self.rows}
        facts |= {"seconds": self.seconds, "measuring": self.measuring, "run": dict(identity)}
        write_checkpoint(folder, tensors, facts)

    def resume(self, folder: Path | str, identity: Mapping[str, Any]) -> None:
        found = read_checkpoint(folder)
        if found is None:
            return
        same_run(folder, found.facts["run"], identity)
        with torch.no_grad():
            self.stack.flat.copy_(found.tensors["flat"])
            self.advance_on.moments.copy_(found.tensors["moments"])
            self.seen.copy_(found.tensors["seen"])
        for name in ("step", "latest", "rows", "seconds", "measuring"):
            setattr(self, name, found.facts[name])
        self.lap()

    def identity(self, batch: tuple[Tensor, Tensor], compile: bool) -> dict[str, Any]:
        return {
            "recipes": [asdict(recipe) for recipe in self.recipes],
            "model": type(self.stack.shape).__name__,
            "initial weights": fingerprint({"flat": self.stack.flat.detach()}),
            "first batch": fingerprint(dict(zip(("inputs", "targets"), batch, strict=True))),
            "measures": list(self.measures),
            "rows": fingerprint({"marks": torch.tensor(list(self.marks))}),
            "compile": compile,
            "device": self.device.type,
        }

    def finished(self) -> list[Trained]:
        share = self.seconds / len(self.models), self.measuring / len(self.models)
        answer = []
        for k, model in enumerate(self.models):
            self.stack.put(k, model).eval()
            ended = "done" if self.step == self.steps and self.has_rows else "interrupted"
            stopped = ended if self._alive(k) or self.latest < 0 else "diverged"
            answer.append(Trained(model, self.rows[k], self.step, stopped, *share))
        return answer

    def lap(self) -> float:
        before, self.clock = self.clock, time.perf_counter()
        return self.clock - before
