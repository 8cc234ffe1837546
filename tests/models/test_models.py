"""Models by name."""

import pytest
import torch

import teeter
from teeter.models import MODELS

BITS = torch.ones(2, 7)
INPUTS = {
    "decoder": (BITS, (2,)),
    "encoder": (BITS, (2,)),
    "gru": (BITS, (2,)),
    "lstm": (BITS, (2,)),
    "modular": (torch.tensor([[3, 4, 113], [0, 1, 113]]), (2, 113)),
    "scratchpad": (BITS, (2, 7)),
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


@pytest.mark.parametrize("name", INPUTS)
def test_parameters_have_flat_and_distinct_names(name):
    model = MODELS[name]()
    assert len(model.state_dict()) == len(list(model.parameters()))  # no buffers, nothing shared
    assert all(weight.ndim in (1, 2) for weight in model.parameters())
