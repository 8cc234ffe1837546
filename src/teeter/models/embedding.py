"""Tokens and positions as vectors, and bits as tokens: what every model of sequences here starts with."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from teeter.errors import InputError

__all__ = ["Positions", "SequenceEmbedding", "fails", "token_numbers"]

Positions = Literal["sum", "concatenate"]


def fails(condition: Tensor) -> bool:
    """Whether a condition on values is seen to be false somewhere.

    Values are looked at on the CPU alone, since a GPU would have to wait for the answer, and not while a program is
    compiled or batched over inputs.
    """
    if condition.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    try:
        return not bool(condition.all())
    except RuntimeError:  # vmap over inputs: they have no values of their own yet
        return False


def token_numbers(bits: Tensor) -> Tensor:
    """The tokens of a (batch, n) tensor of ±1: number 0 for +1 and number 1 for -1, since -1 stands for the bit one.

    >>> token_numbers(torch.tensor([[1, -1, -1]]))
    tensor([[0, 1, 1]])
    """
    if bits.ndim != 2 or bits.shape[1] < 1 or bits.dtype == torch.bool:
        raise InputError(f"bits are ±1 of shape (batch, n) with n at least 1, got {bits.dtype} {tuple(bits.shape)}")
    if fails(bits.abs() == 1):
        raise InputError("bits are +1 and -1, got other values: 1 - 2 * x turns 0 and 1 into +1 and -1")
    return (bits < 0).long()


class SequenceEmbedding(nn.Module):
    """Learned vectors of tokens and of positions, combined: (batch, n) token numbers to (batch, n, dim).

    `positions="sum"` adds the two (H section 2); "concatenate" joins a token half and a position half (H's released
    code). `length` is the largest n; a shorter input takes the first n positions.

    >>> SequenceEmbedding(tokens=2, dim=8, length=5, positions="concatenate")(torch.tensor([[0, 1, 1]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, tokens: int, dim: int, length: int, positions: Positions = "sum") -> None:
        super().__init__()
        if positions not in ("sum", "concatenate"):
            raise InputError(f"positions are combined by 'sum' or 'concatenate', got '{positions}'")
        if length < 1 or dim < 1:
            raise InputError(f"the largest length and the dimension are at least 1, got {length} and {dim}")
        if positions == "concatenate" and dim % 2:
            raise InputError(f"concatenated halves need an even dim, got {dim}")
        self.length, self.positions = length, positions
        each = dim if positions == "sum" else dim // 2
        self.token = nn.Embedding(tokens, each)
        self.position = nn.Embedding(length, each)

    def forward(self, numbers: Tensor) -> Tensor:
        n = numbers.shape[1]
        if n > self.length:
            raise InputError(f"the model has {self.length} positions, got an input of length {n}: raise length=")
        token, position = self.token(numbers), self.position.weight[:n]
        if self.positions == "sum":
            return token + position
        return torch.cat([token, position.expand_as(token)], -1)
