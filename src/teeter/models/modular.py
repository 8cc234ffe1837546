"""The one-layer transformer that groks a + b mod p (V sections 7.3 and A.5; Nanda et al. 2023).

V trains a one-layer transformer on a + b mod 113, as Nanda et al. do, and gives no sizes. V's released code has
dimension 128, 4 heads and a ReLU network of width 512, with neither skip connections nor LayerNorm, and position
vectors that start at zero: our default. `residual=True` is the model of Nanda et al.: the same sizes with skip
connections, no biases but in the ReLU network, and Gaussian initial weights of variance 1 / dim (1 / (number of logits)
for the last). It masks later positions, which changes nothing where a single layer is read at its last position.
Both programs also have a logit for "=", which is never the answer: there is none here.

Before attention a position has one of p + 1 vectors, however many inputs there are. Where these are many more than
that, keys, values and all scores are tables, from which inputs only pick: the same function, on two cores nearly twice
as fast to train (benchmarks/processor.py). What it would bring on a GPU has not been measured: there it is left alone.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.block import Attention
from teeter.models.embedding import SequenceEmbedding
from teeter.models.sizes import check_sizes
from teeter.models.values import check_tokens
from teeter.models.watched import unwatched

__all__ = ["ModularAddition"]

_MANY = 4  # times as many inputs as tokens, below which tables of scores, tokens x tokens, are not worth it


class ModularAddition(nn.Module):
    """Token numbers a, b, "=" (which is number p) to the logits of a + b mod p: (batch, 3) to (batch, p).

    `embedding` puts out the sum of token and position vectors, (batch, 3, dim). V's noise goes there, "to the number
    embeddings": `EmbeddingNoise(sigma2=0.01, skip=(p,))` nudges one number at a time, which is our reading of the text
    beside Definition 4.1; the released code nudges both at once.

    >>> import torch
    >>> ModularAddition(p=7)(torch.tensor([[3, 5, 7]])).shape
    torch.Size([1, 7])
    """

    def __init__(
        self, *, p: int = 113, dim: int = 128, heads: int = 4, width: int = 512, residual: bool = False
    ) -> None:
        super().__init__()
        check_sizes(p=p, width=width)
        if p < 2:
            raise InputError(f"modulo 1 every sum is 0: p is at least 2, got {p}")
        self.p, self.residual = p, residual
        self.embedding = SequenceEmbedding(vocabulary=p + 1, length=3, dim=dim)
        self.attention = Attention(dim, heads, bias=not residual)
        self.up = nn.Linear(dim, width)
        self.down = nn.Linear(width, dim)
        self.head = nn.Linear(dim, p, bias=not residual)
        nn.init.zeros_(self.embedding.position.weight)
        if residual:
            for name, weight in self.named_parameters():
                if weight.ndim == 2:
                    nn.init.normal_(weight, std=(p if name == "head.weight" else dim) ** -0.5)
                else:
                    nn.init.zeros_(weight)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.ndim != 2 or tokens.shape[1] != 3 or tokens.is_floating_point():
            raise InputError(
                f"the inputs are token numbers a, b, {self.p} of shape (batch, 3), got {tokens.dtype} "
                f"{tuple(tokens.shape)}"
            )
        check_tokens(tokens, self.p + 1)
        # Only the last position is read, so only its query, and its way through the network, are needed.
        last, gathered = self._picked(tokens) if self._has_tables(tokens) else self._attended(tokens)
        mid = gathered + last if self.residual else gathered
        out = self.down(self.up(mid).relu())
        return self.head((out + mid if self.residual else out)[:, 0])

    def _attended(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """What the last position is, and what it gathers: (batch, 1, dim) each."""
        x = self.embedding(tokens)
        last = x[:, -1:].contiguous()  # else a batch over weights would copy the matrix of queries for every input
        return last, self.attention(last, x)

    def _has_tables(self, tokens: Tensor) -> bool:
        parts = [*self.embedding.modules(), *self.attention.modules()]
        made_of = (SequenceEmbedding, Attention, nn.Embedding, nn.Linear)
        here = not (tokens.is_cuda or torch.compiler.is_compiling())  # a program that is exported is for any number
        return here and len(tokens) >= _MANY * (self.p + 1) and unwatched(*parts, made_of=made_of)

    def _picked(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The same, picked from tables of all that can be at each position."""
        n, heads, device = self.p + 1, self.attention.heads, tokens.device
        vectors = self.embedding(torch.arange(n, device=device).unsqueeze(1).expand(n, 3))
        key, value = self.attention.keys_and_values(vectors.transpose(0, 1))  # (3, heads, n, dim / heads)
        scores = self.attention.scores(vectors[:, 2], key)  # (3, heads, n, n), asked by whatever is at the last
        place = torch.arange(3, device=device) * n
        asked = (place + tokens[:, 2:]) * n + tokens
        chances = F.embedding(asked, scores.permute(0, 2, 3, 1).reshape(-1, heads)).softmax(1)
        seen = F.embedding(place + tokens, value.transpose(1, 2).reshape(3 * n, -1))
        mixed = (seen.unflatten(-1, (heads, -1)) * chances.unsqueeze(-1)).sum(1, keepdim=True).flatten(-2)
        return F.embedding(tokens[:, 2:], vectors[:, 2]), self.attention.output(mixed)
