"""The callback and the penalty in transformers' own Trainer, which needs accelerate: without it only the rest runs."""

import importlib.util
import math
import runpy
import sys

import pytest
import torch
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError
from teeter.integrations import Keywords, trainer
from teeter.integrations.trainer import PenaltyTrainer, SensitivityCallback
from teeter.train import SensitivityPenalty
from tests import tiny

needs_accelerate = pytest.mark.skipif(
    importlib.util.find_spec("accelerate") is None, reason="transformers' Trainer needs accelerate"
)
SWAP = perturb.TokenReplace(len(tiny.WORDS), skip=(0, 2, 3))
NOISE = perturb.EmbeddingNoise(sigma2=4.0)


def texts(rows=48, length=6):
    tokens = torch.randint(4, 13, (rows, length), generator=torch.Generator().manual_seed(0))
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


def rows():
    """Texts and whether their first word is among the later ones of the vocabulary."""
    batch = texts()
    labels = (batch["input_ids"][:, 0] > 8).long()
    return [{**{name: part[i] for name, part in batch.items()}, "labels": labels[i]} for i in range(len(labels))]


def classifier(dropout=0.1):
    from transformers import BertForSequenceClassification

    torch.manual_seed(0)
    options = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout, "initializer_range": 0.5}
    return BertForSequenceClassification(tiny.config("bert", vocab_size=len(tiny.WORDS), **options))


def make(folder, kind=None, model=None, penalty=None, **options):
    from transformers import Trainer, TrainingArguments
    from transformers.trainer_callback import PrinterCallback

    settings = {"max_steps": 10, "per_device_train_batch_size": 8, "logging_steps": 4, "learning_rate": 1e-3}
    settings |= {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "use_cpu": True, "seed": 0}
    settings |= {"dataloader_pin_memory": False}
    extra = {} if penalty is None else {"penalty": penalty, "mix": options.pop("mix", False)}
    kind = type("Steady", (PenaltyTrainer, Trainer), {}) if penalty is not None else kind or Trainer
    args = TrainingArguments(str(folder), **(settings | options))
    made = kind(classifier() if model is None else model, args, train_dataset=rows(), eval_dataset=rows()[:8], **extra)
    made.remove_callback(PrinterCallback)
    return made


def weights(made):
    return {name: weight.detach().clone() for name, weight in made.model.named_parameters()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    names = runpy.run_path(trainer.__file__)
    with pytest.raises(InputError, match=r"need transformers .*teeter\[text\]"):
        names["SensitivityCallback"](None, texts(), SWAP)


# The callback


@needs_accelerate
def test_rows_appear_in_the_trainers_log(tmp_path):
    made = make(tmp_path)
    seen = []

    from transformers import TrainerCallback

    class Logger(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **named):
            seen.append(dict(logs))

    made.add_callback(Logger())
    made.add_callback(SensitivityCallback(made, texts(), SWAP, every=2, share=None, budget=200, blowup={}))
    made.train()
    ours = [row for row in made.state.log_history if "sensitivity" in row]
    assert [row["step"] for row in ours] == [2, 4, 6, 8, 10]
    assert all(row["sensitivity_low"] <= row["sensitivity"] <= row["sensitivity_high"] for row in ours)
    assert all(row["blowup"] > 0 for row in ours)
    assert [row["sensitivity"] for row in seen if "sensitivity" in row] == [row["sensitivity"] for row in ours]
    assert [row["step"] for row in made.state.log_history if "loss" in row] == [4, 8]  # as without the callback
    last = teeter.sensitivity(Keywords(made.model.eval()), texts(), SWAP, budget=200, batch=256)
    assert ours[-1]["sensitivity"] == last.value


@needs_accelerate
def test_training_is_bit_for_bit_the_same_with_the_callback(tmp_path):
    without = make(tmp_path)
    without.train()
    with_ = make(tmp_path)  # which sets the seed
    callback = SensitivityCallback(with_, texts(), NOISE, every=1, share=None, budget=100)
    with_.add_callback(callback)
    with_.train()
    assert callback.measure.made == 10
    assert same(weights(without), weights(with_))
    losses = [[row["loss"] for row in each.state.log_history if "loss" in row] for each in (without, with_)]
    assert losses[0] == losses[1]


@needs_accelerate
def test_the_share_is_kept_in_real_time(tmp_path):
    made = make(tmp_path, max_steps=60)
    callback = SensitivityCallback(made, texts(), NOISE, every=1, share=0.2, budget=200)
    made.add_callback(callback)
    made.train()
    measure = callback.measure
    assert measure.made + measure.waited == 60 and measure.waited > 0
    # The clock runs on while the training ends, and one measurement may take longer than the one before.
    assert measure.used < 0.2 + measure.expected / measure.spent


@needs_accelerate
def test_too_little_time_is_said_at_the_end(tmp_path):
    made = make(tmp_path, max_steps=2)
    made.add_callback(SensitivityCallback(made, texts(), NOISE, every=1, share=1e-6))
    with pytest.warns(UserWarning, match="no measurement was made"):
        made.train()


@needs_accelerate
def test_models_over_processes_are_refused(tmp_path):
    made = make(tmp_path)
    made.add_callback(SensitivityCallback(made, texts(), SWAP))
    made.is_fsdp_enabled = True
    with pytest.raises(InputError, match="FSDP or DeepSpeed"):
        made.callback_handler.on_train_begin(made.args, made.state, made.control)


def test_only_the_first_process_measures():
    class Elsewhere:
        is_world_process_zero, global_step = False, 2

    class Made:
        is_fsdp_enabled = is_deepspeed_enabled = False
        model = nn.Linear(2, 2)

    callback = SensitivityCallback(Made(), texts(), SWAP, every=1, share=None)
    for event in (callback.on_train_begin, callback.on_step_end, callback.on_train_end):
        event(None, Elsewhere(), None)
    assert callback.measure.made == callback.measure.waited == 0


# The penalty


@needs_accelerate
@pytest.mark.parametrize("mix", [False, True])
def test_the_loss_is_that_of_a_naive_twin(tmp_path, mix):
    penalty = SensitivityPenalty(NOISE, 0.25, seed=3)
    made = make(tmp_path, model=classifier(dropout=0.0), penalty=penalty, mix=mix)
    batch = {name: torch.stack([row[name] for row in rows()[:8]]) for name in rows()[0]}
    made.model.train()
    made.state.global_step = 5
    made.current_gradient_accumulation_steps = 1
    loss = made.compute_loss(made.model, dict(batch))
    said = {name: part for name, part in batch.items() if name != "labels"}
    answer = made.model(**batch)
    plain = SensitivityPenalty(NOISE, 0.25, seed=3)(Keywords(made.model), said, answer, step=5)
    torch.testing.assert_close(loss, (0.75 if mix else 1) * answer.loss + plain)
    assert float(plain.detach()) > 1e-3
    made.model.eval()
    loss, outputs = made.compute_loss(made.model, dict(batch), return_outputs=True)
    torch.testing.assert_close(loss, answer.loss)  # evaluation is about the task alone
    assert outputs.logits.shape == (8, 2)


@needs_accelerate
@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_accumulated_batches_are_one(tmp_path, mix, scaled):
    """Two batches of 4 are penalised as one of 8, row by row, whoever divides the loss by the number of parts."""

    def part_of_the_mean(outputs, labels, num_items_in_batch):
        return nn.functional.cross_entropy(outputs["logits"], labels, reduction="sum") / num_items_in_batch

    def fitted(batch, parts, strength):
        penalty = SensitivityPenalty(SWAP, strength)
        options = {"max_grad_norm": 0.0, "optim": "sgd", "learning_rate": 0.05, "max_steps": 3}
        options |= {"per_device_train_batch_size": batch, "gradient_accumulation_steps": parts}
        made = make(tmp_path, model=Own().double(), penalty=penalty, mix=mix, **options)
        made.compute_loss_func = part_of_the_mean if scaled else None
        made.train()
        return weights(made)

    whole, halves, without = fitted(8, 1, 0.5), fitted(4, 2, 0.5), fitted(8, 1, 0.0)
    for name, weight in whole.items():
        torch.testing.assert_close(halves[name], weight, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(without["head.weight"], whole["head.weight"], rtol=1e-4)


class Own(nn.Module):
    """A model of one's own, as the Trainer takes them: keywords in, a dict with the loss out."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(len(tiny.WORDS), 8)
        self.head = nn.Linear(8, 2)

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.head(torch.tanh(self.table(input_ids)).mean(1))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


@needs_accelerate
def test_a_resumed_run_is_the_whole_one_bit_for_bit(tmp_path):
    def made(folder, **options):
        return make(folder, penalty=SensitivityPenalty(NOISE, 0.5), save_strategy="steps", save_steps=6, **options)

    whole = made(tmp_path / "whole")
    whole.train()
    resumed = made(tmp_path / "resumed")
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-6"))
    assert same(weights(whole), weights(resumed))
    other = make(tmp_path, penalty=SensitivityPenalty(NOISE, 0.5, seed=1))
    other.train()
    assert not same(weights(whole), weights(other))


@needs_accelerate
def test_without_a_penalty_the_mixin_does_nothing(tmp_path):
    from transformers import Trainer

    plain = make(tmp_path)
    plain.train()
    mixin = make(tmp_path, kind=type("Steady", (PenaltyTrainer, Trainer), {}))
    mixin.train()
    assert same(weights(plain), weights(mixin))


@needs_accelerate
def test_penalty_and_callback_together_lower_the_sensitivity(tmp_path):
    found = {}
    for strength in (0.0, 1.0):
        made = make(tmp_path, penalty=SensitivityPenalty(NOISE, strength), max_steps=60, learning_rate=3e-3)
        made.add_callback(SensitivityCallback(made, texts(), NOISE, every=60, share=None))
        made.train()
        found[strength] = [row for row in made.state.log_history if "sensitivity" in row][-1]
        assert math.isfinite(found[strength]["sensitivity"])
    assert found[1.0]["sensitivity"] < 0.8 * found[0.0]["sensitivity"]
