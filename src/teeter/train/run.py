"""One run under way: a step of it, a row of it, its state to disk and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from teeter.errors import InputError, NotFinite, TeeterError
from teeter.measure.arithmetic import computing_in
from teeter.perturb.inputs import Inputs
from teeter.train.checkpoint import read_checkpoint, same_run, write_checkpoint
from teeter.train.interrupts import Interrupts
from teeter.train.losses import LOSSES
from teeter.train.measures import Measure
from teeter.train.optimizers import make_optimizer
from teeter.train.recipe import Recipe, rate_at
from teeter.train.recorded import Recorded, room_to_compile
from teeter.train.rows import measured
from teeter.train.state import captured, fingerprint, kept_weights, restore, weights_of

__all__ = ["Diverged", "Penalty", "Row", "Run"]

Row: TypeAlias = dict[str, Any]
Penalty: TypeAlias = Callable[..., Tensor]  # (model, inputs, outputs) -> what the loss gains

_ADVICE = "try a smaller rate, a warmup, or clip"


class Diverged(TeeterError, ArithmeticError):
    """A loss or weights that are no longer finite numbers; `rows` are those from before."""

    def __init__(self, message: str, rows: list[Row]) -> None:
        super().__init__(message)
        self.rows = rows


@dataclass(eq=False)
class Run:
    """A model on its way; `step` is how many steps it has done."""

    model: nn.Module
    recipe: Recipe
    device: torch.device
    forward: Callable[[Any], Any]  # the model, or the model compiled
    penalty: Penalty | None
    longest: int  # the most steps from one row to the next
    record: bool  # whether a step is recorded as one CUDA graph
    step: int = 0
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0
    measuring: float = 0.0

    def __post_init__(self) -> None:
        self.trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        recipe = self.recipe
        self.recorded = Recorded(self.device) if self.record else None
        self.rate = torch.tensor(recipe.rate, device=self.device)  # where a recording reads it
        rate = self.rate if self.record else recipe.rate
        self.optimizer = make_optimizer(recipe.optimizer, self.trained, rate, recipe.weight_decay)
        self.number = torch.zeros((), dtype=torch.int64, device=self.device)  # of the penalty's step, likewise
        self.latest = torch.zeros(2, dtype=torch.float64, device=self.device)
        # The loss and the penalty of every batch since the last row: on the device, so that no step waits for it.
        self.seen = torch.zeros(2, self.longest, dtype=torch.float64, device=self.device)
        self.kept: tuple[int, int] | None = None  # steps and rows of the latest checkpoint
        self.clock = time.perf_counter()

    def advance(self, inputs: Inputs, targets: Tensor) -> None:
        """One step on a batch."""
        rate = rate_at(self.recipe, self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate.fill_(rate) if self.record else rate
        if self.recorded is not None:
            number = () if self.penalty is None else (self.number.fill_(cast(Any, self.penalty).next()),)
            self.recorded(self._once, self._changing, cast(Tensor, inputs), targets, *number)
        else:
            self._once(inputs, targets)
        self.seen[:, self.step - self.rows[-1]["step"]] = self.latest
        self.step += 1

    def _changing(self) -> list[Tensor]:
        """What a step changes, and the next one reads."""
        states = [value for each in self.optimizer.state.values() for value in each.values()]
        return [*weights_of(self.model).values(), *(value for value in states if isinstance(value, Tensor))]

    def _once(self, inputs: Inputs, targets: Tensor, number: Tensor | None = None) -> None:
        """The step itself; `latest` is then the loss before it, and the penalty. A penalty that is recorded is told
        the number of its step, since nothing counts where a recording is launched."""
        recipe = self.recipe
        self.optimizer.zero_grad()
        with computing_in(recipe.arithmetic, self.device), room_to_compile(self.forward is not self.model):
            answer = self.forward(inputs)
            outputs = getattr(answer, "logits", answer)
            if not isinstance(outputs, Tensor):
                raise InputError(f"a model returns a tensor, or has it as .logits, got {type(answer).__name__}")
            loss = total = LOSSES[recipe.loss](outputs, targets)
            if self.penalty is not None:
                more = {} if number is None else {"step": number}
                nudged = self.forward if getattr(self.penalty, "of_inputs", False) else self.model
                extra = self.penalty(nudged, inputs, outputs, **more)
                if not isinstance(extra, Tensor) or extra.numel() != 1:
                    raise InputError(f"a penalty is a tensor of one number, got {extra!r}")
                self.latest[1] = extra.detach()
                total = loss + extra
            with torch.autocast(self.device.type, enabled=False):  # gradients have the types of the forward pass
                total.backward()
        if recipe.clip is not None:
            clip_grad_norm_(self.trained, recipe.clip)
        self.optimizer.step()
        self.latest[0] = loss.detach()

    @property
    def has_row(self) -> bool:
        """Whether this step was measured."""
        return bool(self.rows) and self.rows[-1]["step"] == self.step

    def measure(self, measures: Mapping[str, Measure], interrupts: Interrupts) -> None:
        """One row; where it is interrupted there is none, and a resumed run makes it."""
        seen = self.look()
        self.seconds += self.lap()
        row: Row = {"step": self.step, "loss": _mean(seen[0]), "rate": rate_at(self.recipe, max(self.step - 1, 0))}
        if self.penalty is not None:
            row["penalty"] = _mean(seen[1])
        try:
            row |= measured(self.model, measures, self.device)
        except NotFinite as problem:
            raise Diverged(f"after step {self.step - 1} {problem}: {_ADVICE}", self.rows) from None
        self.measuring += self.lap()
        if interrupts.asked:  # a measure may answer an interrupt with what it has seen by then
            raise KeyboardInterrupt
        self.rows.append(row)

    def look(self) -> Tensor:
        """The losses and penalties since the last row, on the host, which waits for the device; all are numbers."""
        last = self.rows[-1]["step"] if self.rows else 0
        seen = self.seen[:, : self.step - last].cpu()
        bad = torch.isfinite(seen.sum(0)).logical_not().nonzero().flatten().tolist()
        if bad:
            loss, penalty = seen[:, bad[0]].tolist()
            what = f"loss of step {last + bad[0]} is {loss}" + (f" and its penalty {penalty}" if self.penalty else "")
            raise Diverged(f"the {what}: {_ADVICE}", self.rows)
        if not bool(torch.stack([torch.isfinite(weight).all() for weight in self.trained]).all()):
            raise Diverged(f"after step {self.step - 1} some weights are NaN or infinite: {_ADVICE}", self.rows)
        return seen

    def save(self, folder: Path | str, identity: Mapping[str, Any]) -> None:
        """The state to disk, unless it is there already."""
        if self.kept == (self.step, len(self.rows)):
            return
        self.look()  # what is not a number is not kept
        self.seconds += self.lap()
        tensors = {**captured(self.model, self.optimizer, self.device), "seen": self.seen}
        facts = {"step": self.step, "rows": self.rows, "seconds": self.seconds, "measuring": self.measuring}
        for name, value in getattr(self.penalty, "state_dict", dict)().items():
            (tensors if isinstance(value, Tensor) else facts)[f"penalty.{name}"] = value
        write_checkpoint(folder, tensors, {**facts, "run": dict(identity)})
        self.kept = (self.step, len(self.rows))

    def resume(self, folder: Path | str, identity: dict[str, Any]) -> None:
        """The state from disk, where there is one; one of another run is an error."""
        found = read_checkpoint(folder)
        if found is None:
            return
        there = found.facts["run"]
        if identity["initial weights"] == fingerprint(
            kept_weights(found.tensors)
        ):  # the very model that was interrupted
            identity["initial weights"] = there["initial weights"]
        same_run(folder, there, identity)
        restore(found.tensors, self.model, self.optimizer, self.device)
        state = {name: value for name, value in (found.tensors | found.facts).items() if name.startswith("penalty.")}
        if state:  # of a penalty that counts its steps, or has weights of its own
            cast(Any, self.penalty).load_state_dict({name.removeprefix("penalty."): state[name] for name in state})
        self.seen.copy_(found.tensors["seen"])
        self.step, self.rows = found.facts["step"], found.facts["rows"]
        self.seconds, self.measuring = found.facts["seconds"], found.facts["measuring"]
        self.kept = (self.step, len(self.rows))
        self.lap()

    def lap(self) -> float:
        """The seconds since the last call."""
        before, self.clock = self.clock, time.perf_counter()
        return self.clock - before


def _mean(values: Tensor) -> float | None:
    return float(values.mean()) if len(values) else None
