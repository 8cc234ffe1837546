"""Sums over very many rows, cut into pieces that a GPU adds up side by side.

The gradient of a weight matrix is a product over all rows of a batch. Batched products, as cuBLAS makes them, give each
tile of a model's matrix to one block of a GPU, however many rows there are, so that a few small models leave most of it
idle: of three encoder-decoders of dimension 32 at 320 bits, such products took 12 of the 29 ms of a step, and adding up
the gradients of embeddings 9 (one H200, torch 2.11, 2026-11-16). Where a model is copied, each copy takes a part of its
rows, and torch adds the copies' gradients up.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["copies", "differentiated_on_gpu", "pieces", "product"]

_BLOCKS = 256  # at work at once; an H200 has 132 processors
_TILE = 64
_ROWS = 256  # fewer are not worth a block of their own


def pieces(rows: int, blocks: int, least: int) -> int:
    """Into how many equal pieces of at least `least` rows to cut, where each takes so many blocks: a power of two.

    >>> pieces(rows=40_960, blocks=3, least=256), pieces(rows=40_960, blocks=160, least=256), pieces(1000, 1, least=10)
    (64, 1, 8)
    """
    found = 1
    while rows % (2 * found) == 0 and rows >= 2 * found * least and 2 * found * blocks <= _BLOCKS:
        found *= 2
    return found


def copies(part: Tensor, count: int) -> Tensor:
    """Each of (K, ...) so many times: (K count, ...).

    >>> copies(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    return part if count == 1 else part.unsqueeze(1).expand(-1, count, *part.shape[1:]).flatten(0, 1)


def product(x: Tensor, matrices: Tensor) -> Tensor:
    """Each model's own matrix product of (K, ..., in) with (K, in, out), and a quick way back.

    >>> product(torch.ones(2, 5, 6, 3), torch.ones(2, 3, 4)).shape
    torch.Size([2, 5, 6, 4])
    """
    rows, count = x.flatten(1, -2), 1
    if differentiated_on_gpu(x):
        tiles = math.prod(math.ceil(size / _TILE) for size in matrices.shape[1:])
        count = pieces(rows.shape[1], len(matrices) * tiles, _ROWS)
    cut = rows.unflatten(1, (count, -1)).flatten(0, 1)
    return torch.bmm(cut, copies(matrices, count)).view(*x.shape[:-1], matrices.shape[-1])


def differentiated_on_gpu(x: Tensor) -> bool:
    """Whether it matters: a processor of few cores adds up as fast in one piece."""
    return x.is_cuda and torch.is_grad_enabled()
