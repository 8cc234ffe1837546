"""Ready-made measures say what teeter.measure says."""

import math

import pytest
import torch
from torch import nn

import teeter
from teeter import cube, perturb
from teeter.errors import InputError, UnknownName
from teeter.models import Encoder
from teeter.train import measures

X = cube.points(6).float()


def encoder():
    torch.manual_seed(0)
    return Encoder(length=6, dim=8).eval()


def test_accuracy_by_counting():
    model = encoder()
    labels = cube.majority(X)
    with torch.no_grad():
        right = sum(float(model(x[None])) * float(y) > 0 for x, y in zip(X, labels, strict=True))
    for batch in (1024, 7):
        estimate = measures.accuracy(X, labels, batch=batch)(model)
        assert estimate.value == right / 64
        assert estimate.low < right / 64 < estimate.high
    logits = lambda x: {"logits": x}  # noqa: E731
    classes = measures.accuracy(torch.eye(3), torch.tensor([0, 1, 1]))
    assert classes(lambda x: type("Output", (), logits(x))).value == pytest.approx(2 / 3)


def test_loss_is_the_mean_over_inputs():
    model = encoder()
    with torch.no_grad():
        byhand = sum(float(model(x[None]) - x.prod()) ** 2 for x in X) / 64
    assert measures.loss(X, cube.parity(X), batch=10)(model) == pytest.approx(byhand, rel=1e-5)
    uniform = measures.loss(torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64), "cross-entropy")
    assert uniform(lambda x: x) == pytest.approx(math.log(4), rel=1e-6)


def test_fit_is_both_from_one_forward():
    asked, labels = [], cube.majority(X)

    def counted(x):
        asked.append(len(x))
        return model(x)

    model = encoder()
    found = measures.fit(X, labels, "mse", batch=10)(counted)
    assert sum(asked) == 64
    right = measures.accuracy(X, labels, batch=10)(model)
    ends = {"accuracy": right.value, "accuracy_low": right.low, "accuracy_high": right.high}
    assert found == {**ends, "loss": measures.loss(X, labels, batch=10)(model)}
    assert measures.fit(torch.eye(3), torch.arange(3))(lambda x: x)["loss"] == pytest.approx(math.log(1 + 2 / math.e))


def test_measures_of_the_room_above():
    model, nudge = encoder(), perturb.BitFlip()
    ours = measures.sensitivity(X, nudge, budget=500, seed=3, confidence=0.9)(model)
    assert ours == teeter.sensitivity(model, X, nudge, budget=500, seed=3, confidence=0.9, batch=1024)
    ours = measures.sharpness(X, "prediction", rho=0.1, draws=5, seed=2)(model)
    assert ours == teeter.sharpness(model, X, "prediction", rho=0.1, draws=5, seed=2, batch=1024)
    assert measures.parameter_norm(skip=("position",))(model) == teeter.parameter_norm(model, skip=("position",))


def test_blowup_is_the_mean_of_logarithms():
    model = encoder()
    estimate = measures.blowup(X, positions="last")(model)
    product = teeter.blowup(model, X, positions="last").product
    assert estimate.value == pytest.approx(float(product.log().mean()), rel=1e-12)
    assert estimate.low < estimate.value < estimate.high
    endless = nn.LayerNorm(4, eps=0.0)
    assert measures.blowup(torch.ones(3, 1, 4))(endless) == math.inf


def test_bad_input():
    with pytest.raises(InputError, match="64 inputs have as many labels"):
        measures.accuracy(X, torch.ones(3))
    with pytest.raises(UnknownName, match="no loss named 'msee'"):
        measures.loss(X, torch.ones(64), "msee")
    with pytest.raises(InputError, match="64 inputs have as many labels"):
        measures.fit(X, torch.ones(3))
    with pytest.raises(UnknownName, match="no loss named 'msee'"):
        measures.fit(X, torch.ones(64), "msee")
