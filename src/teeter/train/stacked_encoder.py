"""K encoders of one shape on K batches of bits, as one program that does only what the answer needs.

The function is `teeter.models.Encoder`'s or, with positions blind to later ones, `Decoder`'s, each model with its own
weights and inputs, and so are the gradients. The savings, none of which is an approximation:

- Before the first layer a position is one of two vectors, as its bit is: 2n of them, whatever the batch. Queries, keys,
  scores and values (through the output matrix) are tables of these; a batch only picks from them. What the first
  attention gives is then one product of its weights, (batch n) x (2n heads), with the table of values; or, for long
  inputs of short vectors, a quotient of two products with the table of e^scores (`_long_first_layer`).
- Where only the last position is read out, the last layer has one query. Its score with position j is
  q . (K x_j) = (K^T q) . x_j, and its value is V (sum_j p_j x_j): keys and values need one vector an input, not n.
- A bias of keys adds the same to all scores of a query, which softmax does not see.

With dimension d, n positions and two layers of feed-forward width d, read at the last position, 2 d^2 + 2 n d heads
multiplications a position remain of 12 d^2 + 4 n d.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models import Decoder, Encoder
from teeter.models.block import Block
from teeter.models.embedding import token_numbers
from teeter.train.one_query import one_query
from teeter.train.pieces import product

__all__ = ["check_bits", "serves", "stacked_encoder", "unseen"]

Weights = dict[str, Tensor]


def serves(model: nn.Module) -> bool:
    """Whether a model is an `Encoder` or a `Decoder` as it was made, in which nothing was exchanged."""
    if not isinstance(model, Encoder) or type(model) not in (Encoder, Decoder):
        return False
    try:
        block = cast(Block, model.layers[0])
        fresh = type(model)(
            length=model.embedding.length,
            dim=block.up.in_features,
            layers=len(model.layers),
            heads=block.attention.heads,
            width=block.up.out_features,
            positions=cast(Any, model.embedding.positions),
            norm="pre" if block.pre else "post",
            read=model.read,
        )
    except (AttributeError, TypeError, InputError):
        return False
    return _made_of(model) == _made_of(fresh)


def _made_of(model: nn.Module) -> list[Any]:
    """All of its modules with their attributes and hooks, and the shapes of its weights."""
    kinds = (bool, int, float, str, tuple, type(None))
    parts = [
        (name, type(part), {k: v if isinstance(v, kinds) else bool(v) for k, v in vars(part).items() if k not in _OWN})
        for name, part in model.named_modules()
    ]
    return [parts, [(name, part.shape) for name, part in model.named_parameters()]]


_OWN = {"training", "_parameters", "_buffers", "_modules"}  # compared by their names and shapes, or of no matter


def unseen(model: nn.Module) -> set[str]:
    """The weights that the answer does not depend on, of which rounding tells the model, and not the program below."""
    model = cast(Encoder, model)
    return {f"layers.{len(model.layers) - 1}.attention.key.bias"} if model.read == "last" else set()


def check_bits(model: nn.Module, bits: Tensor) -> None:
    """Raise where the model alone would: the program below takes whatever it is given for bits."""
    cast(Encoder, model).embedding(token_numbers(bits)[:1])


def stacked_encoder(model: nn.Module, weights: Weights, bits: Tensor) -> Tensor:
    """The answers (K, batch) of encoders shaped like `model`, with weights (K, ...) by name, to bits (K, batch, n).

    >>> model = Encoder(length=4, dim=8)
    >>> weights = {name: part.expand(3, *part.shape) for name, part in model.named_parameters()}
    >>> bits = torch.ones(3, 5, 4)
    >>> torch.allclose(stacked_encoder(model, weights, bits)[2], model(bits[2]), atol=1e-6)
    True
    """
    model = cast(Encoder, model)
    table = _table(model, weights, bits.shape[-1])
    shape = cast(Block, model.layers[0])
    heads, norm, is_mean = shape.attention.heads, "pre" if shape.pre else "post", model.read == "mean"
    layers = [_part(weights, f"layers.{i}.") for i in range(len(model.layers))]
    last = None if is_mean else layers.pop()  # which needs one position alone
    if layers:
        n, dim = bits.shape[-1], table.shape[-1]
        is_long = 2 * n * heads >= 4 * dim + 2 * n  # as H's long inputs of dimension 4 are
        x = (_long_first_layer if is_long else _first_layer)(layers[0], table, bits, heads, norm, model.causal)
    else:
        x = _pick(table, bits)
    for each in layers[1:]:
        x = _layer(each, x, heads, norm, model.causal)
    if last is not None:
        x = _last_layer(last, x, heads, norm)
    if norm == "pre":
        x = _normed(x, weights, "norm")
    return _linear(x.mean(2) if is_mean else x, weights, "head").squeeze(-1)


def _part(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): part for name, part in weights.items() if name.startswith(prefix)}


def _table(model: Encoder, weights: Weights, n: int) -> Tensor:
    """The vectors that positions can have: (K, n, 2, dim), of bit +1 and of bit -1."""
    token, position = weights["embedding.token.weight"].unsqueeze(1), weights["embedding.position.weight"][:, :n]
    position = position.unsqueeze(2)
    if model.embedding.positions == "sum":
        return token + position
    shape = (len(token), n, 2, token.shape[-1])
    return torch.cat([token.expand(shape), position.expand(shape)], -1)


def _pick(table: Tensor, bits: Tensor) -> Tensor:
    """The vectors of these bits: (K, batch, n, ...), where gathering would be slow to differentiate."""
    plus, minus = table[:, :, 0].unsqueeze(1), table[:, :, 1].unsqueeze(1)
    negative = (bits < 0).to(table.dtype)
    negative = negative.reshape(*negative.shape, *[1] * (table.ndim - 3))
    return plus + negative * (minus - plus)


def _linear(x: Tensor, weights: Weights, name: str) -> Tensor:
    """Each model's own linear map of (K, ..., in)."""
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return product(x, weight.transpose(1, 2)) + bias.view(len(bias), *[1] * (x.ndim - 2), -1)


def _normed(x: Tensor, weights: Weights, name: str) -> Tensor:
    scale, shift = (weights[f"{name}.{part}"] for part in ("weight", "bias"))
    shape = (len(x), *[1] * (x.ndim - 2), x.shape[-1])
    return F.layer_norm(x, x.shape[-1:]) * scale.view(shape) + shift.view(shape)


def _feed_forward(x: Tensor, weights: Weights) -> Tensor:
    return _linear(_linear(x, weights, "up").relu(), weights, "down")


def _after(x: Tensor, attended: Tensor, weights: Weights, norm: str) -> Tensor:
    """The rest of a layer: sum, norm, feed-forward network, sum, norm."""
    if norm == "pre":
        x = x + attended
        return x + _feed_forward(_normed(x, weights, "norm2"), weights)
    x = _normed(x + attended, weights, "norm1")
    return _normed(x + _feed_forward(x, weights), weights, "norm2")


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1))


def _earlier(n: int, device: torch.device) -> Tensor:
    """Whether position i, a row, may look at position j: up to its own."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def _first_layer(weights: Weights, table: Tensor, bits: Tensor, heads: int, norm: str, causal: bool) -> Tensor:
    models, n, _, dim = table.shape
    source = _normed(table, weights, "norm1") if norm == "pre" else table
    query, key, value = (
        _heads(_linear(source, weights, f"attention.{name}"), heads) for name in ("query", "key", "value")
    )
    # (K, n, 2, heads, n, 2): how much a position with its bit looks at another with its bit.
    scores = torch.einsum("kiahd,kjbhd->kiahjb", query, key) / math.sqrt(dim // heads)
    picked = _pick(scores, bits)  # (K, batch, n, heads, n, 2), of both bits that each other position might have
    is_there = torch.stack([bits > 0, bits < 0], -1)[:, :, None, None]
    if causal:
        is_there = is_there & _earlier(n, bits.device)[:, None, :, None]
    chances = picked.masked_fill(~is_there, -math.inf).flatten(-2).softmax(-1)  # over 2n, of which n are there
    outward = _heads(weights["attention.output.weight"], heads)  # (K, out, heads, inside)
    values = torch.einsum("kjbhd,kohd->khjbo", value, outward).reshape(models, -1, dim)
    attended = product(chances.flatten(-2), values) + weights["attention.output.bias"].view(models, 1, 1, dim)
    return _after(_pick(table, bits), attended, weights, norm)


def _long_first_layer(weights: Weights, table: Tensor, bits: Tensor, heads: int, norm: str, causal: bool) -> Tensor:
    """The same where vectors are short and inputs long, and n x n numbers for every input would be most of the work.

    An answer of attention is a quotient: sum_j e^s_j v_j over sum_j e^s_j, where s_j and v_j are one of two as bit j
    is. So both sums are products of a row of the table of e^s, 2n long, with what is there: v_j and 1 for the bit that
    j has, and 0 for the other.
    """
    models, n, _, dim = table.shape
    source = _normed(table, weights, "norm1") if norm == "pre" else table
    query, key, value = (
        _heads(_linear(source, weights, f"attention.{name}"), heads) for name in ("query", "key", "value")
    )
    scores = torch.einsum("kiahd,kjbhd->khiajb", query, key) / math.sqrt(dim // heads)
    if causal:
        scores = scores.masked_fill(~_earlier(n, bits.device)[:, None, :, None], -math.inf)
    # A quotient stays the same when both sums are scaled. The largest score that is there lies between the largest of
    # each position's smaller one and of its larger one: from the middle, a float64 holds what is 700 away, which a
    # float32 would not of some that training arrives at.
    ends = scores.detach().sort(-1).values.amax(-2)
    grown = torch.exp((scores - ends.mean(-1)[..., None, None]).double()).view(models, heads, 2 * n, 2 * n)
    summed = torch.cat([value, torch.ones_like(value[..., :1])], -1).double().flatten(1, 2)  # a 1 for the divisor
    is_there = torch.stack([bits > 0, bits < 0], -1).flatten(-2).double()  # (K, batch, 2n)
    there = torch.einsum("kcj,kjho->khcoj", is_there, summed)
    sums = (there.flatten(2, 3) @ grown.transpose(-1, -2)).view(*there.shape[:-1], n, 2)
    own = torch.where((bits > 0)[:, None, :, None], sums[..., 0], sums[..., 1])  # (K, heads, batch, inside + 1, n)
    mixed = (own[:, :, :, :-1] / own[:, :, :, -1:]).permute(0, 2, 4, 1, 3).flatten(-2).to(table.dtype)
    return _after(_pick(table, bits), _linear(mixed, weights, "attention.output"), weights, norm)


def _layer(weights: Weights, x: Tensor, heads: int, norm: str, causal: bool) -> Tensor:
    """A layer of which all positions are needed, in plain steps."""
    source = _normed(x, weights, "norm1") if norm == "pre" else x
    query, key, value = (
        _heads(_linear(source, weights, f"attention.{name}"), heads).transpose(2, 3)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if causal:
        scores = scores.masked_fill(~_earlier(x.shape[-2], x.device), -math.inf)
    chances = scores.softmax(-1)
    attended = _linear((chances @ value).transpose(2, 3).flatten(-2), weights, "attention.output")
    return _after(x, attended, weights, norm)


def _last_layer(weights: Weights, x: Tensor, heads: int, norm: str) -> Tensor:
    """The last position's answer alone, (K, batch, dim): there is none that it could not look at."""
    source = _normed(x, weights, "norm1") if norm == "pre" else x
    query = _heads(_linear(source[:, :, -1], weights, "attention.query"), heads)
    key = _heads(weights["attention.key.weight"].transpose(1, 2), heads)  # (K, in, heads, inside)
    asked = torch.einsum("kbhd,kihd->kbhi", query, key) / math.sqrt(query.shape[-1])
    seen = one_query(asked, source)
    value = _heads(weights["attention.value.weight"].transpose(1, 2), heads)
    mixed = torch.einsum("kbhi,kihd->kbhd", seen, value).flatten(-2) + weights["attention.value.bias"].unsqueeze(1)
    return _after(x[:, :, -1], _linear(mixed, weights, "attention.output"), weights, norm)
