"""What H's experiments share: targets, first weights, columns, and what the released code measures differently."""

import math

import pytest
import torch
from torch import nn

from teeter import cube, measure
from teeter.data import bit_strings
from teeter.errors import UnknownName
from teeter.studies.hahn2024 import learning
from teeter.studies.hahn2024.learning import Blowups, Learner, at_the_end, kind_of, learn, model_of, zero_one
from teeter.train import Stack

QUICK = dict(dim=8, batch=32, steps=20, rate=3e-3)


def test_targets_are_zero_and_one_but_for_the_mean():
    x = cube.points(5).float()
    for name in ("parity", "majority", "first"):
        assert zero_one(name)(x).unique().tolist() == [0, 1]
        assert torch.equal(2 * zero_one(name)(x) - 1, getattr(cube, name)(x))
    assert torch.allclose(zero_one("mean")(x), (x > 0).float().mean(-1))
    with pytest.raises(UnknownName, match="no function named 'party'"):
        zero_one("party")


def test_first_weights_are_those_of_the_seed():
    spec = Learner("parity", 4, seed=3, dim=8)
    torch.manual_seed(0)
    one = model_of(spec)
    torch.rand(7)
    assert all(map(torch.equal, one.parameters(), model_of(spec).parameters()))
    halves = model_of(Learner("parity", 4, seed=3, dim=8, variant="released"))
    assert halves.embedding.token.weight.shape == (2, 4)
    with pytest.raises(UnknownName, match="no variant named 'later'"):
        model_of(Learner("parity", 4, seed=3, variant="later"))


@pytest.mark.parametrize("n", [4, 11])  # no more than 1,024 strings, and more
def test_rows_in_the_units_of_the_paper(n):
    spec = Learner("majority", n, seed=0, **QUICK)
    (made,) = learn([spec], None)
    assert [row["step"] for row in made.rows] == [0, 20]
    row, x = made.rows[-1], cube.points(n).float()
    few = x if n == 4 else bit_strings(n, 1024, seed=1_000_000)
    for name, draws in (("sharpness", 10), ("sharpness_100", 100)):
        known = measure.sharpness(made.model, few, skip=("position",), draws=draws)
        assert row[name] == pytest.approx(4 * known.value, rel=1e-4)
        assert row[f"{name}_high"] == pytest.approx(4 * known.high, rel=1e-4)
    rise = measure.sharpness(made.model, few, "rise", targets=zero_one("majority")(few), skip=("position",))
    assert row["sharpness_released"] == pytest.approx(4 * rise.value, rel=1e-3)
    off = (made.model(x) - zero_one("majority")(x)).detach().square().mean()
    assert row["mse"] == pytest.approx(float(off), rel=1e-4)
    assert row["norm"] == pytest.approx(measure.parameter_norm(made.model, skip=("position",)), rel=1e-6)
    logs = measure.blowup(made.model, few).product.log()
    assert row["blowup"] == pytest.approx(float(logs.mean()), rel=1e-5)
    assert row["blowup_mean"] == pytest.approx(float(logs.exp().mean().log()), rel=1e-5)
    assert row["blowup_square"] == pytest.approx(float((2 * logs).exp().mean().log() / 2), rel=1e-5)


def test_rows_along_the_way_are_cheaper():
    spec = Learner("majority", 13, seed=0, **QUICK)
    (made,) = learn([spec], None, every=10, draws=3)
    assert [row["step"] for row in made.rows] == [0, 10, 20]
    row, x, few = made.rows[-1], bit_strings(13, 4096, seed=1_000_000), bit_strings(13, 1024, seed=1_000_000)
    off = (made.model(x) - zero_one("majority")(x)).detach().square().mean()
    assert row["mse"] == pytest.approx(float(off), rel=1e-4)
    assert row["sharpness"] == pytest.approx(
        4 * measure.sharpness(made.model, few, skip=("position",), draws=3).value, rel=1e-4
    )
    assert "sharpness_100" not in row


def test_what_is_kept_of_the_end():
    (made,) = learn([Learner("parity", 3, seed=0, **QUICK)], None)
    found = at_the_end(made)
    assert found["mse"] == pytest.approx(made.rows[-1]["mse"], rel=1e-5)
    assert not found.keys() & {"step", "loss", "rate"}
    (lost,) = learn([Learner("parity", 3, seed=0, **{**QUICK, "rate": 1e30})], None)
    assert lost.stopped == "diverged"
    assert at_the_end(lost) == dict.fromkeys(found)


def test_measures_are_shared_between_functions(monkeypatch):
    seen = []
    monkeypatch.setattr(learning, "train_many", lambda jobs, **how: seen.extend(job.measures for job in jobs) or [])
    learn([Learner(name, 4, 0, **QUICK) for name in ("parity", "majority", "parity")], None)
    one, other, again = seen
    assert all(one[name] is other[name] for name in ("sharpness", "sharpness_100", "norm", "blowup"))
    assert all(one[name] is not other[name] for name in ("mse", "sharpness_released"))
    assert all(one[name] is again[name] for name in one)


def test_alone_as_with_others():
    specs = [Learner(name, 4, seed, **QUICK) for name in ("parity", "majority") for seed in (0, 1)]
    for spec, made in zip(specs, learn(specs, None), strict=True):
        alone = learn([spec], None)[0].rows[-1]
        assert made.rows[-1] == pytest.approx(alone, rel=1e-3, abs=1e-4)


def test_what_is_trained_together():
    spec = Learner("parity", 4, 0)
    assert kind_of(spec) == kind_of(Learner("mean", 4, 7, rate=1e-4, weight_decay=0.3))
    assert kind_of(spec) != kind_of(Learner("parity", 5, 0))
    assert kind_of(spec) != kind_of(Learner("parity", 4, 0, variant="released"))


def test_the_released_blowup_by_hand():
    torch.manual_seed(0)
    model = model_of(Learner("parity", 5, 0, dim=8)).double().eval()
    x = cube.points(5).double()[:6]
    seen = {}
    for name, part in model.named_modules():
        if isinstance(part, nn.LayerNorm):
            part.register_forward_pre_hook(lambda part, given, name=name: seen.__setitem__(name, given[0].detach()))
    model(x)
    total = torch.zeros(6, dtype=torch.float64)
    for name, given in seen.items():
        factor = 1 / given.std(-1)  # unbiased, without an epsilon
        total += (factor[:, -1] if name.startswith("layers.1") else factor.amax(-1)).log()
    assert len(seen) == 4
    found = Blowups(x)(model)
    assert found["released_log"] == pytest.approx(float(total.mean()), rel=1e-9)
    assert found["released"] == pytest.approx(float(total.exp().mean().log()), rel=1e-9)
    pair = Stack([model_of(Learner("parity", 5, seed, dim=8)).double() for seed in (1, 0)])
    pair.shape.eval()
    assert Blowups(x).of_stack(pair)[1] == pytest.approx(found, rel=1e-9)
    assert all(map(math.isfinite, found.values()))
