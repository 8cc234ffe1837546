"""Measurements of a model on a GPU are those on the CPU, up to answers that rounding decides."""

import pytest
import torch
from torch import nn

import teeter
from teeter import perturb
from teeter.measure.sharpness import Nudging

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 5)).eval()


IMAGES = torch.randn(500, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "nudge",
    [
        perturb.PatchNoise(4, sigma2=0.5),
        perturb.PatchNoise(4, sigma2=0.5, relative=True),
        perturb.PatchReplace(4, source=IMAGES),
        perturb.InputNoise(0.05),
        perturb.WeightNoise(1e-3),
    ],
    ids=lambda nudge: type(nudge).__name__,
)
def test_sensitivity(nudge):
    there = teeter.sensitivity(network().cuda(), IMAGES.cuda(), nudge, budget=1500)
    here = teeter.sensitivity(network(), IMAGES, nudge, budget=1500)
    assert there.value == pytest.approx(here.value, abs=5 / 1000)
    assert (there.forwards, there.draws) == (here.forwards, here.draws)


def test_text():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(96, 2)).eval()
    text = torch.randint(0, 50, (300, 6))
    for nudge in (perturb.TokenReplace(50), perturb.EmbeddingNoise(sigma2=1.0)):
        here = teeter.sensitivity(model.cpu(), text, nudge, budget=1000)
        there = teeter.sensitivity(model.cuda(), text.cuda(), nudge, budget=1000)
        assert there.value == pytest.approx(here.value, abs=5 / 600)


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
def test_weight_noise_is_drawn_where_the_weights_are(law):
    how, model = Nudging(law=law), network().double()
    here = how.noise(dict(model.named_parameters()), range(3))
    there = how.noise(dict(model.cuda().named_parameters()), range(3))
    for name, noise in here.items():
        assert there[name].is_cuda
        assert torch.allclose(there[name].cpu(), noise, rtol=1e-12, atol=1e-15)


def test_the_others():
    model, x = network().cuda(), IMAGES.cuda()
    where = teeter.token_map(model, x[:20], perturb.PatchNoise(4), draws=4)
    assert where.mean.shape == (20, 4)
    for kind in ("direction", "output", "prediction"):
        there, here = teeter.sharpness(model, x, kind), teeter.sharpness(network(), IMAGES, kind)
        assert there.value == pytest.approx(here.value, rel=0.02, abs=2e-3)
    assert torch.allclose(teeter.blowup(model, x).product, teeter.blowup(network(), IMAGES).product, rtol=1e-3)
    assert teeter.parameter_norm(model) == pytest.approx(teeter.parameter_norm(network()))
    assert teeter.doctor(model, x, perturb.PatchNoise(4)) == []


def test_memory_stays_flat_as_draws_grow():
    model, x = network().cuda(), IMAGES.cuda()
    peaks = []
    for budget in (2_000, 40_000):
        torch.cuda.reset_peak_memory_stats()
        teeter.sensitivity(model, x, perturb.PatchNoise(4), budget=budget, batch=256)
        peaks.append(torch.cuda.max_memory_allocated())
    assert peaks[1] <= 1.1 * peaks[0]


@pytest.mark.parametrize("given", [False, True])
def test_the_adaptive_design(given):
    model = network()
    clean = model(IMAGES).detach() if given else None
    how = dict(budget=2000, design="adaptive")
    here = teeter.sensitivity(model, IMAGES, perturb.PatchNoise(4, sigma2=0.05), clean=clean, **how)
    clean = clean.cuda() if given else None
    there = teeter.sensitivity(model.cuda(), IMAGES.cuda(), perturb.PatchNoise(4, sigma2=0.05), clean=clean, **how)
    assert there.value == pytest.approx(here.value, abs=0.02)
    assert there.forwards <= 2000


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
def test_compiled_and_in_fewer_bits():
    model, x, nudge = network().cuda(), IMAGES.cuda(), perturb.PatchNoise(4, sigma2=0.5)
    plain = teeter.sensitivity(model, x, nudge, budget=1000, batch=128)
    fast = teeter.sensitivity(model, x, nudge, budget=1000, batch=128, compile=True)
    assert fast.value == pytest.approx(plain.value, abs=5 / 500)
    for kind in ("tf32", "bf16"):
        low = teeter.sensitivity(model, x, nudge, budget=1000, batch=128, arithmetic=kind, compile=True)
        assert low.value == pytest.approx(plain.value, abs=0.05)
        assert low.effect.low <= low.effect.value <= low.effect.high
