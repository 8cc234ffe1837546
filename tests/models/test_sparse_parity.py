import pytest
import torch

import teeter
from teeter import cube
from teeter.errors import InputError
from teeter.models import MODELS, sparse_parity_transformer
from teeter.perturb import BitFlip

from .training import falls, losses, reached, shuffled, size


def test_the_papers_size():
    # tokens 2 x 32, positions 40 x 32; a layer: attention 4 (32^2 + 32) = 4,224, network 32 x 128 + 128 and
    # 128 x 32 + 32, together 8,352, norms 128, in all 12,704; head 33
    model = MODELS["sparse-parity"]()
    assert size(model) == 64 + 1_280 + 2 * 12_704 + 33 == 26_785
    assert [layer.attention.heads for layer in model.layers] == [4, 4]
    # of dimension 64, one setting's: a layer has 4 (64^2 + 64) + 64 x 256 + 256 + 256 x 64 + 64 + 256 = 49,984
    assert size(MODELS["sparse-parity"](dim=64)) == 128 + 2_560 + 2 * 49_984 + 65
    assert [layer.up.out_features for layer in MODELS["sparse-parity"](dim=8, width=3, layers=3).layers] == [3, 3, 3]


def test_a_seed_and_gradients():
    def make(seed):
        torch.manual_seed(seed)
        return sparse_parity_transformer(length=6, dim=8)

    bits = cube.points(6)
    assert make(0)(bits).shape == (64,)
    assert torch.equal(make(0)(bits), make(0)(bits))
    assert not torch.equal(make(0)(bits), make(1)(bits))
    model = shuffled(make(0))
    assert all(name.endswith("key.bias") for name in reached(model, model(bits).square().mean()))


def test_it_learns_a_parity_of_two_bits_of_six():
    torch.manual_seed(0)
    model = sparse_parity_transformer(length=6, dim=16)
    bits = cube.points(6, dtype=torch.float32)
    target = cube.sparse_parity(2)(bits)
    seen = losses(model, lambda _: (model(bits) - target).square().mean(), lr=3e-3)
    assert falls(seen, to=0.2)
    # once learned, the sensitivity is |S| / d (V A.6), 2 of 6
    estimate = teeter.sensitivity(model.eval(), bits, BitFlip(), design="paper", draws=1)
    assert estimate.value == pytest.approx(2 / 6, abs=1e-12)


def test_bad_input():
    with pytest.raises(InputError, match="heads = 5"):
        sparse_parity_transformer(heads=5)
    with pytest.raises(InputError, match="40 positions, got an input of length 41"):
        sparse_parity_transformer()(torch.ones(1, 41))
