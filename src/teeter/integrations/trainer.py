"""transformers' Trainer: sensitivity as a measure of progress, and as a penalty.

Nothing in teeter imports this file; `Trainer` itself also needs accelerate (`pip install 'teeter[trainer]'`).
"""

from __future__ import annotations

from typing import Any

from torch import nn

from teeter.errors import InputError
from teeter.integrations.adapters import Keywords, adapt, library, logits_of
from teeter.integrations.progress import ProgressMeasure
from teeter.perturb import Inputs, Perturbation
from teeter.perturb.inputs import count
from teeter.train import SensitivityPenalty

try:
    from transformers import TrainerCallback as _Callback
except ImportError:  # the class below says so when it is used
    _Callback = object

__all__ = ["PenaltyTrainer", "SensitivityCallback"]


class SensitivityCallback(_Callback):  # pyright: ignore[reportGeneralTypeIssues]
    """Logs sensitivity every `every` steps through the trainer, within a share of the training time.

        trainer.add_callback(SensitivityCallback(trainer, inputs, EmbeddingNoise(sigma2=1.0), every=100, share=0.05))

    The rows appear in `trainer.state.log_history` and wherever else the trainer logs to: `sensitivity`,
    `sensitivity_low` and `sensitivity_high`, and likewise `sharpness` and `blowup` where asked for. The options, and
    what keeps the share, are those of `ProgressMeasure`, which is `callback.measure`. The training is bit for bit what
    it would be without. With several processes, the first measures while the others wait; models whose weights are
    spread over processes cannot be measured like this.
    """

    def __init__(self, trainer: Any, inputs: Inputs, perturbation: Perturbation, **options: Any) -> None:
        library()
        self.trainer = trainer
        self.measure = ProgressMeasure(inputs, perturbation, **options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        if self.trainer.is_fsdp_enabled or self.trainer.is_deepspeed_enabled:
            raise InputError("a model spread over processes by FSDP or DeepSpeed cannot be measured in training")
        if state.is_world_process_zero:
            self.measure.begin(_ready(self.trainer.model))

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        if not state.is_world_process_zero:
            return
        row = self.measure.at(state.global_step, _ready(self.trainer.model))
        if row is not None:
            due = control.should_log
            self.trainer.log(row)
            control.should_log = due  # a log of ours is not the one that was due

    def on_train_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        if state.is_world_process_zero:
            self.measure.end()


class PenaltyTrainer:
    """A mixin that adds a `SensitivityPenalty` to the loss of a Trainer, in training and not in evaluation.

        class Steady(PenaltyTrainer, Trainer): ...
        trainer = Steady(model, args, train_dataset=..., penalty=SensitivityPenalty(EmbeddingNoise(), 0.25))

    With `mix=True` the loss is (1 - p) * loss + p * distance, as V's released code has it. The noise is a pure function
    of (seed, step, row), the rows of a step counted through its parts and processes: a resumed run draws what an
    uninterrupted one would have, and two accumulated batches what one of their joint size would. The model is a
    classifier, whose inputs are all that the batch holds but its labels.
    """

    def __init__(self, *given: Any, penalty: SensitivityPenalty | None = None, mix: bool = False, **named: Any) -> None:
        super().__init__(*given, **named)
        self.penalty, self.mix = penalty, mix
        self._at = (-1, 0)  # the step, and how many of its rows were drawn

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **named: Any) -> Any:
        trainer: Any = super()
        loss, outputs = trainer.compute_loss(model, inputs, return_outputs=True, **named)
        if self.penalty is not None and model.training:
            loss = self._penalised(loss, model, inputs, outputs, named.get("num_items_in_batch"))
        return (loss, outputs) if return_outputs else loss

    def _penalised(self, loss: Any, model: nn.Module, inputs: dict[str, Any], outputs: Any, items: Any) -> Any:
        assert self.penalty is not None
        trainer: Any = self
        said = {name: part for name, part in inputs.items() if name not in trainer.label_names}
        step = trainer.state.global_step
        first = self._at[1] if self._at[0] == step else 0
        self._at = (step, first + count(said))
        # Where the loss is already a part of the whole batch's mean, so must be the penalty.
        parts = trainer.current_gradient_accumulation_steps if _whole(trainer, items) else 1
        where = {"step": step, "start": (trainer.args.process_index << 40) + first}
        alone = _ready(trainer.accelerator.unwrap_model(model))
        if self.mix:
            return self.penalty.mixed(loss * parts, alone, said, logits_of(outputs), **where) / parts
        return loss + self.penalty(alone, said, logits_of(outputs), **where) / parts


def _whole(trainer: Any, items: Any) -> bool:
    """Whether the Trainer takes a loss as it is, rather than to divide it by the number of accumulated parts."""
    said = getattr(trainer, "loss_is_scaled_for_ga", None)
    if said is not None:
        return said
    return (trainer.model_accepts_loss_kwargs and items is not None) or trainer.compute_loss_func is not None


def _ready(model: nn.Module) -> Any:
    """The model, which a Trainer calls by keywords, as a function from a batch to logits."""
    ready = adapt(model)
    return Keywords(model) if ready is model else ready
