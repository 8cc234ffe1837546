"""Tokens and positions as vectors, and bits as tokens: what every model of sequences here starts with."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.sizes import check_sizes
from teeter.models.values import breaks

__all__ = ["Positions", "SequenceEmbedding", "token_numbers"]

Positions = Literal["sum", "concatenate"]


def token_numbers(bits: Tensor) -> Tensor:
    """The tokens of a (batch, n) tensor of ±1: number 0 for +1 and number 1 for -1, since -1 stands for the bit one.

    >>> token_numbers(torch.tensor([[1, -1, -1]]))
    tensor([[0, 1, 1]])
    """
    if bits.ndim != 2 or bits.shape[1] < 1 or bits.dtype == torch.bool:
        raise InputError(f"bits are ±1 of shape (batch, n) with n at least 1, got {bits.dtype} {tuple(bits.shape)}")
    if breaks(bits, lambda each: each.abs() == 1):
        raise InputError("bits are +1 and -1, got other values: 1 - 2 * x turns 0 and 1 into +1 and -1")
    return (bits < 0).long()


class SequenceEmbedding(nn.Module):
    """Learned vectors of tokens and of positions, combined: (batch, n) token numbers to (batch, n, dim).

    `positions="sum"` adds the two (H section 2); "concatenate" joins a token half and a position half (H's released
    code). `length` is the largest n; a shorter input takes the first n positions, or those from `first` on.

    >>> part = SequenceEmbedding(vocabulary=2, length=5, dim=8, positions="concatenate")
    >>> part(torch.tensor([[0, 1, 1]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, *, vocabulary: int, length: int, dim: int, positions: Positions = "sum") -> None:
        super().__init__()
        check_sizes(vocabulary=vocabulary, length=length, dim=dim)
        if positions not in ("sum", "concatenate"):
            raise InputError(f"positions are combined by 'sum' or 'concatenate', got '{positions}'")
        if positions == "concatenate" and dim % 2:
            raise InputError(f"concatenated halves need an even dim, got {dim}")
        self.length, self.positions = length, positions
        each = dim if positions == "sum" else dim // 2
        self.token = nn.Embedding(vocabulary, each)
        self.position = nn.Embedding(length, each)

    def forward(self, numbers: Tensor, first: int = 0) -> Tensor:
        end = first + numbers.shape[1]
        if end > self.length:
            raise InputError(f"the model has {self.length} positions, got an input of length {end}: raise length=")
        token, position = self.token(numbers), self.position.weight[first:end]
        if self.positions == "sum":
            return token + position
        return torch.cat([token, position.expand_as(token)], -1)
