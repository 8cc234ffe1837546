"""Measuring a model while it is being trained, within a share of the training time and without a trace in the training.

What the callbacks for transformers and Lightning have in common; any loop of one's own can use it as well.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure import Estimate, blowup, sensitivity, sharpness
from teeter.perturb import Inputs, Perturbation
from teeter.perturb.inputs import count, take
from teeter.train.rows import undisturbed

__all__ = ["ProgressMeasure"]

_TRIED = 64  # inputs in the trial that tells what a forward costs


class ProgressMeasure:
    """Sensitivity, and if asked for sharpness and blow-up, of a model on `inputs` every `every` steps.

    `share` is how much of the training time it may take: where a measurement would take more than that share of the
    training time so far, counting all that were made before, it is left out, and the next is due `every` steps later.
    What the first would take is told by a trial on a few inputs at the beginning. With `share=None` none is left out.

    A measurement is `budget` forwards with the same draws every time, so its values depend on the model alone; the
    clock only decides which steps are measured. `sharpness` and `blowup` hold options of these measures, {} for none.

    >>> from teeter.perturb import BitFlip
    >>> _ = torch.manual_seed(0)
    >>> measure = ProgressMeasure(torch.ones(50, 4).cumprod(1), BitFlip(), every=10, share=None, budget=200)
    >>> model = nn.Linear(4, 2)
    >>> measure.begin(model)
    >>> measure.at(9, model), sorted(measure.at(10, model))
    (None, ['sensitivity', 'sensitivity_high', 'sensitivity_low'])
    """

    def __init__(
        self,
        inputs: Inputs,
        perturbation: Perturbation,
        *,
        every: int = 100,
        share: float | None = 0.05,
        budget: int = 2000,
        sharpness: Mapping[str, Any] | None = None,
        blowup: Mapping[str, Any] | None = None,
        seed: int = 0,
        batch: int = 256,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if every < 1:
            raise InputError(f"a measurement is due every so many steps, at least 1, got {every}")
        if share is not None and not 0 < share < math.inf:
            raise InputError(f"share is a part of the training time above 0, or None for no limit, got {share}")
        self.inputs, self.perturbation, self.every, self.share, self.budget = inputs, perturbation, every, share, budget
        self.sharpness, self.blowup, self.seed, self.batch, self.clock = sharpness, blowup, seed, batch, clock
        self.made = self.waited = 0  # measurements, and those left out
        self.spent = 0.0  # seconds in measurements
        self.expected = 0.0  # seconds the next will take
        self._began = clock()

    def begin(self, model: nn.Module) -> None:
        """Start the clock, and try the measures on a few inputs: what is wrong with them shows before the training."""
        self._began, self.spent, self.made, self.waited = self.clock(), 0.0, 0, 0
        inputs = _to_model(self.inputs, model)
        some = take(inputs, torch.arange(min(_TRIED, count(inputs))))
        with undisturbed(model, _device(model)):
            self._row(model, some, 2 * count(some))  # the first run of anything is slow
            _wait_for(model)
            start = self.clock()
            self._row(model, some, 2 * count(some))
            seconds = self.clock() - start
        # On a GPU larger batches are faster, so this is rather too much than too little.
        times = self.budget / (2 * count(some))
        if self.sharpness is not None or self.blowup is not None:  # which take all inputs, whatever the budget
            times = max(times, count(inputs) / count(some))
        self.expected = seconds * times
        self.spent = self.clock() - self._began

    @property
    def used(self) -> float:
        """The time spent on measurements as a share of the training time so far."""
        return self.spent / max(self.clock() - self._began - self.spent, 1e-9)

    def at(self, step: int, model: nn.Module) -> dict[str, float] | None:
        """What is measured after so many steps, or None where nothing is due or affordable."""
        if step % self.every or step == 0:
            return None
        _wait_for(model)  # for the training steps still under way, which are not ours to pay for
        start = self.clock()
        trained = start - self._began - self.spent
        if self.share is not None and self.spent + self.expected > self.share * trained:
            self.waited += 1
            return None
        inputs = _to_model(self.inputs, model)
        with undisturbed(model, _device(model)):
            try:
                row = self._row(model, inputs, self.budget)
            except InputError:
                if _finite(model, inputs):
                    raise
                row = {"sensitivity": math.nan}  # a training that has diverged will say so itself
        self.expected = self.clock() - start
        self.spent += self.expected
        self.made += 1
        return row

    def end(self) -> None:
        """Say so if there was no time for a single measurement."""
        if self.made == 0 and self.waited > 0 and self.share is not None:
            trained = self.clock() - self._began - self.spent
            warnings.warn(
                f"no measurement was made: one takes about {self.expected:.2g} s, more than {self.share:.3g} of the "
                f"{trained:.2g} s of training; raise share or lower budget",
                stacklevel=2,
            )

    def _row(self, model: nn.Module, inputs: Inputs, budget: int) -> dict[str, float]:
        measures: dict[str, Callable[[], Estimate]] = {
            "sensitivity": lambda: sensitivity(
                model, inputs, self.perturbation, budget=budget, seed=self.seed, batch=self.batch
            )
        }
        if self.sharpness is not None:
            options = {"seed": self.seed, "batch": self.batch, **self.sharpness}
            measures["sharpness"] = lambda: sharpness(model, inputs, **options)
        if self.blowup is not None:
            options_ = {"batch": self.batch, **self.blowup}
            measures["blowup"] = lambda: blowup(model, inputs, **options_).estimate()
        row: dict[str, float] = {}
        for name, measure in measures.items():
            found = measure()
            row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        return row


def _finite(model: nn.Module, inputs: Inputs) -> bool:
    with torch.no_grad():
        answer = model(take(inputs, torch.arange(min(_TRIED, count(inputs)))))
        return bool(torch.isfinite(getattr(answer, "logits", answer)).all())


def _device(model: nn.Module) -> torch.device:
    weight = next(model.parameters(), None)
    return torch.device("cpu") if weight is None else weight.device


def _wait_for(model: nn.Module) -> None:
    place = _device(model)
    if place.type == "cuda":
        torch.cuda.synchronize(place)


def _to_model(inputs: Inputs, model: nn.Module) -> Inputs:
    place = _device(model)
    return inputs.to(place) if isinstance(inputs, Tensor) else {name: part.to(place) for name, part in inputs.items()}
