"""The one-layer transformer that groks a + b mod p (V sections 7.3 and A.5; Nanda et al. 2023).

V trains a one-layer transformer on a + b mod 113, as Nanda et al. do, and gives no sizes. V's released code has
dimension 128, 4 heads and a ReLU network of width 512, with neither skip connections nor LayerNorm, and position
vectors that start at zero: our default. `residual=True` is the model of Nanda et al.: the same sizes with skip
connections, no biases but in the ReLU network, and Gaussian initial weights of variance 1 / dim (1 / (number of logits)
for the last). It masks later positions, which changes nothing where a single layer is read at its last position.
Both programs also have a logit for "=", which is never the answer: there is none here.
"""

from __future__ import annotations

from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.block import Attention
from teeter.models.embedding import SequenceEmbedding
from teeter.models.sizes import check_sizes
from teeter.models.values import check_tokens

__all__ = ["ModularAddition"]


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
        x = self.embedding(tokens)
        last = x[:, -1:].contiguous()  # else a batch over weights would copy the matrix of queries for every input
        # Only the last position is read, so only its query, and its way through the network, are needed.
        mid = self.attention(last, x) + (last if self.residual else 0)
        out = self.down(self.up(mid).relu()) + (mid if self.residual else 0)
        return self.head(out[:, 0])
