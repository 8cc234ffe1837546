"""ReLU in the place of attention's softmax (V section 6): RoBERTa and ViT-small share it."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

__all__ = ["relu_attention"]


def relu_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scaling: float | None = None,
    mean: bool = False,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """ReLU(Q K^T s) V and the weights: V Eq. 3 with the row-wise softmax replaced by ReLU. s is 1/sqrt(features).

    The tensors are (..., tokens, features). Where `mask` (broadcast to queries x keys) is False the weight is exactly
    0. The weights of a query do not add up to 1. V does not say that they should, and the released code leaves them so;
    `mean` divides them by the number of keys that are there (as Wortsman et al. 2023, arXiv 2309.08586, do for images).

    >>> import torch
    >>> query, key = torch.tensor([[2.0]]), torch.tensor([[3.0], [-3.0], [1.0]])
    >>> relu_attention(query, key, torch.ones(3, 1))
    (tensor([[8.]]), tensor([[6., 0., 2.]]))
    >>> relu_attention(query, key, torch.ones(3, 1), torch.tensor([True, True, False]), mean=True)
    (tensor([[3.]]), tensor([[3., 0., 0.]]))
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    weights = (query @ key.transpose(-1, -2) * scale).relu()
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    if mean:
        weights = weights / (key.shape[-2] if mask is None else mask.sum(-1, keepdim=True).clamp_min(1))
    if dropout:
        weights = F.dropout(weights, dropout)
    return weights @ value, weights
