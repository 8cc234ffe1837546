"""On a GPU the penalty nudges the same tokens by the same noise, and measuring leaves its random numbers alone."""

import pytest
import torch
from torch import nn

from teeter import perturb
from teeter.integrations.progress import ProgressMeasure
from teeter.train import Recipe, SensitivityPenalty, add_noise, shuffled, train
from teeter.train.draws import draw

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
IMAGES = torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(0))
PATCH = perturb.PatchNoise(4, 1.0)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Tanh(), nn.Dropout(0.0), nn.Linear(16, 3))


def test_draws_and_values():
    here, _ = draw(PATCH, IMAGES, torch.arange(64), seed=1, step=2)
    there, _ = draw(PATCH, IMAGES.cuda(), torch.arange(64), seed=1, step=2)
    assert torch.equal(here.token, there.token.cpu())
    values = []
    for place in ("cpu", "cuda"):
        model, images = network().to(place), IMAGES.to(place)
        value = SensitivityPenalty(PATCH, 0.25)(model, images, model(images), step=3)
        value.backward()
        values.append((value.detach().cpu(), model[1].weight.grad.cpu()))
    torch.testing.assert_close(values[0], values[1], rtol=1e-3, atol=1e-5)


def test_noise_on_inputs():
    noisy = add_noise(IMAGES, seed=0, epoch=4, share=0.5)
    torch.testing.assert_close(add_noise(IMAGES.cuda(), seed=0, epoch=4, share=0.5).cpu(), noisy)


def test_measuring_in_training():
    model = network().cuda().train()
    measure = ProgressMeasure(IMAGES, PATCH, every=1, share=None, budget=200)
    before = torch.cuda.get_rng_state()
    measure.begin(model)
    assert 0 <= measure.at(1, model)["sensitivity"] <= 1
    assert torch.equal(torch.cuda.get_rng_state(), before) and model.training


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_recorded_step_is_the_step(optimizer, monkeypatch):
    replay, launched = torch.cuda.CUDAGraph.replay, []
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", lambda graph: launched.append(1) or replay(graph))
    recipe = Recipe(30, 16, optimizer=optimizer, rate=1e-2, loss="cross-entropy", arithmetic="float32")
    made = []
    for recorded in (False, True):
        stream = shuffled(IMAGES.cuda(), (torch.arange(64) % 3).cuda(), 16, seed=0)
        penalty = SensitivityPenalty(PATCH, 0.25, seed=1, recorded=recorded)
        made.append(train(network().cuda(), stream, recipe, penalty=penalty, every=10, record=True))
        assert penalty.state_dict() == {"step": 30}
    assert len(launched) == 30
    for one, other in zip(made[0].rows[1:], made[1].rows[1:], strict=True):
        assert other["penalty"] == pytest.approx(one["penalty"], rel=1e-3)
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-3)
