"""What the studies of a + b mod p share: data, noise, measures, and runs that are the same however they are made."""

import dataclasses

import pandas as pd
import pytest
import torch

from teeter.data import modular_addition
from teeter.errors import UnknownName
from teeter.models import ModularAddition
from teeter.perturb import EmbeddingNoise, Noise
from teeter.studies.vasudeva2025 import adding
from teeter.studies.vasudeva2025.adding import Adder, BothNumbers
from teeter.studies.vasudeva2025.curves import first, largest_rise, rounded, smooth, squares
from teeter.train import Trained

CPU = torch.device("cpu")
TINY = {"p": 7, "dim": 8, "width": 8, "share": 0.5, "epochs": 5}


def test_rows_lie_as_squares_do():
    assert squares(200 * 200, 200)[:4] == [0, 1, 4, 9]
    assert squares(4, 5) == [0, 1, 3, 4]  # no epoch twice
    assert len(adding.marks(40_000)) == 101
    assert adding.marks(4)[-1] == 4


def test_what_is_read_off_a_curve():
    assert largest_rise([1.0, 3.0, 2.0, 5.0]) == (0, 3)
    assert largest_rise([8.0, 10.0, 1.0, 2.0]) == (2, 3)  # by ratio, not by difference
    assert smooth([0, 0, 9, 0, 0]).tolist() == [0, 0, 0, 0, 0]
    assert first([False, True, True], start=2) == 2
    assert first(pd.Series([True, False, False], index=[7, 8, 9]), start=1) is None


def test_rows_keep_five_digits_and_the_intervals_of_what_is_sampled():
    row = {"step": 3, "loss": None, "rate": 0.1, "a_accuracy": 0.123456, "a_accuracy_low": 0.1, "s_low": 1.234567}
    made = Trained(None, [row], 3, "done", 0, 0)
    assert rounded(made) == [{"a_accuracy": 0.12346, "s_low": 1.2346}]
    assert adding.rows(made) == [{"epoch": 3, "a_accuracy": 0.12346, "s_low": 1.2346, "whole": True}]


def test_new_pairs_are_those_whose_mirror_was_not_trained_on():
    train, test = modular_addition(7, share=0.5, seed=3, equals=True)
    seen = {tuple(pair[:2]) for pair in train.tokens.tolist()}
    expected = [(b, a) not in seen for a, b, _ in test.tokens.tolist()]
    assert adding.unmirrored(train, test).tolist() == expected
    assert True in expected
    assert False in expected


def test_random_labels_do_not_depend_on_the_order_of_a_pair():
    spec = Adder(2, p=11, labels="random")
    train, test = adding.labelled(spec, CPU)
    label = {
        (a, b): y
        for part in (train, test)
        for (a, b, _), y in zip(part.tokens.tolist(), part.labels.tolist(), strict=True)
    }
    assert len(label) == 121
    assert all(label[a, b] == label[b, a] for a, b in label)
    assert sum(label[a, b] == (a + b) % 11 for a, b in label) < 40  # about 11 by chance
    assert set(label.values()) == set(range(11))
    sums, _ = adding.labelled(dataclasses.replace(spec, labels="sum"), CPU)
    assert torch.equal(sums.tokens, train.tokens)
    assert torch.equal(sums.labels, sums.tokens[:, :2].sum(1) % 11)


@pytest.mark.parametrize("relative", [False, True])
def test_noise_on_both_numbers_by_hand(relative):
    torch.manual_seed(0)
    model, tokens = ModularAddition(p=5, dim=8, width=8).double(), torch.tensor([[1, 4, 5], [2, 2, 5]])
    noise = Noise(0, torch.tensor([3, 9]), torch.tensor([0, 0]), torch.tensor([0, 1]))
    hidden = model.embedding(tokens)
    scale = hidden[:, :2].square().mean(-1, keepdim=True).sqrt() if relative else 1.0
    hidden[:, :2] += 0.3 * scale * noise.normal(2, 8).double()
    query = hidden[:, -1:]
    expected = model.head(model.down(model.up(model.attention(query, hidden)).relu())[:, 0])
    found = BothNumbers(0.09, relative).run(model, tokens, noise)
    assert torch.allclose(found, expected)
    assert not torch.allclose(found, model(tokens))  # and no hook is left behind
    assert BothNumbers(0.09).positions(tokens).shape == (2, 1)


def test_variants():
    assert isinstance(adding.noise_of(Adder(0)), EmbeddingNoise)
    assert adding.noise_of(Adder(0)).sigma2 == pytest.approx(0.01)  # sigma is 0.1
    assert adding.noise_of(Adder(0, "released"), relative=True) == BothNumbers(0.25, relative=True)
    assert adding.model_of(Adder(0)).residual
    assert not adding.model_of(Adder(0, "released")).residual
    with pytest.raises(UnknownName, match="variant"):
        adding.model_of(Adder(0, "releasd"))
    with pytest.raises(UnknownName, match="label"):
        adding.labelled(Adder(0, labels="sums"), CPU)


def test_a_run_is_the_same_alone_and_beside_others():
    specs = [Adder(seed, "released", labels=labels, **TINY) for seed, labels in ((0, "sum"), (1, "random"))]
    both, alone = adding.run_all(specs, None), adding.run(specs[1])
    assert [row["epoch"] for row in alone] == [0, 1, 2, 3, 5]
    for one, other in zip(both[1], alone, strict=True):
        assert one.keys() == other.keys()
        assert one == pytest.approx(other, rel=1e-3, abs=1e-3)
    names = {"train_accuracy", "test_accuracy", "new_accuracy", "train_loss", "test_loss", "norm", "embedding"}
    assert {*names, "sensitivity", "sensitivity_low", "sensitivity_relative", "sensitivity_unseen"} <= alone[0].keys()
    assert "test_accuracy_low" not in alone[0]


def test_an_interrupted_run_is_not_taken_for_a_whole_one(monkeypatch):
    half = [Trained(None, [], 2, "interrupted", 0, 0)]
    monkeypatch.setattr(adding, "train_stack", lambda *given, **more: half)
    with pytest.raises(KeyboardInterrupt):
        adding.run(Adder(0, **TINY))


def test_the_embedding_is_that_of_numbers_alone():
    model = ModularAddition(p=5, dim=8, width=8)
    torch.nn.init.constant_(model.embedding.token.weight, 3.0)
    model.embedding.token.weight.data[-1] = 100.0
    assert adding._embedding(model) == pytest.approx(3.0)
