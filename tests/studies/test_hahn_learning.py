"""What H's experiments share: targets, first weights, columns, and what the released code measures differently."""

import math

import pytest
import torch
from torch import nn

from teeter import cube, measure
from teeter.data import bit_strings
from teeter.errors import UnknownName
from teeter.studies.hahn2024.learning import Learner, ReleasedBlowup, kind_of, learn, model_of, zero_one
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


@pytest.mark.parametrize("n", [4, 11])  # all strings, as they are no more than 1,024, and some
def test_rows_in_the_units_of_the_paper(n):
    spec = Learner("majority", n, seed=0, **QUICK)
    (made,) = learn([spec], None)
    assert [row["step"] for row in made.rows] == [0, 20]
    row, x = made.rows[-1], cube.points(4).float() if n == 4 else bit_strings(n, 4096, seed=1_000_000)
    assert row["sharpness"] == pytest.approx(
        4 * measure.sharpness(made.model, x[:1024], skip=("position",)).value, rel=1e-4
    )
    assert row["mse"] == pytest.approx(
        float((made.model(x) - zero_one("majority")(x)).detach().square().mean()), rel=1e-4
    )
    assert row["norm"] == pytest.approx(measure.parameter_norm(made.model, skip=("position",)), rel=1e-6)


def test_only_what_is_wanted_is_measured():
    spec = Learner("majority", 4, seed=0, **QUICK)
    (usual,), (some,) = learn([spec], None), learn([spec], None, only=("norm", "mse"))
    assert list(some.rows[-1]) == ["step", "loss", "rate", "mse", "norm"]
    assert some.rows[-1].items() <= usual.rows[-1].items()
    with pytest.raises(UnknownName, match="no measure named 'blow-up': did you mean 'blowup'"):
        learn([spec], None, only=["blow-up"])


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
    found = ReleasedBlowup(x)(model)
    assert found == pytest.approx(float(total.mean()), rel=1e-9)
    pair = Stack([model_of(Learner("parity", 5, seed, dim=8)).double() for seed in (1, 0)])
    pair.shape.eval()
    assert ReleasedBlowup(x).of_stack(pair)[1] == pytest.approx(found, rel=1e-9)
    assert math.isfinite(found)
