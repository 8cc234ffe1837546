"""Steps of V's paper tiers, as far as they can be seen without a GPU: nothing in one of them waits for the device.

On a GPU they are recorded (`teeter.train.recorded`). On tensors without values nothing can be read, so that what would
wait is an error, and what comes from the host is seen.
"""

import contextlib
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from teeter.perturb import PatchNoise
from teeter.studies.vasudeva2025 import (
    adding,
    cifar10,
    depth_heads,
    dropout,
    early_warning,
    enlarged,
    fashion,
    language,
    mnist,
    optimizer,
    reading,
    regularisers,
    robustness,
    sparse_parity,
    svhn,
    vision,
)
from teeter.studies.vasudeva2025.settings import SETTINGS
from teeter.train import Recipe, SensitivityPenalty
from teeter.train.run import Run
from teeter.train.stack import Stack
from teeter.train.stack_step import StackStep, facts_of

META = torch.device("meta")
VOCABULARY = 1000
IMAGES = [mnist, fashion, cifar10, svhn, optimizer, depth_heads, dropout, robustness, enlarged]


def kinds(studies, name):
    """One spec of every kind: those that differ in their seed, rate or length alone are of one."""
    specs = {name(spec): spec for study in studies for spec in study.PAPER}
    return [pytest.param(spec, id=each) for each, spec in specs.items()]


def seen_name(spec):
    return " ".join(str(x) for x in (spec.data, spec.model, spec.optimizer, spec.training, spec.layers, spec.heads))


SEEN = [each for each in kinds(IMAGES, seen_name) if each.values[0].training != enlarged.PRETRAINED]
READ = kinds([language], lambda spec: f"{spec.data} {spec.model} {spec.variant} {spec.layers}")
METHODS = kinds([regularisers], lambda spec: spec.method)


class Watch(TorchDispatchMode):
    """What moves between devices, and what a recording could not follow though no value is read."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        every = [each for each in tree_leaves((args, kwargs, out)) if isinstance(each, torch.Tensor)]
        if len({each.device for each in every}) > 1:
            self.found.append(str(func))
        return out


@pytest.fixture(autouse=True)
def without_autocast(monkeypatch):
    """Which knows nothing of tensors without values."""
    monkeypatch.setattr(torch, "autocast", lambda *given, **more: contextlib.nullcontext())


def empty(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device=META)


def once(model, inputs, penalty=None):
    """What moves in one step."""
    recipe = Recipe(4, len(inputs), optimizer="sgd", rate=0.1, weight_decay=0.0, loss="cross-entropy")
    run = Run(model.train(), recipe, META, model, penalty, 4, False, rows=[{"step": 0}])
    number = () if penalty is None else (empty(dtype=torch.int64),)
    with Watch() as seen:
        run._once(inputs, empty(len(inputs), dtype=torch.int64), *number)
    assert all(each.grad is not None for each in model.parameters() if each.requires_grad)
    return seen.found


@pytest.mark.parametrize("spec", SEEN)
def test_images(spec):
    gray = "mnist" in spec.data
    side = SETTINGS[spec.data].size or (28 if gray else 32)
    with META:
        model = vision.model_of(spec)
    # Two images say as much as a batch of V's, and DenseNet's first step would take its time.
    assert once(model, empty(2, 1 if gray else 3, side, side), vision._penalty(spec)) == []


@pytest.mark.parametrize("spec", METHODS)
def test_regularisers(spec):
    with META:
        model = regularisers.model_of(spec)
    penalty = SensitivityPenalty(PatchNoise(spec.patch, 5.0), spec.strength, seed=0, recorded=True)
    assert once(model, empty(2, 1, 28, 28), penalty if spec.method == "penalty" else None) == []


@pytest.mark.parametrize("spec", READ)
def test_texts(spec):
    with META:
        model = reading.model_of(spec, VOCABULARY)
    assert once(model, empty(2, spec.length, dtype=torch.int64)) == []


def stacked(models, inputs, targets, loss):
    stack = Stack(models)
    recipe = Recipe(4, None, rate=0.1, loss=loss)
    step = StackStep(stack, recipe, compile=False)
    facts = facts_of([recipe] * len(models), 0, 1, stack.flat)[0]
    with Watch() as seen:
        step.once(inputs, targets, facts)
    return seen.found


@pytest.mark.parametrize("spec", kinds([early_warning], lambda spec: spec.variant))
def test_adding(spec):
    with META:
        models = [adding.model_of(replace(spec, seed=seed)) for seed in range(2)]
    tokens, labels = empty(2, 5, 3, dtype=torch.int64), empty(2, 5, dtype=torch.int64)
    assert stacked(models, tokens, labels, "cross-entropy") == []


@pytest.mark.parametrize("spec", kinds([sparse_parity], lambda spec: str(spec.dim)))
def test_sparse_parity(spec):
    with META:
        models = [sparse_parity.model_of(replace(spec, seed=seed)) for seed in range(2)]
    assert stacked(models, empty(2, 5, spec.d), empty(2, 5), "mse") == []


def test_what_waits_is_found():
    class Waits(torch.nn.Linear):
        def forward(self, inputs):
            return super().forward(inputs * float(inputs.mean()))

    class Moves(torch.nn.Linear):
        def forward(self, inputs):
            return super().forward(inputs) + torch.arange(3.0).to(inputs.device)

    with META:
        waits, moves = Waits(4, 3), Moves(4, 3)
    with pytest.raises(RuntimeError, match="meta tensors"):
        once(waits, empty(2, 4))
    assert once(moves, empty(2, 4)) == ["aten._to_copy.default"]
