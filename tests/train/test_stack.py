"""What may be stacked, and that a stack answers as its models do."""

import copy
import gc
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn

from teeter.models import MODELS, Decoder, Encoder
from teeter.train import Stack, bit_streams, train_stack
from teeter.train.stack import shape_of
from teeter.train.stack_step import StackStep
from tests.train.test_stack_loop import FUNCTIONS, encoders, recipes


def exchanged(**more):
    """Encoders in which something was exchanged that the fast program knows nothing of."""
    models = [Encoder(length=5, dim=8).double() for _ in range(2)]
    for model in models:
        for layer in model.layers:
            for name, value in more.items():
                setattr(layer, name, copy.deepcopy(value))
    return models


EXCHANGES = [
    dict(norm1=nn.LayerNorm(8, eps=0.5).double()),
    dict(norm2=nn.Identity()),
    dict(up=nn.Linear(8, 8).double()),
]


@pytest.mark.parametrize("more", EXCHANGES, ids=lambda more: next(iter(more)))
def test_the_fast_program_is_for_encoders_as_they_were_made(more):
    models = exchanged(**more)
    assert Stack(models).fast == ("up" in more)  # another matrix of the same shape is no exchange
    x = 1.0 - 2.0 * torch.randint(0, 2, (2, 6, 5)).double()
    for k, model in enumerate(models):
        assert torch.allclose(Stack(models)(x)[k], model(x[k]), atol=1e-12)
    hooked = Encoder(length=5, dim=8)
    hooked.layers[0].register_forward_hook(lambda module, given, answer: answer + 1)
    assert not Stack([hooked]).fast
    assert Stack([Decoder(length=5, dim=8)]).fast
    assert not Stack([type("Other", (Encoder,), {})(length=5, dim=8)]).fast


@pytest.mark.parametrize("kind", [Encoder, Decoder])
def test_long_inputs_of_small_dimension(kind):
    torch.manual_seed(0)
    models = [kind(length=40, dim=4).double() for _ in range(2)]
    x = 1.0 - 2.0 * torch.randint(0, 2, (2, 3, 40)).double()
    assert torch.allclose(Stack(models)(x)[1], models[1](x[1]), atol=1e-12)


def test_shapes_that_only_an_attribute_tells_apart():
    def layer(activation):
        torch.manual_seed(0)
        return nn.TransformerEncoderLayer(8, 2, 8, 0.0, activation, batch_first=True)

    assert shape_of(layer(torch.tanh)) != shape_of(layer(nn.functional.silu))
    assert shape_of(layer(torch.tanh)) == shape_of(layer(torch.tanh))
    for name, one, other in (
        ("list", [1, 2], [1, 3]),
        ("table", {"a": 1}, {"a": 2}),
        ("tensor", torch.zeros(2), torch.ones(2)),
        ("_own", 1, 2),
        ("dtype", torch.float32, torch.float64),
    ):
        pair = nn.Linear(2, 1), nn.Linear(2, 1)
        assert shape_of(pair[0]) == shape_of(pair[1])
        for model, value in zip(pair, (one, other), strict=True):
            setattr(model, name, value)
        assert shape_of(pair[0]) != shape_of(pair[1]), name
    frozen = nn.Linear(2, 1).requires_grad_(False)
    assert len({shape_of(nn.Linear(2, 1)), shape_of(frozen), shape_of(nn.Linear(2, 1).eval())}) == 3
    assert shape_of(MODELS["vit-small"](layers=1)) != shape_of(MODELS["vit-small-relu"](layers=1))


def test_compiled_stacks_keep_nothing_alive(monkeypatch):
    """The compiler itself is tried on a GPU; here, that a step goes through it, and that none outlives its stack."""
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda part, dynamic: compiled.append(part.__name__) or part)
    stream, recipe = bit_streams(FUNCTIONS, 5, 16, range(4), dtype=torch.float64), recipes()
    plain = train_stack(encoders(), stream, [replace(each, steps=5) for each in recipe])
    fast = train_stack(encoders(), stream, [replace(each, steps=5) for each in recipe], compile=True)
    assert compiled == ["losses_of", "update"]
    assert [each.rows for each in plain] == [each.rows for each in fast]
    gc.collect()
    gc.disable()
    try:
        stack = Stack(encoders())
        step = weakref.ref(StackStep(stack, recipe[0], compile=False))
        assert step() is None
    finally:
        gc.enable()


def test_parts_that_are_not_in_training_stay_so():
    models = [nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1), nn.Flatten(0)) for _ in range(2)]
    for model in models:
        model[1].eval()
    stack = Stack(models)
    stack.check(torch.ones(2, 3, 4), torch.ones(2, 3))
    assert [part.training for part in stack.shape] == [True, False, True, True]
