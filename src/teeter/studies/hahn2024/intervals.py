"""What runs say together: a mean, a share, a slope, a rank correlation, each with an interval over runs.

The run is the independent unit. Where there are too few runs to say anything, the interval is everything between the
`limits` that the quantity has anyway, or is given: a verdict on it is then "undecided".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from teeter.measure import Estimate

__all__ = ["Line", "line", "mean", "ratio", "share", "slope", "rank_correlation"]

Limits: TypeAlias = tuple[float, float]
_DRAWS = 2000  # of the bootstrap


def _unknown(limits: Limits, n: int) -> Estimate:
    return Estimate((limits[0] + limits[1]) / 2, *limits, n=n)


def _within(value: float, half: float, limits: Limits, n: int) -> Estimate:
    low, high = (min(max(end, limits[0]), limits[1]) for end in (value - half, value + half))
    return Estimate(value, min(low, value), max(high, value), n)


def mean(values: ArrayLike, limits: Limits) -> Estimate:
    """The mean with Student's interval, cut at the limits.

    >>> mean([1.0, 2.0, 3.0], (0.0, 10.0))
    2 [0, 4.48414]
    >>> mean([1.0], (0.0, 10.0))
    5 [0, 10]
    """
    from scipy.special import stdtrit

    each = np.asarray(values, dtype=float)
    if len(each) < 2:
        return _unknown(limits, len(each))
    half = float(stdtrit(len(each) - 1, 0.975)) * float(each.std(ddof=1)) / math.sqrt(len(each))
    return _within(float(each.mean()), half, limits, len(each))


def share(yes: Sequence[bool] | NDArray[np.bool_]) -> Estimate:
    """How many of the runs, with the exact interval of Clopper and Pearson.

    >>> share([True, True, True, False])
    0.75 [0.19412, 0.993691]
    >>> share([])
    0.5 [0, 1]
    """
    from scipy.stats import binomtest

    if len(yes) == 0:
        return _unknown((0.0, 1.0), 0)
    found = binomtest(int(np.sum(yes)), len(yes))
    ends = found.proportion_ci(0.95, "exact")
    return Estimate(float(found.statistic), float(ends.low), float(ends.high), len(yes))


@dataclass(frozen=True)
class Line:
    """A regression line: its slope, the standard error of that, and how many points it rests on."""

    slope: float
    error: float
    points: int


def line(x: ArrayLike, y: ArrayLike) -> Line | None:
    """The line of least squares, or None where fewer than three points or a single x leave it open.

    >>> line([1, 2, 3], [2, 4, 6])
    Line(slope=2.0, error=0.0, points=3)
    """
    here, there = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(here) < 3 or len(np.unique(here)) < 2:
        return None
    here, there = here - here.mean(), there - there.mean()
    spread = float((here**2).sum())
    found = float((here * there).sum()) / spread
    left = float(((there - found * here) ** 2).sum())
    return Line(found, math.sqrt(left / (len(here) - 2) / spread), len(here))


def slope(x: ArrayLike, y: ArrayLike, limits: Limits = (-1.0, 1.0)) -> Estimate:
    """The slope of the line of least squares with Student's interval.

    >>> slope([1, 2, 3, 4], [1.0, 2.0, 2.0, 3.0])
    0.6 [-0.00848698, 1]
    """
    from scipy.special import stdtrit

    found = line(x, y)
    if found is None:
        return _unknown(limits, np.size(x))
    return _within(found.slope, float(stdtrit(found.points - 2, 0.975)) * found.error, limits, found.points)


def ratio(upper: Line | None, lower: Line | None, limits: Limits) -> Estimate:
    """The ratio of two slopes, by the delta method; unknown unless the lower one is significantly not 0.

    >>> ratio(Line(3.0, 0.0, 9), Line(2.0, 0.0, 9), (0.0, 10.0))
    1.5
    >>> ratio(Line(3.0, 0.0, 9), Line(2.0, 1.5, 9), (0.0, 10.0))
    5 [0, 10]
    """
    from scipy.special import stdtrit

    points = sum(each.points for each in (upper, lower) if each is not None)
    if upper is None or lower is None:
        return _unknown(limits, points)
    factor = float(stdtrit(min(upper.points, lower.points) - 2, 0.975))
    if abs(lower.slope) <= factor * lower.error:
        return _unknown(limits, points)
    value = upper.slope / lower.slope
    error = math.hypot(upper.error, value * lower.error) / abs(lower.slope)
    if not limits[0] <= value <= limits[1]:
        limits = min(limits[0], value), max(limits[1], value)
    return _within(value, factor * error, limits, points)


def rank_correlation(x: ArrayLike, y: ArrayLike, seed: int = 0) -> Estimate:
    """Spearman's, with the interval of a bootstrap over runs.

    >>> rank_correlation([1, 2, 3, 4, 5, 6], [2, 3, 5, 7, 11, 13])
    1
    """
    from scipy.stats import rankdata

    pairs = np.stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    n = pairs.shape[1]
    if n < 5 or any(len(np.unique(each)) < 2 for each in pairs):
        return _unknown((-1.0, 1.0), n)
    value = _correlation(rankdata(pairs, axis=1))
    chosen = np.random.default_rng(seed).integers(n, size=(_DRAWS, n))
    drawn = [_correlation(rankdata(pairs[:, some], axis=1)) for some in chosen]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Estimate(value, min(float(low), value), max(float(high), value), n)


def _correlation(ranks: NDArray[np.float64]) -> float:
    """Pearson's of two rows; NaN where one of them is constant, as a bootstrap may draw it."""
    centred = ranks - ranks.mean(1, keepdims=True)
    size = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return min(max(float((centred[0] * centred[1]).sum()) / size, -1.0), 1.0) if size else math.nan
