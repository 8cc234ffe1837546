import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

import teeter
from teeter import cube
from teeter.errors import InputError
from teeter.models import MODELS, Decoder, Encoder
from teeter.models.block import Block
from teeter.perturb import BitFlip, EmbeddingNoise

from .training import Largest, copy_block, falls, losses, reached, shuffled, size

SMALL = dict(length=6, dim=8, heads=2)


def test_the_papers_size():
    # token 2 x 128, position 30 x 128; a layer: four matrices of attention 4 (128^2 + 128) = 66,048, two of the network
    # 2 (128^2 + 128) = 33,024, two norms 4 x 128 = 512, together 99,584; head 128 + 1.
    assert size(MODELS["encoder"]()) == 256 + 3_840 + 2 * 99_584 + 129 == 203_393
    assert size(Encoder(positions="concatenate")) == 128 + 1_920 + 2 * 99_584 + 129
    assert size(Encoder(norm="pre")) == 203_393 + 2 * 128
    # the long inputs of H Figures 7 and 8: token 8, position 2,048, layers 4 x 20 + 2 x 20 + 16 = 136, head 5
    assert size(Encoder(length=512, dim=4)) == 8 + 2_048 + 2 * 136 + 5


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sum", "concatenate"])
def test_it_is_torchs_encoder(norm, positions):
    torch.manual_seed(0)
    ours = shuffled(Encoder(**SMALL, layers=3, width=12, norm=norm, positions=positions))
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "pre").double()
    last = nn.LayerNorm(8).double() if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, 3, norm=last, enable_nested_tensor=False)
    for our, their in zip(ours.layers, theirs.layers, strict=True):
        copy_block(our, their)
    if last is not None:
        last.load_state_dict(ours.norm.state_dict())
    for n in (6, 4):
        bits = cube.points(n)
        token, position = ours.embedding.token.weight[(bits < 0).long()], ours.embedding.position.weight[:n]
        x = token + position if positions == "sum" else torch.cat([token, position.expand(len(bits), -1, -1)], -1)
        expected = ours.head(theirs(x)[:, -1])[:, 0]
        assert torch.allclose(ours(bits), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", [Encoder, Decoder])
def test_the_last_layer_is_computed_where_it_is_read_unless_somebody_looks(kind, norm, monkeypatch):
    """The same answer and gradients either way."""
    torch.manual_seed(0)
    model, bits, seen = shuffled(kind(**SMALL, norm=norm)), cube.points(6), []
    last, through = model.layers[-1], Block.feed_forward
    monkeypatch.setattr(Block, "feed_forward", lambda part, x: [seen.append(x.shape[1]), through(part, x)][1])

    def answer():
        model.zero_grad()
        answers = model(bits)
        answers.square().sum().backward()
        return [answers, *(weight.grad for weight in model.parameters())]

    alone = answer()
    assert seen == [6, 1]
    for part in (last, last.norm2, last.attention, last.attention.key):
        handle = part.register_forward_hook(lambda *_: None)
        watched = answer()
        handle.remove()
        assert seen[-2:] == [6, 6]
        assert all(torch.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(alone, watched, strict=True))
    assert torch.allclose(alone[0], model(bits, all_positions=True)[:, -1], rtol=0, atol=1e-10)
    assert seen[-1] == 6


class Own(Block):
    """A layer of somebody's, who knows nothing of the last position."""

    def forward(self, x, causal=False):
        return super().forward(x, causal)


def test_what_stands_in_the_place_of_the_last_layer_is_called_as_any_layer():
    torch.manual_seed(0)
    model, bits = shuffled(Encoder(**SMALL)), cube.points(6)
    expected, last = model(bits), model.layers[-1]
    model.layers[-1] = Own(8, 2, 8).double()
    model.layers[-1].load_state_dict(last.state_dict())
    assert torch.allclose(model(bits), expected, rtol=0, atol=1e-10)
    model.layers[-1] = last
    usual = last.forward
    last.forward = lambda x, causal: usual(x, causal)
    assert torch.allclose(model(bits), expected, rtol=0, atol=1e-10)
    model.layers = nn.ModuleList()
    x = model.embedding((bits < 0).long())
    assert torch.allclose(model(bits), model.head(x[:, -1])[:, 0], rtol=0, atol=1e-10)


def test_a_batch_over_weights_copies_none_of_them_for_every_input():
    models, bits = [Encoder(length=6, dim=32, heads=2) for _ in range(3)], cube.points(6, dtype=torch.float32)
    stack, _ = torch.func.stack_module_state(models)
    with Largest() as seen:
        vmap(lambda weights: functional_call(models[0], weights, (bits,)))(stack)
    assert 0 < seen.numbers <= 3 * 64 * 6 * 32  # what all positions of all inputs are


def test_layers_start_as_copies_or_apart():
    for same in (True, False):
        torch.manual_seed(0)
        first, second = (layer.state_dict() for layer in Encoder(**SMALL, same_start=same).layers)
        assert torch.equal(first["up.weight"], second["up.weight"]) == same
        assert first["up.weight"].data_ptr() != second["up.weight"].data_ptr()  # copies, not one layer used twice


def test_a_seed_decides_everything():
    bits = cube.points(6, dtype=torch.float32)

    def run(seed):
        torch.manual_seed(seed)
        return Encoder(**SMALL)(bits)

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))
    assert run(0).shape == (64,)


def test_the_type_of_the_bits_does_not_matter():
    torch.manual_seed(0)
    model = Encoder(**SMALL)
    assert torch.equal(model(cube.points(6)), model(cube.points(6, dtype=torch.int64)))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stacked_weights_give_what_a_loop_gives(norm):
    torch.manual_seed(0)
    models = [Encoder(**SMALL, norm=norm).double() for _ in range(3)]
    stack, _ = torch.func.stack_module_state(models)
    bits = cube.points(6)

    def run(weights, x):
        return functional_call(models[0], weights, (x,))

    together = vmap(run, in_dims=(0, None))(stack, bits)
    assert torch.allclose(together, torch.stack([model(bits) for model in models]), rtol=0, atol=1e-12)
    own = torch.stack([bits[:10], bits[10:20], bits[20:30]])  # each model its own batch, as a stacked trainer has it
    together = vmap(run)(stack, own)
    assert torch.allclose(together, torch.stack([m(x) for m, x in zip(models, own, strict=True)]), rtol=0, atol=1e-12)


def test_gradients_by_input_under_vmap():
    torch.manual_seed(0)
    model = Encoder(**SMALL).double()
    weights = dict(model.named_parameters())

    def output(weights, x):
        return functional_call(model, weights, (x.unsqueeze(0),))[0]

    bits = cube.points(6)[:5]
    each = vmap(torch.func.grad(output), in_dims=(None, 0))(weights, bits)
    model(bits[3:4]).sum().backward()
    for name, weight in model.named_parameters():
        assert torch.allclose(each[name][3], weight.grad, rtol=0, atol=1e-12)


def test_gradient_check():
    torch.manual_seed(0)
    model = shuffled(Encoder(length=3, dim=4, layers=1, heads=2))
    names, weights = zip(*model.named_parameters(), strict=True)
    bits = cube.points(3)

    def run(*values):
        return functional_call(model, dict(zip(names, values, strict=True)), (bits,))

    assert torch.autograd.gradcheck(run, weights)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sum", "concatenate"])
def test_gradient_reaches_every_parameter(norm, positions):
    torch.manual_seed(0)
    model = shuffled(Encoder(**SMALL, norm=norm, positions=positions))
    bits = cube.points(6)
    # A key's bias adds the same to all scores of a row, which softmax does not see.
    silent = reached(model, (model(bits) - cube.majority(bits)).square().mean())
    assert all(name.endswith("key.bias") for name in silent)


@pytest.mark.parametrize("settings", [dict(), dict(positions="concatenate"), dict(norm="pre")])
def test_it_learns_majority(settings):
    torch.manual_seed(0)
    model = Encoder(length=5, dim=16, **settings)
    bits = cube.points(5, dtype=torch.float32)
    target = cube.majority(bits)
    seen = losses(model, lambda _: (model(bits) - target).square().mean(), lr=3e-3)
    assert falls(seen, to=0.05)
    # what it has learned is MAJORITY, as_5 = 1.875, to the digit
    estimate = teeter.sensitivity(model.eval(), bits, BitFlip(), design="paper", draws=1)
    assert estimate.value * 5 == 1.875


def test_noise_on_the_embedding():
    torch.manual_seed(0)
    model = Encoder(**SMALL).eval()
    bits = cube.points(6, dtype=torch.int64)
    little, much = (teeter.sensitivity(model, bits, EmbeddingNoise(sigma2=s), budget=2000).value for s in (1e-8, 25.0))
    assert little < 0.02 < much


def test_blowup_norm_and_sharpness():
    torch.manual_seed(0)
    bits = cube.points(6)
    for norm, count in (("post", 4), ("pre", 5)):
        model = Encoder(**SMALL, norm=norm).eval()
        result = teeter.blowup(model, bits)
        assert result.factors.shape == (64, count)
        assert result.layers[:4] == ("layers.0.norm1", "layers.0.norm2", "layers.1.norm1", "layers.1.norm2")
        assert bool((result.product > 0).all())
    everything = teeter.parameter_norm(model)
    position = float(model.embedding.position.weight.detach().double().norm())
    assert teeter.parameter_norm(model, skip=("position",)) ** 2 == pytest.approx(everything**2 - position**2)
    one, other = (teeter.sharpness(model, bits, draws=4, together=together).value for together in (True, False))
    assert one == pytest.approx(other, rel=1e-4)
    assert one > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Encoder(layers=0), "layers is a whole number of at least 1, got 0"),
        (lambda: Encoder(dim=9), "dim = 9 and heads = 2"),
        (lambda: Encoder(norm="none"), "'post' or 'pre'"),  # pyright: ignore
        (lambda: Encoder(width=0), "width is a whole number of at least 1, got 0"),
        (lambda: Encoder(length=4, dim=4)(torch.ones(1, 5)), "4 positions, got an input of length 5"),
        (lambda: Encoder(length=4, dim=4)(torch.zeros(1, 4)), "\\+1 and -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_mean_of_all_positions(norm):
    torch.manual_seed(0)
    model = shuffled(Encoder(**SMALL, norm=norm, read="mean"))
    bits = cube.points(6)
    x = model.embedding((bits < 0).long())
    for layer in model.layers:
        x = layer(x)
    expected = model.head(model.norm(x).mean(1))[:, 0]
    assert torch.allclose(model(bits), expected, rtol=0, atol=1e-12)
    assert torch.allclose(
        model(bits), model(bits, all_positions=True).mean(1), rtol=0, atol=1e-12
    )  # the head is linear
    with pytest.raises(InputError, match="'last' position or at the 'mean' of all, got 'first'"):
        Encoder(read="first")
