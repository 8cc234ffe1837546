"""A penalty in a step that is recorded: as far as it can be seen without a GPU, it is the penalty of the plain step."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from teeter import perturb
from teeter.errors import InputError
from teeter.models import MODELS
from teeter.train import Recipe, SensitivityPenalty, shuffled
from teeter.train import run as room
from teeter.train.run import Run

IMAGES = torch.randn(60, 1, 8, 8, generator=torch.Generator().manual_seed(0))
PATCH = perturb.PatchNoise(4, 1.0)
RECIPE = Recipe(12, 20, optimizer="sgd", rate=0.1, weight_decay=0.0, schedule="linear", loss="cross-entropy")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 3))


def penalty(recorded=True):
    return SensitivityPenalty(PATCH, 0.25, seed=3, recorded=recorded)


class Launched:
    """In place of a recording: what is given is copied to where it is read from, and nothing but tensors is new."""

    def __init__(self, device):
        self.work, self.places = None, []

    def __call__(self, work, state, *given):
        if self.work is None:
            self.work, self.places = work, [part.clone() for part in given]
        for place, part in zip(self.places, given, strict=True):
            place.copy_(part)
        self.work(*self.places)


def trained(record, monkeypatch, steps=range(12), state=None):
    monkeypatch.setattr(room, "Recorded", Launched)
    model, own = network(), penalty(record)
    if state is not None:
        own.load_state_dict(state)
    run = Run(model, RECIPE, torch.device("cpu"), model, own, 12, record, rows=[{"step": 0}])
    stream = shuffled(IMAGES, torch.arange(60) % 3, 20, seed=0)
    for step in steps:
        run.advance(*stream(step))
    return run


def test_a_step_that_is_recorded_is_the_step(monkeypatch):
    plain, recorded = (trained(record, monkeypatch) for record in (False, True))
    torch.testing.assert_close(recorded.seen, plain.seen, rtol=1e-5, atol=0)  # the rate has the digits of a float32
    assert len(set(plain.seen[1].tolist())) == 12  # other noise at every step
    assert recorded.penalty.state_dict() == plain.penalty.state_dict() == {"step": 12}
    later = trained(True, monkeypatch, range(1), state={"step": 7})
    assert later.seen[1, 0] != recorded.seen[1, 0]
    assert later.penalty.state_dict() == {"step": 8}


@pytest.mark.parametrize("perturbation", [PATCH, perturb.InputNoise(0.5)], ids=["patch", "whole"])
def test_a_step_given_as_a_tensor_draws_the_same(perturbation):
    model, own = network(), SensitivityPenalty(perturbation, 0.5, seed=1)
    outputs = model(IMAGES)
    one = own(model, IMAGES, outputs, step=9)
    assert torch.equal(own(model, IMAGES, outputs, step=torch.tensor(9)), one)
    assert not torch.equal(own(model, IMAGES, outputs, step=torch.tensor(8)), one)
    assert own.step == 10  # a tensor is not counted


def test_nothing_waits_for_the_device():
    """On tensors without values nothing can be read from them, and what comes from elsewhere is seen."""

    class Watch(TorchDispatchMode):
        moved = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            every = [each for each in tree_leaves((args, kwargs, out)) if isinstance(each, torch.Tensor)]
            if len({each.device for each in every}) > 1:
                self.moved.append(str(func))
            return out

    with torch.device("meta"):
        model = MODELS["vit-small"](image_size=8, channels=1, layers=1, heads=2).train()
        images, step = torch.empty(20, 1, 8, 8), torch.zeros((), dtype=torch.int64)
    outputs = model(images)
    with Watch() as seen:
        penalty()(model, images, outputs, step=step).backward()
    assert seen.moved == []
    assert all(each.grad is not None for each in model.parameters())


def test_what_is_recorded_has_no_schedule():
    with pytest.raises(InputError, match="one strength at all steps"):
        SensitivityPenalty(PATCH, 0.25, schedule=lambda step: 1.0, recorded=True)


@pytest.mark.parametrize("record", [False, True])
def test_what_is_nudged_goes_through_the_compiled_model(record, monkeypatch):
    """As long as it is what goes in; a BatchNorm inside still follows the clean batch alone."""
    monkeypatch.setattr(room, "Recorded", Launched)
    made, through = [], []
    for own, compiled in ((penalty(record), False), (penalty(record), True)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.BatchNorm2d(1), network()).train()
        forward = nn.Sequential(model) if compiled else model  # a module around it, as torch.compile gives one
        if compiled:
            forward.register_forward_hook(lambda part, given, out: through.append(len(out)))
        run = Run(model, RECIPE, torch.device("cpu"), forward, own, 12, record, rows=[{"step": 0}])
        for step in range(3):
            run.advance(*shuffled(IMAGES, torch.arange(60) % 3, 20, seed=0)(step))
        made.append((run.seen, model.state_dict()))
    assert through == [20] * 6  # clean and nudged
    torch.testing.assert_close(made[0], made[1], rtol=0, atol=0)
    assert made[1][1]["0.num_batches_tracked"] == 3
    assert penalty().of_inputs and not SensitivityPenalty(perturb.HiddenNoise("1"), 0.25).of_inputs
