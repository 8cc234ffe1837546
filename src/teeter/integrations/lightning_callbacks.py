"""Lightning: sensitivity as a measure of progress, and as a penalty.

Nothing in teeter imports this file; it needs lightning (`pip install 'teeter[lightning]'`) or pytorch-lightning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from teeter.errors import InputError, MissingExtra
from teeter.integrations.adapters import logits_of
from teeter.integrations.progress import ProgressMeasure
from teeter.perturb import Inputs, Perturbation
from teeter.perturb.inputs import count
from teeter.train import SensitivityPenalty

_missing: str | None = None
try:
    from lightning.pytorch import Callback as _Callback  # pyright: ignore[reportMissingImports]
except ImportError:
    try:
        from pytorch_lightning import Callback as _Callback  # pyright: ignore[reportMissingImports]
    except ImportError as problem:  # the class below says so when it is used
        _Callback, _missing = object, str(problem)

__all__ = ["PenaltyModule", "SensitivityCallback"]

_SPREAD = {"FSDPStrategy", "DeepSpeedStrategy", "ModelParallelStrategy"}


class SensitivityCallback(_Callback):  # pyright: ignore[reportGeneralTypeIssues]
    """Logs sensitivity every `every` steps of the optimizer, within a share of the training time.

        Trainer(callbacks=[SensitivityCallback(inputs, PatchNoise(4, 1.0), every=100, share=0.05)])

    What is measured is the LightningModule itself, by its `forward`. The rows go to every logger of the trainer, at any
    `log_every_n_steps`, and into `trainer.callback_metrics`: `sensitivity`, `sensitivity_low`, `sensitivity_high`, and
    likewise `sharpness` and `blowup` where asked for. The options, and what keeps the share, are those of
    `ProgressMeasure`, which is `callback.measure`. The training is bit for bit what it would be without. With several
    processes, the first measures while the others wait; models whose weights are spread over processes cannot be
    measured like this.
    """

    def __init__(self, inputs: Inputs, perturbation: Perturbation, **options: Any) -> None:
        if _missing is not None:
            raise MissingExtra(f"the callback needs lightning ({_missing}): pip install 'teeter[lightning]'")
        self.measure = ProgressMeasure(inputs, perturbation, **options)
        self._step = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if type(trainer.strategy).__name__ in _SPREAD:
            raise InputError("a model spread over processes by FSDP or DeepSpeed cannot be measured in training")
        self._step = trainer.global_step
        if trainer.is_global_zero:
            self.measure.begin(pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self._step or not trainer.is_global_zero:
            return  # the optimizer has not moved: gradients are being accumulated
        self._step = trainer.global_step
        row = self.measure.at(trainer.global_step, pl_module)
        if row is not None:
            # Through the module they would reach the loggers only at every log_every_n_steps-th step.
            pl_module.log_dict(row, logger=False, rank_zero_only=True)
            for logger in trainer.loggers:
                logger.log_metrics(row, step=trainer.global_step - 1)  # Lightning's own rows count from 0

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self.measure.end()


class PenaltyModule:
    """A mixin that adds a `SensitivityPenalty` to the loss of a LightningModule's `training_step`.

        class Steady(PenaltyModule, Classifier): ...
        model = Steady(...); model.penalty = SensitivityPenalty(PatchNoise(4, 1.0), 0.25)

    The inputs and outputs are those of the first time that `training_step` calls the module itself, `self(x)`. With
    `mix = True` the loss is (1 - p) * loss + p * distance, as V's released code has it. The noise is a pure function of
    (seed, step, row), the rows of a step counted through its parts and processes, so a resumed run draws what an
    uninterrupted one would have. For a loss of one's own making the one line in `training_step` does as well:
    `loss = loss + penalty(self, x, logits, step=self.global_step)`.
    """

    penalty: SensitivityPenalty | None = None
    mix = False
    _at = (-1, 0)  # the step, and how many of its rows were drawn

    def training_step(self, *given: Any, **named: Any) -> Any:
        module: Any = self
        parent: Any = super()
        if self.penalty is None:
            return parent.training_step(*given, **named)
        seen: list[tuple[Any, Any]] = []

        def watch(called: nn.Module, inputs: tuple[Any, ...], outputs: Any) -> None:
            seen.append((inputs[0] if len(inputs) == 1 else None, outputs))

        handle = module.register_forward_hook(watch)
        try:
            answer = parent.training_step(*given, **named)
        finally:
            handle.remove()
        if not seen or seen[0][0] is None:
            raise InputError("training_step is to call the module itself on the inputs alone, as self(x)")
        loss = answer["loss"] if isinstance(answer, Mapping) else answer
        loss = self._penalised(loss, *seen[0])
        return {**answer, "loss": loss} if isinstance(answer, Mapping) else loss

    def _penalised(self, loss: Any, inputs: Inputs, outputs: Any) -> Any:
        assert self.penalty is not None
        module: Any = self
        step = module.global_step
        first = self._at[1] if self._at[0] == step else 0
        self._at = (step, first + count(inputs))
        where = {"step": step, "start": (module.global_rank << 40) + first}
        if self.mix:
            return self.penalty.mixed(loss, module, inputs, logits_of(outputs), **where)
        return loss + self.penalty(module, inputs, logits_of(outputs), **where)
