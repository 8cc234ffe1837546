"""What runs say together: a mean, a share, a slope, a spread, a correlation, a ratio, each with its 95 % interval.

The run is the independent unit. Where there are too few runs to say anything, the interval is all that the number could
be, its `limits`, and rests on no run: a verdict on it is then "undecided", and none of it is printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from teeter.measure import Estimate

__all__ = [
    "ANY",
    "FAR",
    "POSITIVE",
    "Fitted",
    "average",
    "correlation",
    "fisher",
    "line",
    "mean",
    "rank_correlation",
    "ratio",
    "regression",
    "share",
    "slope",
    "spread",
    "unknown",
]

Limits: TypeAlias = tuple[float, float]
FAR = 1e6  # beyond every number that a claim compares with: infinity has no place in JSON
ANY: Limits = (-FAR, FAR)
POSITIVE: Limits = (0.0, FAR)
_DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True)
class Fitted:
    """A number, its standard error, the degrees of freedom of that, and how many runs it rests on."""

    value: float
    error: float
    free: int
    runs: int

    @property
    def half_width(self) -> float:
        """Of Student's interval."""
        from scipy.special import stdtrit

        return float(stdtrit(self.free, 0.975)) * self.error


def unknown(limits: Limits = ANY) -> Estimate:
    """Of a number that lies between these, and of which no run says more."""
    return Estimate(0.0 if FAR in limits else sum(limits) / 2, *limits, n=0)


def _within(value: float, low: float, high: float, limits: Limits, runs: int) -> Estimate:
    """An interval cut at the limits, though never so far that it leaves the value out."""
    return Estimate(value, min(max(low, limits[0]), value), max(min(high, limits[1]), value), runs)


def _interval(found: Fitted, limits: Limits) -> Estimate:
    half = found.half_width
    return _within(found.value, found.value - half, found.value + half, limits, found.runs)


def average(values: ArrayLike) -> Fitted | None:
    """The mean, or None of fewer than two values, which do not say how far they spread."""
    each = np.asarray(values, float)
    n = len(each)
    return Fitted(float(each.mean()), float(each.std(ddof=1)) / math.sqrt(n), n - 1, n) if n > 1 else None


def regression(y: ArrayLike, on: Sequence[ArrayLike]) -> list[Fitted] | None:
    """Least squares with a constant: a slope for each of `on`; None where the runs leave them open.

    >>> [slope] = regression([1, 3, 5, 7.5], [[0, 1, 2, 3]])
    >>> round(slope.value, 3), round(slope.error, 3), slope.free
    (2.15, 0.087, 2)
    """
    there = np.asarray(y, float)
    design = np.column_stack([np.ones(len(there)), *(np.asarray(each, float) for each in on)])
    runs, free = len(there), len(there) - design.shape[1]
    if free < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    inverse = np.linalg.pinv(design)
    slopes = inverse @ there
    left = there - design @ slopes
    exact = float(np.abs(left).max()) <= 1e-12 * float(np.abs(there).max())  # what rounding leaves is no doubt
    errors = np.zeros(len(slopes)) if exact else np.sqrt(float(left @ left) / free * np.square(inverse).sum(1))
    return [Fitted(float(a), float(b), free, runs) for a, b in zip(slopes[1:], errors[1:], strict=True)]


def line(x: ArrayLike, y: ArrayLike) -> Fitted | None:
    """The slope of the line of least squares, or None where fewer than three runs or a single x leave it open."""
    found = regression(y, [x])
    return None if found is None else found[0]


def mean(values: ArrayLike, limits: Limits = ANY) -> Estimate:
    """The mean with Student's interval.

    >>> mean([1.0, 2.0, 3.0], (0.0, 10.0))
    2 [0, 4.48414]
    >>> mean([1.0], (0.0, 10.0))
    5 [0, 10]
    """
    found = average(values)
    return unknown(limits) if found is None else _interval(found, limits)


def slope(x: ArrayLike, y: ArrayLike, limits: Limits = ANY) -> Estimate:
    """The slope of the line of least squares with Student's interval.

    >>> slope([1, 2, 3, 4], [1.0, 2.0, 2.0, 3.0])
    0.6 [-0.00848698, 1.20849]
    """
    found = line(x, y)
    return unknown(limits) if found is None else _interval(found, limits)


def spread(x: ArrayLike, y: ArrayLike, limits: Limits = POSITIVE) -> Estimate:
    """The standard deviation of y about the line of least squares, with the interval of Gaussian residuals: their sum
    of squares over the variance is chi-square.

    >>> spread([1, 2, 3, 4], [1.0, 2.0, 2.0, 3.0])
    0.316228 [0.164647, 1.98741]
    """
    from scipy.special import chdtri

    found = line(x, y)
    if found is None:
        return unknown(limits)
    off = np.asarray(x, float) - np.asarray(x, float).mean()
    value = found.error * math.sqrt(float(off @ off))
    low, high = (value * math.sqrt(found.free / float(chdtri(found.free, above))) for above in (0.025, 0.975))
    return _within(value, low, high, limits, found.runs)


def ratio(top: Fitted | None, bottom: Fitted | None, limits: Limits = ANY) -> Estimate:
    """Of two independent numbers; unknown where the lower may be 0.

    The interval has all ratios a for which top - a * bottom may be 0 (Fieller).

    >>> ratio(Fitted(1.0, 0.1, 40, 42), Fitted(10.0, 0.5, 40, 42))
    0.1 [0.0782957, 0.123768]
    """
    if top is None or bottom is None or abs(bottom.value) <= bottom.half_width:
        return unknown(limits)
    a, b, da, db = top.value, bottom.value, top.half_width, bottom.half_width
    root = math.sqrt((da * b) ** 2 + (db * a) ** 2 - (da * db) ** 2)
    low, high = ((a * b + side * root) / (b * b - db * db) for side in (-1, 1))
    return _within(a / b, low, high, limits, top.runs + bottom.runs)


def share(yes: Sequence[bool] | NDArray[np.bool_]) -> Estimate:
    """How many of the runs, with the exact interval of Clopper and Pearson.

    >>> share([True, True, True, False])
    0.75 [0.19412, 0.993691]
    >>> share([])
    0.5 [0, 1]
    """
    from scipy.stats import binomtest

    if len(yes) == 0:
        return unknown((0.0, 1.0))
    found = binomtest(int(np.sum(yes)), len(yes))
    ends = found.proportion_ci(0.95, "exact")
    return Estimate(float(found.statistic), float(ends.low), float(ends.high), len(yes))


def correlation(x: ArrayLike, y: ArrayLike, given: Sequence[ArrayLike] = ()) -> Estimate:
    """Pearson's, of what is left of x and y once each is regressed on what is given, with Fisher's interval.

    >>> n, norm = [4, 4, 8, 8, 9, 9], [1, 2, 3, 1, 2, 3]
    >>> round(correlation(n, [2 * a - b + 5 for a, b in zip(n, norm)], [norm]).value, 9)
    1.0
    """
    both = np.stack([np.asarray(x, float), np.asarray(y, float)], 1)
    runs = len(both)
    if runs == 0:
        return unknown((-1.0, 1.0))
    design = np.column_stack([np.ones(runs), *(np.asarray(each, float) for each in given)])
    left = both - design @ np.linalg.lstsq(design, both, rcond=None)[0]
    free = runs - int(np.linalg.matrix_rank(design)) - 2  # of Fisher's z: n - 3 where nothing is given
    sizes, scale = np.linalg.norm(left, axis=0), np.linalg.norm(both, axis=0)
    if free < 1 or (sizes <= 1e-9 * scale).any():  # nothing is left that could vary
        return unknown((-1.0, 1.0))
    r = float(np.clip(left[:, 0] @ left[:, 1] / (sizes[0] * sizes[1]), -1, 1))
    return Estimate(r, *fisher(r, free), n=runs)


def fisher(r: float, free: int) -> tuple[float, float]:
    """The interval of a correlation: of n runs there are n - 3 to say how far it is off."""
    from scipy.special import ndtri

    if abs(r) > 1 - 1e-12:
        return r, r
    z, half = math.atanh(r), float(ndtri(0.975)) / math.sqrt(free)
    return math.tanh(z - half), math.tanh(z + half)


def rank_correlation(x: ArrayLike, y: ArrayLike, seed: int = 0) -> Estimate:
    """Spearman's, with the interval of a bootstrap over runs.

    >>> rank_correlation([1, 2, 3, 4, 5, 6], [2, 3, 5, 7, 11, 13])
    1
    """
    from scipy.stats import rankdata

    pairs = np.stack([np.asarray(x, float), np.asarray(y, float)])
    n = pairs.shape[1]
    if n < 5 or any(len(np.unique(each)) < 2 for each in pairs):
        return unknown((-1.0, 1.0))
    value = _correlation(rankdata(pairs, axis=1))
    chosen = np.random.default_rng(seed).integers(n, size=(_DRAWS, n))
    drawn = [_correlation(rankdata(pairs[:, some], axis=1)) for some in chosen]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return _within(value, float(low), float(high), (-1.0, 1.0), n)


def _correlation(ranks: NDArray[np.float64]) -> float:
    """Pearson's of two rows; NaN where one of them is constant, as a bootstrap may draw it."""
    centred = ranks - ranks.mean(1, keepdims=True)
    size = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return min(max(float((centred[0] * centred[1]).sum()) / size, -1.0), 1.0) if size else math.nan
