"""Attention and layers against torch's own with the same weights."""

import math

import pytest
import torch
from torch import nn

from teeter.errors import InputError
from teeter.models.block import Attention, Block

from .training import copy_block, shuffled, torch_attention

X = torch.randn(3, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
MEMORY = torch.randn(3, 7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("source", [None, MEMORY])
def test_attention_is_torchs(heads, source):
    torch.manual_seed(0)
    ours = shuffled(Attention(8, heads))
    other = X if source is None else source
    out, weights = torch_attention(ours, heads)(X, other, other, average_attn_weights=False)
    assert torch.allclose(ours(X, source), out, rtol=0, atol=1e-10)
    assert torch.allclose(ours.weights(X, source), weights, rtol=0, atol=1e-10)


def test_causal_attention_is_torchs():
    torch.manual_seed(0)
    ours = shuffled(Attention(8, 2))
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    out, _ = torch_attention(ours, 2)(X, X, X, attn_mask=mask)
    assert torch.allclose(ours(X, causal=True), out, rtol=0, atol=1e-10)
    assert torch.equal(ours.weights(X, causal=True).triu(1), torch.zeros(3, 2, 5, 5, dtype=torch.float64))


def test_attention_by_hand():
    # One head of one number: queries and keys are x itself, so scores are x_i x_j, and values are doubled.
    one = Attention(1, 1).double()
    with torch.no_grad():
        for part, gain in ((one.query, 1.0), (one.key, 1.0), (one.value, 2.0), (one.output, 1.0)):
            part.weight.fill_(gain)
    out = one(torch.tensor([[[0.0], [math.log(3)]]], dtype=torch.float64)).flatten()
    e = math.exp(math.log(3) ** 2)
    assert out.tolist() == pytest.approx([math.log(3), 2 * math.log(3) * e / (1 + e)], abs=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_block_is_torchs_encoder_layer(norm, causal):
    torch.manual_seed(0)
    ours = shuffled(Block(8, 2, 12, norm))
    theirs = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "pre").double()
    copy_block(ours, theirs)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64) if causal else None
    assert torch.allclose(ours(X, causal), theirs(X, src_mask=mask), rtol=0, atol=1e-10)


def test_initial_weights_have_torchs_law():
    torch.manual_seed(0)
    ours, theirs = Block(96, 2, 64), nn.TransformerEncoderLayer(96, 2, 64, batch_first=True)
    pairs = [
        (ours.attention.query.weight, theirs.self_attn.in_proj_weight[:96]),
        (ours.attention.key.weight, theirs.self_attn.in_proj_weight[96:192]),
        (ours.attention.value.weight, theirs.self_attn.in_proj_weight[192:]),
        (ours.attention.output.weight, theirs.self_attn.out_proj.weight),
        (ours.up.weight, theirs.linear1.weight),
        (ours.down.weight, theirs.linear2.weight),
    ]
    for our, their in pairs:  # all uniform: largest value and spread say everything
        our, their = our.detach(), their.detach()
        assert float(our.abs().max() / their.abs().max()) == pytest.approx(1, abs=0.01)
        assert float(our.std() / their.std()) == pytest.approx(1, abs=0.03)
    for part in (ours.attention.query, ours.attention.key, ours.attention.value, ours.attention.output):
        assert not part.bias.any()
    assert not theirs.self_attn.in_proj_bias.any() and not theirs.self_attn.out_proj.bias.any()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention_and_block(causal):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    for part in (shuffled(Attention(4, 2)), shuffled(Block(4, 2, 3)), shuffled(Block(4, 2, 3, "pre"))):
        names, weights = zip(*part.named_parameters(), strict=True)

        def run(x, *values, part=part, names=names):
            weights = dict(zip(names, values, strict=True))
            return torch.func.functional_call(part, weights, (x,), {"causal": causal})

        assert torch.autograd.gradcheck(run, (x, *weights))


def test_second_derivatives_of_attention():
    torch.manual_seed(0)
    part = shuffled(Attention(2, 1))
    x = torch.randn(1, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(part, (x,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Attention(8, 3), "dim = 8 and heads = 3"),
        (lambda: Attention(8, 0), "heads is a whole number of at least 1, got 0"),
        (lambda: Block(8, 2, 8, "both"), "'post' or 'pre', got 'both'"),  # pyright: ignore
        (lambda: Block(8, 2, 0), "width is a whole number of at least 1, got 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
