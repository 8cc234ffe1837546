"""The two-layer transformer that learns sparse parities (V A.6, Figure 26).

V gives 40 bits of which 4 count, 2 layers, 4 heads and dimension 32 (64 in one setting). It leaves open everything
else, and no code was released: width, norms, positions and where the answer is read. Here they are the encoder's
(torch's default layer, positions added, the last position read), with a feed-forward width of 4 times the dimension.
"""

from __future__ import annotations

from typing import Any

from teeter.models.encoder import Encoder

__all__ = ["sparse_parity_transformer"]


def sparse_parity_transformer(
    *, length: int = 40, dim: int = 32, heads: int = 4, width: int | None = None, **others: Any
) -> Encoder:
    """An `Encoder` of V's sizes: (batch, n) of ±1 to (batch,), whose sign is the answer.

    `others` are the encoder's remaining arguments, with its defaults.

    >>> import torch
    >>> sparse_parity_transformer()(torch.ones(3, 40)).shape
    torch.Size([3])
    """
    return Encoder(length=length, dim=dim, heads=heads, width=4 * dim if width is None else width, **others)
