import math

import pytest
import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.measure.forward import unfused
from teeter.models.vit_small import LocalityAttention, ShiftedPatches, ViTSmall
from tests.models.vision import unlike_a_fresh_one

kinds = pytest.mark.parametrize("attention", ["softmax", "relu"])
SIZES = {"dim": 8, "heads": 2, "dim_head": 4}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tokens_by_hand(part: ShiftedPatches, images: Tensor) -> Tensor:
    """Pixel by pixel: an image moved right shows at (row, column) what was at (row, column - 1)."""
    batch, channels, height, width = images.shape
    views = torch.zeros(5, *images.shape, dtype=images.dtype)
    for view, (down, right) in enumerate([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]):
        for row in range(height):
            for column in range(width):
                if 0 <= row - down < height and 0 <= column - right < width:
                    views[view, :, :, row, column] = images[:, :, row - down, column - right]
    tokens = []
    for top in range(0, height, part.patch):
        for left in range(0, width, part.patch):
            pixels = [
                views[view, :, channel, top + row, left + column]
                for row in range(part.patch)
                for column in range(part.patch)
                for view in range(5)
                for channel in range(channels)
            ]
            tokens.append(torch.stack(pixels, -1))
    return part.embed(part.norm(torch.stack(tokens, 1)))


def attention_by_hand(part: LocalityAttention, x: Tensor) -> Tensor:
    """Image by image, head by head, token by token."""
    dim_head = part.out.in_features // part.heads
    queries, keys, values = part.qkv(part.norm(x)).chunk(3, -1)
    rows = []
    for q, k, v in zip(queries, keys, values, strict=True):
        heads = []
        for head in range(part.heads):
            own = slice(head * dim_head, (head + 1) * dim_head)
            mixed = []
            for i in range(len(q)):
                others = [j for j in range(len(q)) if j != i]
                scores = torch.stack([math.exp(part.temperature.item()) * (q[i, own] @ k[j, own]) for j in others])
                weights = scores.exp() / scores.exp().sum() if part.attention == "softmax" else scores.clamp(min=0)
                mixed.append(sum(weight * v[j, own] for weight, j in zip(weights, others, strict=True)))
            heads.append(torch.stack(mixed))
        rows.append(torch.cat(heads, -1))
    return part.out(torch.stack(rows))


def test_shifted_patches_by_hand():
    part = unlike_a_fresh_one(ShiftedPatches(channels=2, patch=3, dim=5))
    images = drawn(2, 2, 6, 9)
    assert torch.allclose(part(images), tokens_by_hand(part, images), rtol=0, atol=1e-10)


@kinds
@pytest.mark.parametrize("dim_head", [4, 8, 11])  # narrower than the input, as wide as it, wider
def test_locality_attention_by_hand(attention, dim_head):
    part = unlike_a_fresh_one(LocalityAttention(**{**SIZES, "dim_head": dim_head}, attention=attention))
    x = drawn(3, 6, 8)
    assert torch.allclose(part(x), attention_by_hand(part, x), rtol=0, atol=1e-10)


@kinds
def test_the_whole_by_hand(attention):
    model = unlike_a_fresh_one(
        ViTSmall(image_size=6, channels=2, patch=3, layers=2, width=7, attention=attention, **SIZES)
    )
    images = drawn(2, 2, 6, 6)
    x = tokens_by_hand(model.embed, images)
    x = torch.cat([model.reader.repeat(2, 1, 1), x], 1) + model.place
    for block in model.blocks:
        x = x + attention_by_hand(block.attend, x)
        norm, widen, _, _, narrow, _ = block.mlp
        hidden = widen(norm(x))
        x = x + narrow(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))
    assert torch.allclose(model(images), model.head(model.norm(x[:, 0])), rtol=0, atol=1e-10)


@kinds
@pytest.mark.parametrize("dim_head", [4, 8])
def test_gradients_of_attention(attention, dim_head):
    part = unlike_a_fresh_one(LocalityAttention(**{**SIZES, "dim_head": dim_head}, attention=attention))
    names = [name for name, _ in part.named_parameters()]

    def f(x, *weights):
        return torch.func.functional_call(part, dict(zip(names, weights, strict=True)), (x,))

    weights = [weight.detach().requires_grad_() for weight in part.parameters()]
    assert torch.autograd.gradcheck(f, (drawn(2, 4, 8).requires_grad_(), *weights))


def test_temperature_starts_at_the_usual_scale():
    assert LocalityAttention(dim=8, heads=1, dim_head=16).temperature.exp().item() == pytest.approx(0.25)


@kinds
def test_no_token_attends_to_itself(attention):
    """Where all scores are alike, a token reaches the outputs only as a value: every token's but its own.

    For the softmax the keys are 0; for the ReLU, whose weights would then be 0 too, queries and keys are the first
    feature, which is 1 for every token and no part of the values.
    """
    part = unlike_a_fresh_one(LocalityAttention(dim=8, heads=1, dim_head=8, attention=attention))
    x = drawn(1, 5, 8)
    q, k, v = part.qkv.weight.detach().chunk(3)
    part.norm = torch.nn.Identity()  # type: ignore[assignment]
    if attention == "relu":
        x[..., 0] = 1.0
        q.zero_()[:, 0] = 1.0
        k.zero_()[:, 0] = 1.0
        v[:, 0] = 0.0
    else:
        k.zero_()
    with unfused():
        jacobian = torch.func.jacrev(lambda x: part(x[None])[0])(x[0])  # to, its features, from, its features
    reached = jacobian[..., 1:].abs().amax((1, 3)) > 1e-9
    assert torch.equal(reached, ~torch.eye(5, dtype=torch.bool))


@kinds
def test_order_of_tokens_does_not_matter_to_attention(attention):
    part = unlike_a_fresh_one(LocalityAttention(**SIZES, attention=attention))
    x, order = drawn(2, 6, 8), torch.tensor([3, 0, 5, 1, 4, 2])
    assert torch.allclose(part(x[:, order]), part(x)[:, order], rtol=0, atol=1e-12)


def test_relu_attention_is_not_normalised_over_keys():
    """Every score twice as large, every weight twice as large; softmax weights still sum to one."""
    part = unlike_a_fresh_one(LocalityAttention(**SIZES, attention="relu"))
    x = drawn(2, 5, 8)
    before = part(x) - part.out.bias
    with torch.no_grad():
        part.temperature.add_(math.log(2))
    assert torch.allclose(part(x) - part.out.bias, 2 * before, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("token", "touched"),
    [
        (0, {0, 1, 4}),  # a corner
        (2, {1, 2, 3, 6}),  # an edge
        (5, {1, 4, 5, 6, 9}),  # inside: itself, above, left, right, below
        (15, {11, 14, 15}),
    ],
)
def test_which_tokens_a_patch_touches(token, touched):
    part = unlike_a_fresh_one(ShiftedPatches(channels=3, patch=4, dim=8))
    images = drawn(1, 3, 16, 16)
    nudged = images.clone()
    row, column = divmod(token, 4)
    nudged[..., 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += drawn(1, 3, 4, 4, seed=1)
    changed = (part(nudged) != part(images)).any(-1)[0]
    assert set(changed.nonzero().flatten().tolist()) == touched


@kinds
def test_dropout_is_for_training(attention):
    torch.manual_seed(0)
    sizes = {"image_size": 8, "layers": 2, "width": 8, "attention": attention, **SIZES}
    wet = ViTSmall(**sizes, dropout=0.5, embedding_dropout=0.5)
    dry = ViTSmall(**sizes)
    dry.load_state_dict(wet.state_dict())
    images = drawn(4, 3, 8, 8).float()
    assert not torch.equal(wet(images), wet(images))
    assert torch.equal(dry(images), dry(images))
    assert torch.equal(wet.eval()(images), dry(images))


PLACES = ["drop", "blocks.0.drop", "blocks.1.drop", "blocks.0.mlp.3", "blocks.0.mlp.5", "blocks.1.mlp.5"]


@pytest.mark.parametrize("place", PLACES)
def test_each_place_of_dropout_by_itself(place):
    """Half of what comes there goes, the rest is doubled, and the answer is another."""
    torch.manual_seed(0)
    model = ViTSmall(image_size=8, layers=2, width=8, **SIZES, dropout=0.5, embedding_dropout=0.5)
    part, seen = model.get_submodule(place), []
    for block in model.blocks:
        block.attend.dropout = 0.0
    for other in model.modules():
        if isinstance(other, torch.nn.Dropout) and other is not part:
            other.p = 0.0
    part.register_forward_hook(lambda module, given, out: seen.append((given[0], out)))
    images = drawn(4, 3, 8, 8).float()
    assert not torch.equal(model(images), model(images))
    given, out = seen[0]
    kept = out != 0
    assert torch.equal(out[kept], 2 * given[kept])
    assert kept.double().mean().item() == pytest.approx(0.5, abs=0.15)


def test_the_two_rates_are_two():
    model = ViTSmall(image_size=8, layers=2, width=8, **SIZES, dropout=0.2, embedding_dropout=0.3)
    rates = {name: part.p for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout)}
    assert rates == {**dict.fromkeys([*PLACES, "blocks.1.mlp.3"], 0.2), "drop": 0.3}
    assert [block.attend.dropout for block in model.blocks] == [0.2, 0.2]
    assert not [part for part in ViTSmall(layers=1).modules() if isinstance(part, torch.nn.Dropout)]


@kinds
@pytest.mark.parametrize("dim_head", [4, 8])
def test_dropout_reaches_the_attention_itself(attention, dim_head):
    part = LocalityAttention(**{**SIZES, "dim_head": dim_head}, attention=attention, dropout=0.5)
    x = drawn(2, 5, 8).float()
    assert not torch.equal(part(x), part(x))
    assert torch.equal(part.eval()(x), part(x))


def test_bad_input():
    with pytest.raises(InputError, match="attention is 'softmax' or 'relu', got 'linear'"):
        ViTSmall(attention="linear")  # pyright: ignore
