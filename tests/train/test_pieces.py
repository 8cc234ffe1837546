"""Batches that are cut give the same answers and gradients."""

from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models import MODELS, Encoder
from teeter.train import pieces, stack
from teeter.train.pieces import copies
from teeter.train.stack import Stack


@pytest.fixture
def counts(monkeypatch):
    """As on a GPU; into how many pieces batches were cut is kept."""
    found = []

    def kept(part, count):
        found.append(count)
        return copies(part, count)

    for module in (pieces, stack):
        monkeypatch.setattr(module, "differentiated_on_gpu", lambda x: torch.is_grad_enabled())
        monkeypatch.setattr(module, "copies", kept)
    monkeypatch.setattr(pieces, "_ROWS", 8)
    monkeypatch.setattr(stack, "_NUMBERS", 8)
    return found


def answers_and_gradients(make, inputs):
    torch.manual_seed(0)
    models = Stack([make().double() for _ in inputs])
    answers = models(inputs)
    torch.manual_seed(1)
    loss = (answers * torch.randn_like(answers)).sum()
    return [answers.detach(), *torch.autograd.grad(loss, list(models.trained.values()), allow_unused=True)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Encoder(length=6, dim=16),
        lambda: Encoder(length=6, dim=4, heads=2),  # by `_long_first_layer`
        lambda: Encoder(length=6, dim=130, layers=3, positions="concatenate"),
        lambda: MODELS["scratchpad"](length=6, dim=8),
        lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1)),
    ],
)
@pytest.mark.parametrize("batch", [16, 24])
def test_answers_and_gradients_are_those_in_one_piece(make, batch, counts, monkeypatch):
    torch.manual_seed(2)
    inputs = 1.0 - 2 * torch.randint(2, (3, batch, 6), dtype=torch.float64)
    cut = answers_and_gradients(make, inputs)
    assert max(counts) > 1
    for module in (pieces, stack):
        monkeypatch.setattr(module, "differentiated_on_gpu", lambda x: False)
    whole = answers_and_gradients(make, inputs)
    for ours, theirs in zip(cut, whole, strict=True):
        assert (ours is None) == (theirs is None)
        assert theirs is None or torch.allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_large_models_are_not_copied(counts):
    models = Stack([nn.Linear(4096, 4096)])
    models(torch.zeros(1, 64, 4096))
    assert set(counts) <= {1}


def test_a_model_that_looks_at_the_whole_batch_is_found(counts):
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 1)

        def forward(self, x):
            return self.linear(x - x.mean(0))

    torch.manual_seed(0)
    inputs = torch.randn(1, 64, 3)
    with pytest.raises(InputError, match="train it alone"):
        Stack([Centred()]).check(inputs, torch.zeros(1, 64))


def test_only_what_is_differentiated_on_a_gpu_is_cut():
    there = cast(Tensor, SimpleNamespace(is_cuda=True))
    assert pieces.differentiated_on_gpu(there)
    assert not pieces.differentiated_on_gpu(torch.ones(1))
    with torch.no_grad():
        assert not pieces.differentiated_on_gpu(there)


def test_a_stack_that_shrinks_is_not_cut_where_it_was_not_checked(counts):
    """The fewer models, the more pieces: what is checked is the most."""
    models = [nn.Sequential(nn.Linear(64, 4), nn.BatchNorm1d(4, track_running_stats=False)) for _ in range(300)]
    inputs = torch.randn(300, 64, 64)
    stack = Stack(models)
    stack(inputs)
    assert set(counts) <= {1}
    with pytest.raises(InputError, match="train it alone"):
        stack.check(inputs, torch.zeros(300, 64))


def test_an_empty_batch():
    assert pieces.product(torch.ones(2, 0, 3), torch.ones(2, 3, 4)).shape == (2, 0, 4)
