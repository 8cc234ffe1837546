"""Fewer bits and compiled models: the same question, and an honest word on what changed."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from teeter import perturb
from teeter.errors import InputError
from teeter.measure import merge, sensitivity
from teeter.measure.arithmetic import Compiled, computing_in
from teeter.measure.forward import Batches

IMAGES = torch.randn(400, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5)).eval()


def test_the_effect_of_bf16_is_the_paired_difference():
    nudge = perturb.PatchNoise(4, sigma2=0.5)
    low = sensitivity(network(), IMAGES, nudge, budget=800, arithmetic="bf16")
    full = sensitivity(network(), IMAGES, nudge, budget=800, arithmetic="float32")
    assert full.effect is None
    assert low.effect is not None
    assert low.effect.n == 100  # an eighth of the budget
    assert low.forwards == 800 + 4 * 100
    assert low.effect.low < low.effect.value < low.effect.high
    plain = sensitivity(network(), IMAGES, nudge, budget=800)
    assert (plain.value, plain.low, plain.high) == (full.value, full.low, full.high)


def test_the_effect_is_that_of_two_whole_measurements():
    nudge = perturb.PatchNoise(4, sigma2=0.5)
    low, full = (
        sensitivity(network(), IMAGES, nudge, half_width=0.001, arithmetic=kind, budget=4000)
        for kind in ("bf16", "float32")
    )
    assert low.effect.n == 400
    first = [
        sensitivity(network(), IMAGES, nudge, budget=800, arithmetic=kind, seed=0).tally.sums.sum()
        for kind in ("bf16", "float32")
    ]
    assert low.effect.value == pytest.approx(float(first[0] - first[1]) / 400)  # the first round of either
    assert full.effect is None


def test_shards_share_one_effect_and_an_interrupt_keeps_the_measurement():
    nudge = perturb.PatchNoise(4, sigma2=0.5)
    parts = [sensitivity(network(), IMAGES, nudge, budget=800, arithmetic="bf16", shard=(k, 2)) for k in range(2)]
    assert parts[1].effect is None
    assert merge(parts).effect == parts[0].effect
    calls = []

    class Stops(perturb.PatchNoise):
        def run(self, model, inputs, noise):
            calls.append(len(inputs))
            if sum(calls) > 400:
                raise KeyboardInterrupt
            return super().run(model, inputs, noise)

    estimate = sensitivity(network(), IMAGES, Stops(4, sigma2=0.5), budget=800, arithmetic="bf16")
    assert (estimate.stopped, estimate.draws, estimate.effect) == ("budget", 400, None)
    assert "interrupted before the effect" in estimate.notes[-1]


def test_no_difference_seen_is_not_none():
    same = sensitivity(lambda x: x.flatten(1)[:, :2], IMAGES, perturb.PatchNoise(4), budget=800, arithmetic="bf16")
    assert same.effect.value == 0
    assert -0.05 < same.effect.low < 0 < same.effect.high < 0.05


def test_settings_are_put_back():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.backends.cudnn.enabled
    for kind in ("float32", "bf16", None):
        with computing_in(kind, torch.device("cpu")):
            assert torch.backends.cudnn.enabled == before[2]
    with pytest.raises(ZeroDivisionError), computing_in("bf16", torch.device("cpu")):
        1 / 0  # noqa: B018
    assert before == (
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.enabled,
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (dict(arithmetic="int4"), "float32, tf32, bf16 or None, got 'int4'"),
        (dict(arithmetic="tf32"), "tf32 is arithmetic of NVIDIA GPUs"),
        (dict(arithmetic="bf16", clean=torch.zeros(400, 5)), "do not go together"),
    ],
)
def test_arithmetic_that_is_not_to_be_had(how, message):
    with pytest.raises(InputError, match=message):
        sensitivity(network(), IMAGES, perturb.PatchNoise(4), budget=100, **how)


def test_only_full_batches_are_compiled(monkeypatch):
    """The compiler itself is tried on a GPU (test_cuda); here, who goes through it."""
    sizes = []

    def record(model, dynamic):
        assert dynamic is False
        return lambda x: sizes.append(len(x)) or model(x)

    monkeypatch.setattr(torch, "compile", record)
    nudge = perturb.PatchNoise(4, sigma2=0.5)
    plain = sensitivity(network(), IMAGES, nudge, budget=800, batch=150)
    fast = sensitivity(network(), IMAGES, nudge, budget=800, batch=150, compile=True)
    assert (plain.value, plain.low, plain.high) == (fast.value, fast.low, fast.high)
    assert sizes
    assert set(sizes) == {150}
    growing = Compiled(network(), Batches("auto"))
    growing(IMAGES[:64])
    assert set(sizes) == {150}
    for inside in (perturb.HiddenNoise("1", tokens=1), perturb.WeightNoise(0.1)):
        with pytest.raises(InputError, match="compile serves what nudges the input"):
            sensitivity(network(), IMAGES, inside, budget=100, compile=True)


def test_memory_stays_flat_as_draws_grow():
    """The largest size that a process reached, at few and at forty times as many draws."""
    code = """
import resource, sys, torch, teeter
x = torch.randn(2000, 1, 32, 32)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1024, 10)).eval()
teeter.sensitivity(model, x, teeter.perturb.PatchNoise(4), budget=int(sys.argv[1]), batch=256, design=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    for design in ("broad", "adaptive"):
        few, many = (
            int(subprocess.run([sys.executable, "-c", code, n, design], capture_output=True, check=True).stdout)
            for n in ("5000", "200000")
        )
        assert many < 1.1 * few
