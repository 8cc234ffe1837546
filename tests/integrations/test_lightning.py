"""The callback and the penalty in Lightning's own Trainer; without lightning only the rest runs."""

import runpy
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError
from teeter.integrations import lightning_callbacks
from teeter.train import SensitivityPenalty

BITS = torch.randint(0, 2, (64, 6), generator=torch.Generator().manual_seed(0)) * 2.0 - 1
LABELS = (BITS[:, 0] > 0).long()
FLIP = perturb.BitFlip()
# Lightning would rather have more workers, and torch another way to ask what a leaf is.
quiet = pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning", "ignore:.*LeafSpec:FutureWarning")


@pytest.fixture
def pl():
    return pytest.importorskip("lightning.pytorch", reason="lightning is not installed")


def callback(**options):
    return lightning_callbacks.SensitivityCallback(BITS, FLIP, **({"share": None, "budget": 100} | options))


def classifier(pl, penalty=None, mix=False, dropout=0.2, answer="loss"):
    class Classifier(pl.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 2)).double()

        def forward(self, x):
            return self.net(x.double())

        def training_step(self, batch, index):
            x, y = batch
            loss = nn.functional.cross_entropy(self(x), y)
            self.log("loss", loss)
            return loss if answer == "loss" else {"loss": loss, "more": 1}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.5)

    class Steady(lightning_callbacks.PenaltyModule, Classifier):
        pass

    made = Classifier() if penalty is None else Steady()
    if penalty is not None:
        made.penalty, made.mix = penalty, mix
    return made


def fit(pl, folder, module, callbacks=(), batch=16, resume=None, **options):
    from lightning.pytorch.loggers import CSVLogger

    data = torch.utils.data.TensorDataset(BITS, LABELS)
    settings = {"max_epochs": 3, "accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False}
    settings |= {"enable_checkpointing": False, "log_every_n_steps": 3, "logger": CSVLogger(folder)}
    trainer = pl.Trainer(callbacks=list(callbacks), **(settings | options))
    torch.manual_seed(1)
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=batch), ckpt_path=resume)
    return trainer


def weights(module):
    return torch.cat([weight.detach().flatten() for weight in module.parameters()]).clone()


def test_without_lightning(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    names = runpy.run_path(lightning_callbacks.__file__)
    with pytest.raises(InputError, match=r"the callback needs lightning .*teeter\[lightning\]"):
        names["SensitivityCallback"](BITS, FLIP)


# The callback


@quiet
def test_rows_reach_the_logger_at_every_measured_step(pl, tmp_path):
    made = callback(every=2, sharpness={"draws": 2})
    module = classifier(pl)
    trainer = fit(pl, tmp_path, module, [made])
    rows = read(trainer)
    ours = {int(row["step"]): float(row["sensitivity"]) for row in rows if row.get("sensitivity", "") != ""}
    assert sorted(ours) == [1, 3, 5, 7, 9, 11]  # twelve steps, counted from 0
    last = teeter.sensitivity(module.eval(), BITS, FLIP, budget=100, batch=256)
    assert ours[11] == last.value
    for name in ("sensitivity", "sensitivity_low", "sensitivity_high", "sharpness"):
        assert name in trainer.callback_metrics
    assert float(trainer.callback_metrics["sensitivity"]) == pytest.approx(last.value)
    assert made.measure.made == 6


def read(trainer):
    import csv

    trainer.logger.save()
    with open(trainer.logger.experiment.metrics_file_path) as file:
        return list(csv.DictReader(file))


@quiet
def test_training_is_bit_for_bit_the_same_with_the_callback(pl, tmp_path):
    plain, watched = classifier(pl), classifier(pl)
    fit(pl, tmp_path, plain)
    made = callback(every=1)
    fit(pl, tmp_path, watched, [made])
    assert made.measure.made == 12
    assert torch.equal(weights(plain), weights(watched))


@quiet
def test_accumulated_batches_are_one_step(pl, tmp_path):
    made = callback(every=1)
    fit(pl, tmp_path, classifier(pl), [made], accumulate_grad_batches=2)
    assert made.measure.made == 6


@quiet
def test_too_little_time_is_said_at_the_end(pl, tmp_path):
    with pytest.warns(UserWarning, match="no measurement was made"):
        fit(pl, tmp_path, classifier(pl), [callback(every=1, share=1e-9)])


def test_models_over_processes_are_refused(pl):
    class FSDPStrategy:
        pass

    with pytest.raises(InputError, match="FSDP or DeepSpeed"):
        callback().on_train_start(SimpleNamespace(strategy=FSDPStrategy()), None)


def test_only_the_first_process_measures(pl):
    made = callback(every=1)
    trainer = SimpleNamespace(strategy=None, is_global_zero=False, global_step=0)
    made.on_train_start(trainer, None)
    trainer.global_step = 1
    made.on_train_batch_end(trainer, None, None, None, 0)
    made.on_train_end(trainer, None)
    assert made.measure.made == made.measure.waited == 0


# The penalty


@quiet
@pytest.mark.parametrize("answer", ["loss", "mapping"])
@pytest.mark.parametrize("mix", [False, True])
def test_training_is_that_of_a_naive_loop(pl, tmp_path, mix, answer):
    penalty = SensitivityPenalty(FLIP, 0.5, seed=2)
    module = classifier(pl, penalty, mix, dropout=0.0, answer=answer)
    fit(pl, tmp_path, module)
    twin = classifier(pl, dropout=0.0)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.5)
    for step in range(12):
        rows = slice(step % 4 * 16, step % 4 * 16 + 16)
        outputs = twin(BITS[rows])
        loss = nn.functional.cross_entropy(outputs, LABELS[rows])
        loss = (0.5 if mix else 1) * loss + penalty(twin, BITS[rows], outputs, step=step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(weights(module), weights(twin), rtol=1e-10, atol=1e-12)


@quiet
def test_accumulated_batches_are_penalised_as_one(pl, tmp_path):
    whole, halves = (classifier(pl, SensitivityPenalty(FLIP, 0.5), dropout=0.0) for _ in range(2))
    fit(pl, tmp_path, whole, batch=16)
    fit(pl, tmp_path, halves, batch=8, accumulate_grad_batches=2)
    torch.testing.assert_close(weights(halves), weights(whole), rtol=1e-10, atol=1e-12)


@quiet
def test_a_resumed_run_draws_what_the_whole_one_does(pl, tmp_path):
    def made():
        return classifier(pl, SensitivityPenalty(FLIP, 0.5), dropout=0.0)

    whole, resumed = made(), made()
    fit(pl, tmp_path, whole)
    trainer = fit(pl, tmp_path, made(), max_epochs=2)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    fit(pl, tmp_path, resumed, resume=tmp_path / "half.ckpt")
    assert torch.equal(weights(whole), weights(resumed))


@quiet
def test_without_a_penalty_the_mixin_does_nothing(pl, tmp_path):
    plain, mixin = classifier(pl), classifier(pl, penalty=SensitivityPenalty(FLIP, 0.5))
    mixin.penalty = None
    fit(pl, tmp_path, plain)
    fit(pl, tmp_path, mixin)
    assert torch.equal(weights(plain), weights(mixin))


def test_a_step_that_does_not_call_its_module():
    class Parent(nn.Module):
        def training_step(self, batch):
            return batch.sum()

    class Steady(lightning_callbacks.PenaltyModule, Parent):
        penalty = SensitivityPenalty(FLIP, 0.5)

    with pytest.raises(InputError, match=r"call the module itself on the inputs alone, as self\(x\)"):
        Steady().training_step(BITS)
