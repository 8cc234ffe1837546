"""A stack under way: a step of it, its rows, its state to disk and back."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.train.checkpoint import read_checkpoint, same_run, write_checkpoint
from teeter.train.interrupts import Interrupts
from teeter.train.loop import Trained, checked, row_steps
from teeter.train.measures import Measure
from teeter.train.recipe import Recipe, rate_at, stackable
from teeter.train.rows import measured_stack
from teeter.train.run import Row
from teeter.train.stack import Stack, flattened, places
from teeter.train.stack_step import StackStep, facts_of
from teeter.train.state import captured_randomness, fingerprint, restore_randomness

__all__ = ["StackRun"]

_AHEAD = 1000  # steps whose rates are sent to the device at once


class StackRun:
    """Models on their way; `step` is how many steps those that go on have done, and `aboard` which models the stack
    still holds, a row each. Those that have ended are in `ended`, with why and after how many steps."""

    def __init__(
        self,
        models: Sequence[nn.Module],
        recipes: list[Recipe],
        measures: list[Mapping[str, Measure]],
        every: int | Collection[int],
        until: Callable[[Row], bool] | None,
        compile: bool,
    ) -> None:
        if len(recipes) != len(models) or not recipes:
            raise InputError(f"{len(models)} models have one recipe or as many, got {len(recipes)}")
        if any(stackable(each) != stackable(recipes[0]) for each in recipes):
            raise InputError(
                "recipes of a stack differ in rate, schedule, warmup and weight decay, and in nothing else"
            )
        if len(measures) != len(models):
            raise InputError(f"{len(models)} models have the same measures or as many, got {len(measures)}")
        self.models, self.recipes, self.measures = list(models), recipes, measures
        self.until, self.compile, self.steps = until, compile, recipes[0].steps
        self.marks = row_steps(every, self.steps)
        self.stack = Stack(models)
        self.device = self.stack.flat.device
        self.aboard = list(range(len(models)))
        self.ended: dict[int, tuple[str, int]] = {}
        self.forward = StackStep(self.stack, recipes[0], compile)
        longest = max(later - earlier for earlier, later in pairwise(self.marks))
        # The losses since the latest rows: on the device, so that no step waits for them.
        self.seen = torch.zeros(longest, len(models), dtype=torch.float64, device=self.device)
        self.step, self.latest = 0, -1  # steps done, and those done when the latest rows were made
        self.rows: list[list[Row]] = [[] for _ in models]
        self.seconds = self.measuring = 0.0
        self.facts: tuple[int, Tensor] = (-_AHEAD, self.seen[:0])
        self.some: Tensor | None = None  # the rows of a batch that those aboard take, where others are ashore
        self.kept: tuple[int, int] | None = None  # steps and steps at the latest rows, of the latest checkpoint
        self.clock = time.perf_counter()

    def check(self, batch: tuple[Any, Tensor], keep: int) -> None:
        """Whatever is wrong is said before any work is done."""
        inputs, targets = batch
        self.stack.check(inputs, targets)
        for measures in self.measures:
            checked(self.models[0], (inputs[0], targets[0]), self.recipes[0], measures, keep)

    @property
    def has_rows(self) -> bool:
        """Whether this step was measured."""
        return self.latest == self.step

    @property
    def going(self) -> list[int]:
        """The models that have not ended."""
        return [k for k in self.aboard if k not in self.ended]

    @property
    def latest_row(self) -> Row:
        """Of any model that has got as far as any."""
        return max((rows[-1] for rows in self.rows if rows), key=lambda row: row["step"], default={"step": self.step})

    def advance(self, inputs: Tensor, targets: Tensor) -> None:
        """One step on a batch for every model, of which those aboard take theirs."""
        if self.some is not None:
            inputs, targets = inputs[self.some], targets[self.some]
        begin, table = self.facts
        if not begin <= self.step < begin + len(table):
            begin = self.step
            recipes = [self.recipes[k] for k in self.aboard]
            table = facts_of(recipes, begin, min(begin + _AHEAD, self.steps), self.stack.flat)
            self.facts = begin, table
        self.forward(inputs, targets, table[self.step - begin])
        self.seen[self.step - max(self.latest, 0), : len(self.aboard)].copy_(self.forward.losses)
        self.step += 1

    def measure(self, interrupts: Interrupts) -> None:
        """One row for every model that goes on; where it is interrupted there is none, and a resumed run makes them."""
        losses = self.seen[: self.step - max(self.latest, 0), : len(self.aboard)].cpu()
        self.seconds += self.lap()
        sound = torch.isfinite(losses).all(0) & torch.isfinite(self.stack.flat).all(1).cpu()
        places = [place for place, k in enumerate(self.aboard) if k not in self.ended and sound[place]]
        measures = [self.measures[self.aboard[place]] for place in places]

        def pause() -> None:
            if interrupts.asked:  # a measure may answer an interrupt with what it has seen by then
                raise KeyboardInterrupt

        fresh: dict[int, Row] = {}
        for place, row in zip(places, measured_stack(self.stack, places, measures, self.device, pause), strict=True):
            if row is None:
                continue
            k, loss = self.aboard[place], float(losses[:, place].mean()) if len(losses) else None
            fresh[k] = {"step": self.step, "loss": loss, "rate": rate_at(self.recipes[k], max(self.step - 1, 0)), **row}
        for place, k in enumerate(self.aboard):
            if k in fresh:
                self.rows[k].append(fresh[k])
            if k in self.ended:
                continue
            if k not in fresh:
                self._end(place, "diverged")
            elif self.until is not None and self.until(fresh[k]):
                self._end(place, "until")
        self.latest = self.step
        if len(self.going) <= len(self.aboard) / 2 and self.going:
            self._shrink()
        self.measuring += self.lap()

    def _end(self, place: int, why: str) -> None:
        """What a model is now is what it stays: its row of the stack is computed on, but looked at no more."""
        k = self.aboard[place]
        self.stack.put(place, self.models[k])
        self.ended[k] = (why, self.step)

    def _shrink(self) -> None:
        """Go on with those that have not ended."""
        kept = [place for place, k in enumerate(self.aboard) if k not in self.ended]
        self._load(
            self.stack.flat.detach()[kept], self.forward.moments[:, kept], [self.aboard[place] for place in kept]
        )

    def _load(self, flat: Tensor, moments: Tensor, aboard: list[int]) -> None:
        """A stack of these models with these weights."""
        if aboard != self.aboard:
            del self.stack, self.forward  # before the next take memory of their own
            self.stack = Stack([self.models[k] for k in aboard])  # with the weights of each that are not trained
            self.forward = StackStep(self.stack, self.recipes[0], self.compile)
            self.aboard, self.facts = aboard, (-_AHEAD, self.seen[:0])
            self.some = torch.tensor(aboard, device=self.device)
        with torch.no_grad():
            self.stack.flat.copy_(flat)
            self.forward.moments.copy_(moments)

    def save(self, folder: Path | str, identity: Mapping[str, Any]) -> None:
        """The state to disk, unless it is there already."""
        if self.kept == (self.step, self.latest):
            return
        self.seconds += self.lap()
        tensors = {"flat": self.stack.flat.detach(), "moments": self.forward.moments, "seen": self.seen}
        for k in self.ended:
            tensors[f"ended.{k}"] = _row(self.models[k])
        facts = {name: getattr(self, name) for name in ("step", "latest", "aboard", "rows", "seconds", "measuring")}
        facts["ended"] = [[k, *why] for k, why in self.ended.items()]
        write_checkpoint(folder, tensors | captured_randomness(self.device), {**facts, "run": dict(identity)})
        self.kept = (self.step, self.latest)

    def resume(self, folder: Path | str, identity: dict[str, Any]) -> None:
        """The state from disk, where there is one; one of another run is an error."""
        found = read_checkpoint(folder)
        if found is None:
            return
        ended, there = [k for k, *_ in found.facts["ended"]], found.facts["run"]
        now = {k: found.tensors[f"ended.{k}"] for k in ended}
        now = dict(zip(found.facts["aboard"], found.tensors["flat"], strict=True)) | now
        if all(torch.equal(_row(model).cpu(), now[k]) for k, model in enumerate(self.models)):
            identity["initial weights"] = there["initial weights"]  # the very models that were interrupted
        same_run(folder, there, identity)
        self._load(found.tensors["flat"], found.tensors["moments"], found.facts["aboard"])
        self.seen.copy_(found.tensors["seen"])
        for name in ("step", "latest", "rows", "seconds", "measuring"):
            setattr(self, name, found.facts[name])
        self.ended = {k: (why, step) for k, why, step in found.facts["ended"]}
        for k in self.ended:
            parts = {name: part for name, part in self.models[k].named_parameters() if part.requires_grad}
            for name, place in places(parts).items():
                parts[name].data.copy_(found.tensors[f"ended.{k}"][place].view_as(parts[name]))
        restore_randomness(found.tensors, self.device)
        self.kept = (self.step, self.latest)
        self.lap()

    def identity(self, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run, in a form that JSON gives back as it was."""
        each = {f"{k}.{name}": part for k, model in enumerate(self.models) for name, part in model.named_parameters()}
        return {
            "recipes": hashlib.sha256(repr(self.recipes).encode()).hexdigest()[:16],
            "model": type(self.stack.shape).__name__,
            "initial weights": fingerprint(each),
            "first batch": fingerprint(dict(zip(("inputs", "targets"), batch, strict=True))),
            "measures": [list(each) for each in self.measures],
            "rows": fingerprint({"marks": torch.tensor(list(self.marks))}),
            "until": self.until is not None,
            "compile": self.compile,
            "device": self.device.type,
            "layout": 2,  # of the row of weights: each begins at a multiple of 32
        }

    def finished(self) -> list[Trained]:
        """Every model with its weights, its rows, and why it ended; time is shared out evenly."""
        share = self.seconds / len(self.models), self.measuring / len(self.models)
        for place, k in enumerate(self.aboard):
            if k not in self.ended:
                self._end(place, "done" if self.step == self.steps and self.has_rows else "interrupted")
        return [
            Trained(model.eval(), self.rows[k], self.ended[k][1], self.ended[k][0], *share)
            for k, model in enumerate(self.models)
        ]

    def lap(self) -> float:
        """The seconds since the last call."""
        before, self.clock = self.clock, time.perf_counter()
        return self.clock - before


def _row(model: nn.Module) -> Tensor:
    """The weights that are trained, as a stack has them."""
    return flattened([part.detach() for part in model.parameters() if part.requires_grad])
