import pytest
import torch
from torch import nn

import teeter
from teeter import cube
from teeter.errors import InputError
from teeter.models import MODELS, Decoder, Encoder
from teeter.perturb import BitFlip

from .training import copy_block, falls, losses, reached, shuffled, size

SMALL = dict(length=6, dim=8, heads=2)


def test_the_size_is_the_encoders():
    assert size(MODELS["decoder"]()) == 203_393  # counted in the encoder's test
    torch.manual_seed(0)
    encoder = Encoder(**SMALL)
    torch.manual_seed(0)
    decoder = Decoder(**SMALL)
    assert decoder.state_dict().keys() == encoder.state_dict().keys()
    assert not torch.equal(decoder(cube.points(6)), encoder(cube.points(6)))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_it_is_torchs_encoder_with_a_causal_mask(norm):
    torch.manual_seed(0)
    ours = shuffled(Decoder(**SMALL, norm=norm))
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True, norm_first=norm == "pre").double()
    last = nn.LayerNorm(8).double() if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, 2, norm=last, enable_nested_tensor=False)
    for our, their in zip(ours.layers, theirs.layers, strict=True):
        copy_block(our, their)
    if last is not None:
        last.load_state_dict(ours.norm.state_dict())
    bits = cube.points(6)
    mask = nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.float64)
    expected = ours.head(theirs(ours.embedding((bits < 0).long()), mask=mask)).squeeze(-1)
    assert torch.allclose(ours(bits, all_positions=True), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_no_output_depends_on_later_bits(norm):
    torch.manual_seed(0)
    model = shuffled(Decoder(**SMALL, norm=norm))
    bits = cube.points(6)
    clean = model(bits, all_positions=True)
    for j in range(6):
        flipped = bits.clone()
        flipped[:, j] *= -1
        changed = (model(flipped, all_positions=True) != clean).any(0)
        assert changed.tolist() == [False] * j + [True] * (6 - j)


def test_a_prefix_is_an_input_of_its_own():
    torch.manual_seed(0)
    model = shuffled(Decoder(**SMALL))
    bits = cube.points(6)
    every = model(bits, all_positions=True)
    assert every.shape == (64, 6)
    for n in range(1, 7):
        assert torch.allclose(model(bits[:, :n]), every[:, n - 1], rtol=0, atol=1e-12)


def test_a_seed_decides_everything():
    def run(seed):
        torch.manual_seed(seed)
        return Decoder(**SMALL)(cube.points(6))

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


def test_stacked_weights_give_what_a_loop_gives():
    torch.manual_seed(0)
    models = [Decoder(**SMALL).double() for _ in range(3)]
    stack, _ = torch.func.stack_module_state(models)
    bits = cube.points(6)
    together = torch.vmap(lambda weights: torch.func.functional_call(models[0], weights, (bits,)))(stack)
    assert torch.allclose(together, torch.stack([model(bits) for model in models]), rtol=0, atol=1e-12)


def test_gradient_reaches_every_parameter():
    torch.manual_seed(0)
    model = shuffled(Decoder(**SMALL))
    silent = reached(model, model(cube.points(6), all_positions=True).square().mean())
    assert all(name.endswith("key.bias") for name in silent)  # softmax does not see what all keys share


def test_it_learns_majority_of_every_prefix():
    torch.manual_seed(0)
    model = Decoder(length=5, dim=16)
    bits = cube.points(5, dtype=torch.float32)
    target = torch.stack([cube.majority(bits[:, :n]) for n in range(1, 6)], -1)
    seen = losses(model, lambda _: (model(bits, all_positions=True) - target).square().mean(), lr=3e-3)
    assert falls(seen, to=0.2)
    estimate = teeter.sensitivity(model.eval(), bits, BitFlip(), design="paper", draws=1)
    assert estimate.value * 5 == pytest.approx(1.875, abs=0.2)


def test_bad_input():
    with pytest.raises(InputError, match="layers is a whole number of at least 1, got 0"):
        Decoder(layers=0)
    with pytest.raises(InputError, match="length 7"):
        Decoder(**SMALL)(torch.ones(1, 7))
