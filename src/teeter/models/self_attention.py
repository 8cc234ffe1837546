"""V's single layer of self-attention on the synthetic sentences (V Eq. 3, sections 4.1 and A.1; Figures 3 and 12).

    Phi(theta; X) = < U, softmax(X W_Q W_K^T X^T) X W_V >,      theta = (W_Q, W_K, W_V, U)

The rows of X are the basis vectors of the T tokens, fixed, so X W takes rows of W. Scores are not scaled and there are
no biases. The text gives U as d x d, but the inner product needs T x d_v, the shape of the attention's output. (That
"the rows of U W_V^T", section 4.1, exist needs only its d_v columns.) The text names neither d_h and d_v (here d, the
size of the vocabulary) nor the small scale of the initial weights. No code was released for this part.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.sizes import check_sizes
from teeter.models.values import check_tokens

__all__ = ["SelfAttention"]


class SelfAttention(nn.Module):
    """Sentences (batch, length) of token numbers below `vocabulary` to a scalar whose sign is the answer: (batch,).

    `dim` is d_h = d_v. Every weight starts as Gaussian noise of standard deviation `scale`.

    >>> _ = torch.manual_seed(0)
    >>> model = SelfAttention(vocabulary=9, length=4)
    >>> tokens = torch.tensor([[0, 2, 3, 8]])
    >>> model(tokens).shape, model.weights(tokens).shape, model.attended(tokens).sum(), model.readout().shape
    (torch.Size([1]), torch.Size([1, 4, 4]), tensor(1., grad_fn=<SumBackward0>), torch.Size([4, 9]))
    """

    def __init__(self, *, vocabulary: int = 59, length: int = 50, dim: int | None = None, scale: float = 0.01) -> None:
        super().__init__()
        dim = vocabulary if dim is None else dim
        check_sizes(vocabulary=vocabulary, length=length, dim=dim)
        if not scale > 0:
            raise InputError(f"the scale of the initial weights is above 0, got {scale}")
        self.vocabulary, self.length = vocabulary, length
        self.query = nn.Parameter(scale * torch.randn(vocabulary, dim))
        self.key = nn.Parameter(scale * torch.randn(vocabulary, dim))
        self.value = nn.Parameter(scale * torch.randn(vocabulary, dim))
        self.head = nn.Parameter(scale * torch.randn(length, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        # Places that hold the same word have the same score: the softmax goes over words, each as often as it is there,
        # and <U, A W_V> = <U W_V^T, A>. That is half the time of the products of Eq. 3 for V's sizes.
        self._check(tokens)
        words = torch.arange(self.vocabulary, device=tokens.device)
        often = (tokens.unsqueeze(-1) == words).sum(-2, keepdim=True)
        scores = F.embedding(tokens, self.query @ self.key.T)
        return ((scores + often.to(scores.dtype).log()).softmax(-1) * self.readout()).sum((-2, -1))

    def weights(self, tokens: Tensor) -> Tensor:
        """The attention map: how much each place attends to each, (batch, length, length)."""
        self._check(tokens)
        query, key = F.embedding(tokens, self.query), F.embedding(tokens, self.key)
        return (query @ key.transpose(-1, -2)).softmax(-1)

    def attended(self, tokens: Tensor) -> Tensor:
        """The attention that each token of a sentence receives, its places adding up to 1: (batch, length)."""
        return self.weights(tokens).mean(-2)

    def readout(self) -> Tensor:
        """U W_V^T, whose rows say what the head makes of each token at each place: (length, vocabulary)."""
        return self.head @ self.value.T

    def _check(self, tokens: Tensor) -> None:
        if tokens.ndim != 2 or tokens.shape[1] != self.length or tokens.is_floating_point():
            raise InputError(
                f"sentences are token numbers of shape (batch, {self.length}), got {tokens.dtype} {tuple(tokens.shape)}"
            )
        check_tokens(tokens, self.vocabulary)
