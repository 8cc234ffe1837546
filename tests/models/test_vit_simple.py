import math

import pytest
import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.models.patches import cut
from teeter.models.vit_simple import PlainAttention, ViTSimple, sine_cosine_positions
from tests.models.vision import unlike_a_fresh_one

SIZES = {"dim": 8, "heads": 2, "dim_head": 4}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attention_by_hand(part: PlainAttention, x: Tensor) -> Tensor:
    """The mathematics in plain steps, a head at a time."""
    dim_head = part.out.in_features // part.heads
    q, k, v = part.qkv(part.norm(x)).chunk(3, -1)
    heads = []
    for head in range(part.heads):
        own = slice(head * dim_head, (head + 1) * dim_head)
        scores = torch.einsum("bid,bjd->bij", q[..., own], k[..., own]) / math.sqrt(dim_head)
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        heads.append(torch.einsum("bij,bjd->bid", weights, v[..., own]))
    return part.out(torch.cat(heads, -1))


widths = pytest.mark.parametrize("dim_head", [4, 8, 11])  # narrower than the input, as wide as it, wider


@widths
def test_attention_by_hand(dim_head):
    part = unlike_a_fresh_one(PlainAttention(**{**SIZES, "dim_head": dim_head}))
    x = drawn(3, 6, 8)
    assert torch.allclose(part(x), attention_by_hand(part, x), rtol=0, atol=1e-10)


@widths
def test_gradients_of_attention(dim_head):
    part = unlike_a_fresh_one(PlainAttention(**{**SIZES, "dim_head": dim_head}))
    names = [name for name, _ in part.named_parameters()]

    def f(x, *weights):
        return torch.func.functional_call(part, dict(zip(names, weights, strict=True)), (x,))

    weights = [weight.detach().requires_grad_() for weight in part.parameters()]
    assert torch.autograd.gradcheck(f, (drawn(2, 4, 8).requires_grad_(), *weights))


def test_positions_by_hand():
    places = sine_cosine_positions(3, 16)
    for row in range(3):
        for column in range(3):
            waves = [1.0, 10_000 ** (-1 / 3), 10_000 ** (-2 / 3), 1e-4]
            expected = [f(place * w) for place in (column, row) for f in (math.sin, math.cos) for w in waves]
            assert places[3 * row + column].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_whole_by_hand():
    model = unlike_a_fresh_one(ViTSimple(image_size=6, channels=2, patch=3, layers=2, width=7, **SIZES))
    images = drawn(2, 2, 6, 6)
    first, linear, second = model.embed
    rows = [[images[:, :, top : top + 3, left : left + 3] for left in (0, 3)] for top in (0, 3)]
    patches = torch.stack([p.permute(0, 2, 3, 1).reshape(2, -1) for row in rows for p in row], 1)
    x = second(linear(first(patches))) + sine_cosine_positions(2, 8).double()
    for block in model.blocks:
        x = x + attention_by_hand(block.attend, x)
        norm, widen, _, _, narrow, _ = block.mlp
        hidden = widen(norm(x))
        x = x + narrow(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))
    expected = torch.stack([model.norm(token) for token in x.unbind(1)]).mean(0) @ model.head.weight.T + model.head.bias
    assert torch.allclose(model(images), expected, rtol=0, atol=1e-10)


def shuffled(images: Tensor, patch: int, order: Tensor) -> Tensor:
    """The same patches elsewhere."""
    columns = torch.nn.functional.unfold(images, patch, stride=patch)
    return torch.nn.functional.fold(columns[..., order], images.shape[2:], patch, stride=patch)


def test_without_positions_the_order_of_patches_does_not_matter(monkeypatch):
    model = unlike_a_fresh_one(ViTSimple(image_size=12, layers=2, width=8, **SIZES))
    images, order = drawn(2, 3, 12, 12), torch.tensor([4, 8, 0, 3, 7, 1, 6, 2, 5])
    elsewhere = shuffled(images, 4, order)
    assert torch.equal(cut(elsewhere, 4), cut(images, 4)[:, order])
    assert (model(images) - model(elsewhere)).abs().min() > 1e-6
    monkeypatch.setattr("teeter.models.vit_simple._places", lambda *sizes, like: 0.0)
    assert torch.allclose(model(images), model(elsewhere), rtol=0, atol=1e-12)


def test_a_patch_touches_its_own_token_alone():
    model = unlike_a_fresh_one(ViTSimple(image_size=12, layers=1, width=8, **SIZES))
    images = drawn(1, 3, 12, 12)
    nudged = images.clone()
    nudged[..., 4:8, 4:8] += 1.0 + drawn(1, 3, 4, 4)
    changed = (model.embed(cut(nudged, 4)) != model.embed(cut(images, 4))).any(-1)[0]
    assert changed.nonzero().flatten().tolist() == [4]


def test_brightness_and_contrast_of_a_patch_are_lost():
    model = unlike_a_fresh_one(ViTSimple(image_size=12, layers=1, width=8, **SIZES))
    assert isinstance(model.embed[0], torch.nn.LayerNorm)
    model.embed[0].eps = 0.0
    images = drawn(2, 3, 12, 12)
    other = images.clone()
    other[..., 4:8, 8:12] = 7.0 + 3.0 * other[..., 4:8, 8:12]
    assert torch.allclose(model(other), model(images), rtol=0, atol=1e-10)
    other[:, 0, 4:8, 8:12] += 1.0  # a colour is not lost
    assert (model(other) - model(images)).abs().min() > 1e-6


def test_bad_input():
    for dim in (10, 4):
        with pytest.raises(InputError, match=f"that 4 divides, of at least 8, got dim = {dim}"):
            ViTSimple(dim=dim)
