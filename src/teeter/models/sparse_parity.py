"""The two-layer transformer that learns sparse parities (V A.6, Figure 26).

V gives 40 bits of which 4 count, 2 layers, 4 heads and dimension 32 (64 in one setting). It leaves open everything
else, and no code was released: width, norms, positions and where the answer is read. Here they are the encoder's
(torch's default layer, positions added, the last position read), with a feed-forward width of 4 times the dimension.
"""

from __future__ import annotations

from teeter.models.block import Norm
from teeter.models.embedding import Positions
from teeter.models.encoder import Encoder

__all__ = ["sparse_parity_transformer"]


def sparse_parity_transformer(
    length: int = 40,
    dim: int = 32,
    layers: int = 2,
    heads: int = 4,
    width: int | None = None,
    positions: Positions = "sum",
    norm: Norm = "post",
    same_start: bool = True,
) -> Encoder:
    """An `Encoder` of V's sizes: (batch, n) of ±1 to (batch,), whose sign is the answer.

    >>> import torch
    >>> sparse_parity_transformer()(torch.ones(3, 40)).shape
    torch.Size([3])
    """
    return Encoder(length, dim, layers, heads, 4 * dim if width is None else width, positions, norm, same_start)
