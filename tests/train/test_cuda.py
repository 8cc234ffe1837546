"""On a GPU: the same law, the same resumption, compiled and in fewer bits."""

import pytest
import torch
from torch import nn

from teeter import cube
from teeter.models import Encoder
from teeter.train import BitStream, Recipe, measures, shuffled, train
from teeter.train.state import weights_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def run(steps=60, folder=None, progress=None, model=None, compile=False, **more):
    torch.manual_seed(0)
    model = (model or Encoder(length=8, dim=16)).cuda()
    x = cube.points(8).float().cuda()
    what = {"accuracy": measures.accuracy(x, cube.majority(x)), "loss_all": measures.loss(x, cube.majority(x))}
    stream = BitStream(cube.majority, 8, 64, seed=0, device="cuda")
    recipe = Recipe(steps, 64, rate=3e-3, **more)
    made = dict(measures=what, every=20, keep=7, folder=folder, progress=progress, compile=compile)
    return train(model, stream, recipe, **made)


def test_streams_are_those_of_the_cpu():
    x = torch.randn(100, 3)
    here, there = (shuffled(x.to(name), x.sum(-1).to(name), 30, seed=0) for name in ("cpu", "cuda"))
    assert all(torch.equal(here(step)[0], there(step)[0].cpu()) for step in range(8))


def test_the_loss_curve_is_that_of_the_cpu():
    torch.manual_seed(0)
    recipe, stream = Recipe(60, 64, rate=3e-3), BitStream(cube.majority, 8, 64, seed=0, dtype=torch.float64)
    here = train(Encoder(length=8, dim=16).double(), stream, recipe, every=20)
    torch.manual_seed(0)
    stream = BitStream(cube.majority, 8, 64, seed=0, device="cuda", dtype=torch.float64)
    there = train(Encoder(length=8, dim=16).double().cuda(), stream, recipe, every=20)
    for one, other in zip(here.rows[1:], there.rows[1:], strict=True):
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-9)


def test_resumed_to_the_bit(tmp_path):
    def fails(step, steps, row):
        if step == 33:
            raise RuntimeError("killed")

    def model():
        return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    for make in (model, lambda: None):
        torch.manual_seed(1)
        whole = run(model=make())
        torch.manual_seed(1)
        with pytest.raises(RuntimeError, match="killed"):
            run(model=make(), folder=tmp_path / make.__name__, progress=fails)
        torch.manual_seed(1)
        rest = run(model=make(), folder=tmp_path / make.__name__)
        assert rest.rows == whole.rows
        ours, theirs = weights_of(rest.model), weights_of(whole.model)
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
def test_compiled_and_in_fewer_bits():
    plain = run()
    for how in (dict(compile=True), dict(compile="reduce-overhead"), dict(arithmetic="tf32"), dict(arithmetic="bf16")):
        assert run(**how).rows[-1]["loss"] == pytest.approx(plain.rows[-1]["loss"], rel=0.1), how
