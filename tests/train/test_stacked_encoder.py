"""The fast program against the model itself, one by one, in float64: answers and gradients."""

import pytest
import torch

from teeter.models import Decoder, Encoder
from teeter.train.stack import Stack
from teeter.train.stacked_encoder import stacked_encoder

SHAPES = [
    dict(layers=2),
    dict(layers=1),
    dict(layers=3, heads=1),
    dict(layers=2, norm="pre", heads=4),
    dict(layers=1, norm="pre"),
    dict(layers=2, positions="concatenate", width=12),
    dict(layers=2, dim=2),  # a table of sums
    dict(layers=3, dim=4, norm="pre", heads=4, width=3),
    dict(layers=1, read="mean"),
    dict(layers=2, read="mean", norm="pre", heads=4),
    dict(layers=3, dim=2, read="mean"),
]


def stack(models):
    return {
        name: torch.stack([dict(m.named_parameters())[name].detach() for m in models]).requires_grad_()
        for name, _ in models[0].named_parameters()
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("n", [6, 3])
@pytest.mark.parametrize("kind", [Encoder, Decoder])
def test_answers_and_gradients_are_the_models_own(kind, shape, n):
    torch.manual_seed(0)
    models = [kind(**{"length": 6, "dim": 8, "same_start": False, **shape}).double() for _ in range(3)]
    for model in models:  # biases and norms begin at 0 and 1, where a mistake could hide
        for part in model.parameters():
            part.data += 0.3 * torch.randn_like(part)
    bits = 1 - 2 * torch.randint(0, 2, (3, 7, n))
    weights = stack(models)
    answers = stacked_encoder(models[0], weights, bits)
    (answers**2).sum().backward()
    for k, model in enumerate(models):
        own = model(bits[k])
        assert torch.allclose(answers[k], own, rtol=1e-12, atol=1e-12)
        model.zero_grad()
        (own**2).sum().backward()
        for name, part in model.named_parameters():
            grad = torch.zeros_like(part) if weights[name].grad is None else weights[name].grad[k]
            assert torch.allclose(grad, part.grad, rtol=1e-9, atol=1e-11), name


@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.parametrize("read", ["last", "mean"])
def test_models_that_are_read_anywhere_take_the_fast_program(kind, read):
    assert Stack([kind(length=6, dim=8, read=read)]).fast


@pytest.mark.parametrize("size", [1.0, 8.0])
def test_sums_of_exponentials_stay_within_what_floats_hold(size):
    """Scores far apart, of which those that are there may be the smaller ones: in float32 as in float64."""
    torch.manual_seed(0)
    model = Encoder(length=50, dim=4)
    for name, part in model.named_parameters():
        if "query" in name or "key" in name:
            part.data *= size
    bits = 1 - 2 * torch.randint(0, 2, (1, 64, 50))
    weights = {name: part.detach().unsqueeze(0).requires_grad_() for name, part in model.named_parameters()}
    found = stacked_encoder(model, weights, bits)
    found.sum().backward()
    assert all(torch.isfinite(part.grad).all() for part in weights.values() if part.grad is not None)
    exact = model.double()(bits[0])
    assert torch.allclose(found[0].double(), exact, atol=2e-4 * size)
