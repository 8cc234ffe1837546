"""Attention and the transformer layer around it, in plain steps.

The layer is torch's TransformerEncoderLayer without dropout (H 7.1 uses "the default implementation in PyTorch", at
dropout 0): the same function and the same law of initial weights, but a matrix for each of query, key and value and no
fused kernels, so that hooks, vmap and derivatives of any order work.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.sizes import check_heads, check_sizes

__all__ = ["Attention", "Block", "Norm", "copy_first"]

Norm = Literal["post", "pre"]


class Attention(nn.Module):
    """Multi-head attention: in each head softmax(Q K^T / sqrt(dim / heads)) V (H Eq. 1, and the usual scaling).

    Queries come from `x`, keys and values from `source`, or from `x` where there is none. With `causal`, position i
    attends to positions up to i.

    >>> Attention(dim=8, heads=2)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, dim: int, heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(dim, heads)
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias)
        self.key = nn.Linear(dim, dim, bias)
        self.value = nn.Linear(dim, dim, bias)
        self.output = nn.Linear(dim, dim, bias)
        for part in (self.query, self.key, self.value):  # torch draws the three as one matrix of 3 dim x dim
            nn.init.xavier_uniform_(part.weight, gain=math.sqrt(1 / 2))
        for part in (self.query, self.key, self.value, self.output):
            if part.bias is not None:
                nn.init.zeros_(part.bias)

    def weights(self, x: Tensor, source: Tensor | None = None, causal: bool = False) -> Tensor:
        """How much each position attends to each of the source's: (batch, heads, n, theirs), rows adding up to 1."""
        return self._weights(x, self._split(self.key(x if source is None else source)), causal)

    def forward(self, x: Tensor, source: Tensor | None = None, causal: bool = False) -> Tensor:
        return self.attend(x, *self.keys_and_values(x if source is None else source), causal)

    def keys_and_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """All that attention needs of a source, (batch, heads, theirs, dim / heads) each: it can be kept."""
        return self._split(self.key(source)), self._split(self.value(source))

    def attend(self, x: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Tensor:
        """What each position of x gathers from a source with these keys and values."""
        mixed = self._weights(x, key, causal) @ value
        return self.output(mixed.transpose(-3, -2).flatten(-2))

    def scores(self, x: Tensor, key: Tensor) -> Tensor:
        """What softmax makes weights of."""
        query = self._split(self.query(x))
        return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])

    def _weights(self, x: Tensor, key: Tensor, causal: bool) -> Tensor:
        scores = self.scores(x, key)
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return scores.softmax(-1)

    def _split(self, x: Tensor) -> Tensor:
        """(batch, n, dim) to (batch, heads, n, dim / heads)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)


class Block(nn.Module):
    """Attention, then a one-layer ReLU network, each with a skip connection and a LayerNorm.

    `norm="post"` normalises after each sum (Vaswani et al. 2017; torch's default, and H's), "pre" before each part.
    """

    def __init__(self, dim: int, heads: int, width: int, norm: Norm = "post") -> None:
        super().__init__()
        if norm not in ("post", "pre"):
            raise InputError(f"the norm comes 'post' or 'pre', got '{norm}'")
        check_sizes(width=width)
        self.pre = norm == "pre"
        self.attention = Attention(dim, heads)
        self.norm1 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, width)
        self.down = nn.Linear(width, dim)
        self.norm2 = nn.LayerNorm(dim)

    def forward(self, x: Tensor, causal: bool = False, last: bool = False) -> Tensor:
        """With `last`, what the layer makes of the last position alone, which sees all others, causal or not."""
        given = self.norm1(x) if self.pre else x
        if last:  # contiguous, else a batch over weights would copy the matrix of queries for every input
            x = x[:, -1:] + self.attention(given[:, -1:].contiguous(), given)
        else:
            x = x + self.attention(given, causal=causal)
        if self.pre:
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x)
        return self.norm2(x + self.feed_forward(x))

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


def copy_first(layers: nn.ModuleList) -> None:
    """Give every layer the weights of the first, as torch's TransformerEncoder does when it is made."""
    for layer in layers[1:]:
        layer.load_state_dict(layers[0].state_dict())
