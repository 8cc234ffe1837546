"""What the spectrum says: degree profile, degree, influences, noise stability.

The weight of degree k is W_k = sum over |S| = k of f^(S)^2. Then sum_k W_k = E f^2 (Parseval), sum_k k W_k = as_n(f),
and Inf_i = sum over S containing i of f^(S)^2 is the quarter-squared effect of flipping bit i.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from teeter.cube.table import blocks, checked, dimension, is_signed, single
from teeter.cube.transform import walsh
from teeter.errors import InputError

__all__ = [
    "degree",
    "degree_of",
    "degree_profile",
    "degree_profile_of",
    "flip_probability",
    "influences",
    "influences_of",
    "noise_stability",
]

_ROW = 10  # low bits contracted at once: a 1024-entry row against an 11-column matrix


def degree_profile(table: Tensor) -> Tensor:
    """W_0, ..., W_n: how much of E f^2 sits at each degree (H Eq. 17; Abbe et al. 2023).

    >>> from teeter import cube
    >>> degree_profile(cube.truth_table(cube.majority, 3))
    tensor([0.0000, 0.7500, 0.0000, 0.2500], dtype=torch.float64)
    """
    return degree_profile_of(walsh(table))


def degree_profile_of(spectrum: Tensor) -> Tensor:
    """`degree_profile` of a function whose Walsh coefficients are at hand."""
    low = min(dimension(spectrum), _ROW)
    high = dimension(spectrum) - low
    by_low = _squares_times(spectrum, _one_hot_weight(low, spectrum.device))
    square = torch.einsum("hi,...hj->...ij", _one_hot_weight(high, spectrum.device), by_low)
    profile = square.new_zeros(*square.shape[:-2], low + high + 1)
    for i in range(high + 1):
        profile[..., i : i + low + 1] += square[..., i, :]
    return profile


def influences(table: Tensor) -> Tensor:
    """Inf_i = E_x |f(x) - f(x^i)|^2 / 4 for every bit i; for ±1 functions the chance that flipping i flips f.

    >>> from teeter import cube
    >>> influences(cube.truth_table(cube.majority, 3))
    tensor([0.5000, 0.5000, 0.5000], dtype=torch.float64)
    """
    return influences_of(walsh(table))


def influences_of(spectrum: Tensor) -> Tensor:
    """`influences` of a function whose Walsh coefficients are at hand."""
    low = min(dimension(spectrum), _ROW)
    high = dimension(spectrum) - low
    ones = torch.ones(1 << low, 1, dtype=torch.float64, device=spectrum.device)
    parts = _squares_times(spectrum, torch.cat([_members(low, spectrum.device), ones], 1))
    of_high = torch.einsum("hi,...h->...i", _members(high, spectrum.device), parts[..., low])
    return torch.cat([parts[..., :low].sum(-2), of_high], -1)


def degree(table: Tensor, tolerance: float | None = None) -> int:
    """The largest |S| with f^(S) != 0; 0 for a constant.

    A coefficient counts if it exceeds `tolerance` in size: by default what rounding in the table's own type can leave
    (values of ±1 are exact in any type). Give one where a table's values are less precise than its type.

    >>> from teeter import cube
    >>> degree(cube.truth_table(cube.sparse_parity(3), 6))
    3
    """
    values = single(table)
    spectrum = walsh(values.double())
    if tolerance is None:
        tolerance = rounding(spectrum, torch.float64 if is_signed(values) else values.dtype)
    return degree_of(spectrum, tolerance)


def rounding(spectrum: Tensor, dtype: torch.dtype) -> float:
    """What is left of a coefficient of zero after the transform of values rounded to a type."""
    size = float(spectrum.double().square().sum().sqrt())
    return (dimension(spectrum) + 1) * torch.finfo(dtype).eps * size


def degree_of(spectrum: Tensor, tolerance: float) -> int:
    """`degree` of one function whose Walsh coefficients are at hand."""
    low = min(dimension(spectrum), _ROW)
    of_low, of_high = (
        _members(bits, spectrum.device).sum(-1).to(torch.int8) for bits in (low, dimension(spectrum) - low)
    )
    best = [torch.where(block.view(-1, 1 << low).abs() > tolerance, of_low, -64).amax(-1) for block in blocks(spectrum)]
    return max(0, int((torch.cat(best) + of_high).max()))


def noise_stability(table: Tensor, rho: float) -> float:
    """Q_rho = E f(x) f(y) = sum_k rho^k W_k, where y keeps each bit of x with correlation rho.

    >>> from teeter import cube
    >>> noise_stability(cube.truth_table(cube.parity, 3), 0.5)
    0.125
    """
    return stability_of(degree_profile(single(table)), rho)


def stability_of(profile: Tensor, rho: float) -> float:
    """Q_rho from a degree profile."""
    if not -1 <= rho <= 1:
        raise InputError(f"rho is a correlation between -1 and 1, got {rho}")
    return float(sum(weight * rho**k for k, weight in enumerate(profile.tolist())))


def flip_probability(table: Tensor, rho: float) -> float:
    """R_rho = (1 - Q_rho) / 2 = P(f(x) != f(y)) for rho-correlated x, y; f must have values ±1.

    >>> from teeter import cube
    >>> flip_probability(cube.truth_table(cube.first, 4), 0.5)
    0.25
    """
    if not is_signed(single(table)):
        raise InputError("a flip probability is for functions with values +1 and -1: use noise_stability for others")
    return (1 - noise_stability(table, rho)) / 2


def _squares_times(spectrum: Tensor, matrix: Tensor) -> Tensor:
    """spectrum^2 in rows of 2^low entries, in float64, times a matrix of that many rows."""
    values = checked(spectrum)
    product = torch.cat([block.double().square().view(-1, len(matrix)) @ matrix for block in blocks(values)])
    return product.view(*values.shape[:-1], values.shape[-1] // len(matrix), matrix.shape[1])


@cache
def _members(n: int, device: torch.device) -> Tensor:
    """(2^n, n): 1 where bit i of the index is set."""
    index = torch.arange(1 << n, device=device)
    return ((index.unsqueeze(-1) >> torch.arange(n, device=device)) & 1).double()


@cache
def _one_hot_weight(n: int, device: torch.device) -> Tensor:
    """(2^n, n+1): 1 in the column of the number of set bits."""
    return torch.nn.functional.one_hot(_members(n, device).sum(-1).long(), n + 1).double()
