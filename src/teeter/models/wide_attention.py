"""Self-attention whose heads are as wide as its input, or wider, without keys and values.

With queries Q z, keys K z and values V z of an input z, and O for what is done to what a head has gathered,

    <Q z_i, K z_j> = <K^T Q z_i, z_j>    and    O sum_j p_ij V z_j = (O V) sum_j p_ij z_j.

So every head may ask the input itself, by K^T Q in the place of Q, and gather from it, by O V in the place of O. Both
are matrices of dim x dim: where a head has at least dim features, as V's vision transformers have, that is half of the
linear maps, and one tensor in the place of queries, keys and values, against which the scores are written out. All
heads then ask one and the same source, which makes few large products of many small ones. It is the same function; only
rounding differs.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from teeter.models.watched import unwatched

__all__ = ["is_wide", "wide_attention"]

# On a GPU it waits for a measurement: on an H200 it was slower than with keys and values, but that was before tokens
# were padded (benchmarks/epochs.py measures both).
ON_GPU = False
_ALIGNED = 8  # tokens: the tensor cores of a GPU take matrices whose rows begin at multiples of 16 bytes
_MOST = 128  # tokens, beyond which scores that are written out cost more than they spare (a token alone sees nobody)


def is_wide(qkv: nn.Module, out: nn.Module, heads: int, tokens: int) -> bool:
    """Whether each of the heads whose queries, keys and values `qkv` makes has as many features as it is given, tokens
    are few, and nobody is there who would notice that the two maps are read and never called.

    >>> out = nn.Linear(16, 8)
    >>> [is_wide(nn.Linear(8, 3 * width, bias=False), out, heads=2, tokens=5) for width in (16, 8)]
    [True, False]
    """
    if not unwatched(qkv, out, made_of=(nn.Linear,)):
        return False
    assert isinstance(qkv, nn.Linear)
    if qkv.weight.is_cuda and not ON_GPU:
        return False
    return 1 < tokens <= _MOST and qkv.bias is None and qkv.out_features >= 3 * heads * qkv.in_features


def wide_attention(
    z: Tensor,
    qkv: nn.Linear,
    out: nn.Linear,
    heads: int,
    scale: Tensor | float,
    *,
    mask: Tensor | None = None,
    relu: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """What `out` makes of all heads' sum_j phi(scale <q_i, k_j>) v_j, phi a softmax over j or a ReLU: (batch, n, dim).

    `qkv`, which has no bias, makes the queries of all heads, then the keys, then the values. A mask, (n, n), is added
    to the scores: -inf where j is not to be seen.

    >>> import torch
    >>> wide_attention(torch.zeros(5, 3, 8), nn.Linear(8, 48, bias=False), nn.Linear(16, 8), heads=2, scale=1.0).shape
    torch.Size([5, 3, 8])
    """
    batch, n, dim = z.shape
    more = -n % _ALIGNED if z.is_cuda else 0
    if more:  # tokens that none sees, and that see the others for nothing
        z = F.pad(z, (0, 0, 0, more))
        mask = z.new_zeros(n, n) if mask is None else mask
        mask = F.pad(F.pad(mask, (0, 0, 0, more)), (0, more), value=-math.inf)
    query, key, value = qkv.weight.unflatten(0, (3, heads, -1))  # (heads, features, dim) each
    asks = (query.mT @ key * scale).transpose(0, 1).flatten(1)  # (dim, heads dim)
    reads = (value.mT @ out.weight.unflatten(1, (heads, -1)).permute(1, 2, 0)).flatten(0, 1)  # (heads dim, dim)
    scores = ((z @ asks).view(batch, (n + more) * heads, dim) @ z.mT).view(batch, n + more, heads, n + more)
    if mask is not None:
        scores += mask.unsqueeze(1)
    weights = scores.relu() if relu else scores.softmax(-1)
    if dropout:
        weights = F.dropout(weights, dropout)
    gathered = (weights.flatten(1, 2) @ z).view(batch, n + more, heads * dim)
    return F.linear(gathered[:, :n], reads.mT, out.bias)
