"""Models by name."""

import pytest
import torch

import teeter
from teeter.models import MODELS
from teeter.perturb import EmbeddingNoise

BITS = torch.ones(2, 7)
INPUTS = {
    "decoder": (BITS, (2,)),
    "encoder": (BITS, (2,)),
    "gru": (BITS, (2,)),
    "lstm": (BITS, (2,)),
    "modular": (torch.tensor([[3, 4, 113], [0, 1, 113]]), (2, 113)),
    "scratchpad": (BITS, (2,)),
    "self-attention": (torch.zeros(2, 50, dtype=torch.long), (2,)),
    "sparse-parity": (BITS, (2,)),
}


def test_names_are_in_order():
    assert list(MODELS) == sorted(MODELS)
    assert teeter.models.MODELS is MODELS


@pytest.mark.parametrize("name", INPUTS)
def test_every_model_runs_as_it_comes(name):
    inputs, shape = INPUTS[name]
    assert MODELS[name]()(inputs).shape == shape


@pytest.mark.parametrize("name", ["decoder", "encoder", "sparse-parity"])
def test_layers_start_as_copies_unless_told_otherwise(name):
    """As those of torch's encoder, and so H's, do."""
    for settings, same in (({}, True), ({"same_start": False}, False)):
        first, second = (layer.state_dict() for layer in MODELS[name](length=5, dim=8, **settings).layers)
        assert all(torch.equal(first[key], second[key]) for key in first) == same


def test_self_attention_starts_small():
    torch.manual_seed(0)
    for key, weight in MODELS["self-attention"]().named_parameters():
        assert float(weight.detach().std()) == pytest.approx(0.01, rel=0.05), key


@pytest.mark.parametrize("name", ["decoder", "encoder", "gru", "lstm", "modular", "sparse-parity"])
def test_noise_finds_where_the_embedding_ends(name):
    model = MODELS[name]()
    assert EmbeddingNoise().where(model) is model.embedding


@pytest.mark.parametrize("name", INPUTS)
def test_parameters_have_flat_and_distinct_names(name):
    model = MODELS[name]()
    assert len(model.state_dict()) == len(list(model.parameters()))  # no buffers, nothing shared
    assert all(weight.ndim in (1, 2) for weight in model.parameters())
