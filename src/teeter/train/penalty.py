"""Train a network to change its mind less: a penalty on how far one nudged token moves its outputs (V section 7.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.door import check_perturbation
from teeter.perturb import InputNoise, Inputs, PatchNoise, PatchReplace, Perturbation
from teeter.perturb.inputs import count, device_of
from teeter.train.draws import draw

__all__ = ["SensitivityPenalty", "ramp"]


class SensitivityPenalty:
    """strength * mean over the batch of the distance between the outputs on a row as it is and with one token nudged.

    The one line in a training loop, with the model in training mode and `outputs` what it said of the inputs:

    >>> from teeter.perturb import PatchNoise
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    >>> inputs, labels = torch.randn(5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    >>> penalty = SensitivityPenalty(PatchNoise(patch=4, sigma2=1.0), strength=0.25)
    >>> outputs = model(inputs)
    >>> loss = nn.functional.cross_entropy(outputs, labels)
    >>> loss = loss + penalty(model, inputs, outputs)
    >>> loss.backward()

    `distance` is "mse", the mean square over rows and outputs, or "kl", KL(softmax(clean) || softmax(nudged)) in nats.
    `gradient` is "both", through both runs of the model, or "stop", which takes the clean outputs as given. `schedule`
    is a function of the step to what the strength is multiplied by; while that is 0 nothing is run. V's setting is
    PatchNoise(4, 1.0), strength 0.25, "mse", "both"; its released code weighs the two parts instead: `mixed`.

    Which token, and the noise, are a pure function of (seed, step, row). The step is counted from call to call, or
    given; `state_dict` holds the counter, so that a resumed run draws what an uninterrupted one would have.

    With `recorded`, `train(record=True)` launches all of a step as one CUDA graph on a GPU, the penalty with it: there
    is then no schedule, and nothing in the perturbation may wait for the device.

    The nudged run is in whatever mode the model is in. Dropout draws a mask of its own there, so that what dropout
    changes is penalised as well, as in V's code. BatchNorm normalises the nudged batch by its own statistics, and its
    running averages see only the clean one.
    """

    def __init__(
        self,
        perturbation: Perturbation,
        strength: float,
        *,
        distance: Literal["mse", "kl"] = "mse",
        gradient: Literal["both", "stop"] = "both",
        schedule: Callable[[int], float] | None = None,
        seed: int = 0,
        recorded: bool = False,
    ) -> None:
        check_perturbation(perturbation)
        if recorded and schedule is not None:
            raise InputError(
                "a penalty that is recorded has one strength at all steps: leave schedule= or recorded= out"
            )
        if distance not in _DISTANCES:
            raise InputError(f"the distance is 'mse' or 'kl', got {distance!r}")
        if gradient not in ("both", "stop"):
            raise InputError(f"the gradient is 'both' or 'stop', got {gradient!r}")
        self.perturbation, self.strength, self.schedule, self.seed = perturbation, strength, schedule, seed
        self.distance, self.gradient, self.recorded = distance, gradient, recorded
        self.step = 0
        self._check(strength)

    def __call__(
        self,
        model: Callable[[Any], Any],
        inputs: Inputs,
        outputs: Any,
        *,
        step: int | Tensor | None = None,
        start: int = 0,
    ) -> Tensor:
        """The penalty of a batch: a scalar to add to the loss. Row r counts as row `start` + r of the step; one that is
        given as a tensor, on the device of the inputs, is not counted."""
        if isinstance(step, Tensor):
            return self.strength * self._distance(model, inputs, outputs, step, start)
        step = self.next(step)
        factor = self.factor(step)
        if factor == 0:
            return _logits(outputs).new_zeros(())
        return factor * self._distance(model, inputs, outputs, step, start)

    def mixed(
        self,
        loss: Tensor,
        model: Callable[[Any], Any],
        inputs: Inputs,
        outputs: Any,
        *,
        step: int | None = None,
        start: int = 0,
    ) -> Tensor:
        """(1 - p) * loss + p * distance, with p the strength times the schedule, as V's released code has it."""
        step = self.next(step)
        factor = self.factor(step)
        if factor > 1:
            raise InputError(f"a share of the loss is between 0 and 1, got a strength of {factor} at step {step}")
        if factor == 0:
            return loss
        return (1 - factor) * loss + factor * self._distance(model, inputs, outputs, step, start)

    @property
    def of_inputs(self) -> bool:
        """Whether what is nudged goes into the model, and is no part of it: then a compiled model may be asked too."""
        return isinstance(self.perturbation, PatchNoise | PatchReplace | InputNoise)

    def factor(self, step: int) -> float:
        """The strength at a step."""
        return self._check(self.strength * (1.0 if self.schedule is None else float(self.schedule(step))))

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]

    def next(self, step: int | None = None) -> int:
        """Count a step: the number of it."""
        now = self.step if step is None else step
        self.step = now + 1
        return now

    def _check(self, strength: float) -> float:
        if not (strength >= 0 and math.isfinite(strength)):
            raise InputError(f"a strength is a number of at least 0, got {strength}")
        return strength

    def _distance(
        self, model: Callable[[Any], Any], inputs: Inputs, outputs: Any, step: int | Tensor, start: int
    ) -> Tensor:
        clean = _logits(outputs)
        row = torch.arange(start, start + count(inputs), device=device_of(inputs))
        noise, there = draw(self.perturbation, inputs, row, seed=self.seed, step=step)
        with _averages_kept(model):
            nudged = _logits(self.perturbation.run(model, inputs, noise))
        if clean.ndim not in (1, 2) or len(clean) != len(there) or clean.shape != nudged.shape:
            rows = len(there)
            raise InputError(
                f"outputs for {rows} inputs are ({rows},) or ({rows}, classes) numbers, clean and nudged alike, "
                f"got {tuple(clean.shape)} and {tuple(nudged.shape)}"
            )
        if self.gradient == "stop":
            clean = clean.detach()
        each = _DISTANCES[self.distance](clean, nudged)
        there = there.to(each.device)
        return torch.where(there, each, 0).sum() / there.sum().clamp_min(1)  # rows of padding alone do not count


def ramp(steps: int, start: int = 0) -> Callable[[int], float]:
    """A schedule: 0 until step `start`, then up in a straight line to 1, `steps` later.

    >>> [ramp(4, start=2)(step) for step in (0, 2, 3, 6, 100)]
    [0.0, 0.0, 0.25, 1.0, 1.0]
    """
    if steps < 1:
        raise InputError(f"a ramp takes at least 1 step, got {steps}")
    return lambda step: min(max((step - start) / steps, 0.0), 1.0)


def _mean_square(clean: Tensor, nudged: Tensor) -> Tensor:
    return (clean - nudged).square().reshape(len(clean), -1).mean(-1)


def _divergence(clean: Tensor, nudged: Tensor) -> Tensor:
    before, after = (_log_shares(output) for output in (clean, nudged))
    return (before.exp() * (before - after)).sum(-1)


def _log_shares(output: Tensor) -> Tensor:
    """Log-probabilities; a scalar is the logit of one of two classes."""
    if output.ndim == 1 or output.shape[-1] == 1:
        output = torch.stack([output.reshape(-1), torch.zeros_like(output.reshape(-1))], -1)
    return output.log_softmax(-1)


_DISTANCES = {"mse": _mean_square, "kl": _divergence}


def _logits(answer: Any) -> Tensor:
    logits = getattr(answer, "logits", answer)
    if not isinstance(logits, Tensor):
        raise InputError(f"outputs are a tensor, or have one as .logits, got {type(answer).__name__}")
    return logits if logits.dtype == torch.float64 else logits.float()  # a difference in half precision is mostly noise


@contextmanager
def _averages_kept(model: Callable[[Any], Any]) -> Iterator[None]:
    """Without moving the running averages of BatchNorm: in evaluation it is to meet inputs that nobody has nudged."""
    norms = []
    if isinstance(model, nn.Module):
        kind = nn.modules.batchnorm._NormBase
        norms = [m for m in model.modules() if isinstance(m, kind) and m.training and m.track_running_stats]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
