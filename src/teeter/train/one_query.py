"""Attention of one query an input, as a last layer needs that is read out at one position.

`one_query(asked, source)` is two small products with a softmax between them. A GPU has thousands of such products, each
too small for its matrix units, and would read `source` for every one of them, forward and back. `_forward` and
`_backward` (Triton) read it once each: a program holds the vectors of one input, and does all its heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton.language  # noqa: F401  # pyright: ignore[reportMissingImports, reportUnusedImport]
except ImportError:  # so there is no GPU that it serves
    fused_one_query = None
else:  # when this is imported, and not later: a compiler could not look into an import
    from teeter.train.one_query_kernels import fused_one_query

__all__ = ["one_query", "plain_one_query"]

_KEPT = (torch.float32, torch.float64)
_MOST = 1 << 14  # numbers that one program holds


def one_query(asked: Tensor, source: Tensor) -> Tensor:
    """Means of the rows of each input, (..., n, dim), weighted by softmax of their products with every query of
    (..., heads, dim).

    >>> import math
    >>> source = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> one_query(torch.tensor([[[0.0, 0.0], [math.log(3), 0.0]]]), source)
    tensor([[[0.5000, 0.5000],
             [0.7500, 0.2500]]])
    """
    n, dim = source.shape[-2:]
    fits = source.is_cuda and source.dtype in _KEPT and _power(n) * _power(dim) <= _MOST
    if fused_one_query is None or not fits:
        return plain_one_query(asked, source)
    given = asked.to(source.dtype).flatten(0, -3), source.flatten(0, -3)  # autocast may have made queries shorter
    return fused_one_query(*given).view(asked.shape)


def plain_one_query(asked: Tensor, source: Tensor) -> Tensor:
    """What the kernels are tested against."""
    chances = torch.einsum("...hi,...ji->...hj", asked, source).softmax(-1)
    return torch.einsum("...hj,...ji->...hi", chances, source)


def _power(number: int) -> int:
    """The least power of two that is not less."""
    return 1 << (number - 1).bit_length()
