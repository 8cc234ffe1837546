"""What a recording leaves behind that needs no GPU to be seen."""

import warnings

import pytest
import torch
from torch import nn

from teeter.errors import InputError
from teeter.perturb import HiddenNoise, PatchNoise
from teeter.train import Recipe, SensitivityPenalty, ramp
from teeter.train.recorded import Recorded, _in_one_order
from teeter.train.run import Run
from teeter.train.state import weights_of


@pytest.mark.parametrize("mode", ["default", "warn", "error"])
def test_torch_is_as_it_was(mode):
    before = torch.get_deterministic_debug_mode()
    try:
        torch.set_deterministic_debug_mode(mode)
        known = torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory
        with pytest.raises(RuntimeError, match="killed"), _in_one_order():
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.utils.deterministic.fill_uninitialized_memory
            raise RuntimeError("killed")
        assert known == (torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory)
    finally:
        torch.set_deterministic_debug_mode(before)


def test_only_what_torch_says_of_order_is_silenced():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with _in_one_order():
            warnings.warn("x has no kernel, but you set 'torch.use_deterministic_algorithms(True)'", stacklevel=1)
            warnings.warn("something else", stacklevel=1)
    assert [str(each.message) for each in heard] == ["something else"]


@pytest.mark.parametrize("norm", [False, True])
def test_a_recorded_penalty_draws_by_the_step_it_reads(norm, monkeypatch):
    """Without a GPU a recording is played by the work itself: the same noise at every step as without one, rehearsals
    leave no trace in the counter, and what is nudged goes through the compiled model."""

    def network():
        torch.manual_seed(0)
        parts = [nn.BatchNorm2d(1)] if norm else []
        return nn.Sequential(*parts, nn.Flatten(), nn.Linear(64, 3))

    def play(recorded, work, state, *given):
        before = [each.detach().clone() for each in state()]
        for _ in range(3):
            work(*given)
        with torch.no_grad():
            for each, value in zip(state(), before, strict=True):
                each.copy_(value)
        work(*given)

    monkeypatch.setattr(Recorded, "__call__", play)
    x, y = torch.randn(20, 1, 8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(20) % 3
    recipe, made, through = Recipe(5, 20, "sgd", 0.1, 0.0, loss="cross-entropy"), [], []
    for record in (False, True):
        model, penalty = network(), SensitivityPenalty(PatchNoise(4, 1.0), 0.25, seed=3)
        forward = nn.Sequential(model)  # a module around the model, as torch.compile gives it
        forward.register_forward_hook(lambda part, given, out: through.append(len(out)))
        run = Run(model, recipe, torch.device("cpu"), forward, penalty, 5, record)
        run.rows.append({"step": 0})
        model.train()
        for _ in range(5):
            run.advance(x, y)
        made.append((run.seen.clone(), weights_of(model), penalty.step))
    assert made[0][2] == made[1][2] == 5
    torch.testing.assert_close(made[0][:2], made[1][:2], rtol=1e-5, atol=1e-6)
    assert len(set(made[0][0][1].tolist())) == 5  # another penalty at every step
    assert len(through) == 5 + 5 * 4 * 2


def test_what_can_be_recorded():
    assert SensitivityPenalty(PatchNoise(4), 0.25).recordable
    assert not SensitivityPenalty(PatchNoise(4), 0.25, schedule=ramp(10)).recordable
    assert not SensitivityPenalty(HiddenNoise("a"), 0.25).recordable
    images = torch.zeros(2, 1, 8, 8)
    with pytest.raises(InputError, match="has to be a plain number"):
        SensitivityPenalty(PatchNoise(4), 0.25, schedule=ramp(10))(nn.Flatten(), images, images, step=torch.tensor(1))
