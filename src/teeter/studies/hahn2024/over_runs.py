"""Numbers over runs with their intervals, where the independent unit is a run: means, shares, partial correlations.

Every one of them also answers where there are too few runs, with an interval that holds all it could be: a claim is
then undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from teeter.measure import Estimate

__all__ = ["ANYTHING", "mean", "partial_correlation", "ratio", "regression", "share", "unknown"]

ANYTHING = 1e6  # far from every number that a claim compares with: says nothing


def unknown(runs: int, low: float = -ANYTHING, high: float = ANYTHING) -> Estimate:
    """What is known of a number that lies between these, without enough runs."""
    return Estimate(min(max(0.0, low), high), low, high, runs)


def mean(values: Sequence[float], confidence: float = 0.95, low: float = -ANYTHING, high: float = ANYTHING) -> Estimate:
    """The mean over runs with Student's interval, within the range that such a number has.

    >>> mean([1.0, 2.0, 3.0])
    2 [-0.484138, 4.48414]
    """
    n = len(values)
    if n < 2:
        return unknown(n, low, high)
    middle = float(np.mean(values))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
    return Estimate(middle, min(max(low, middle - half), middle), max(min(high, middle + half), middle), n, confidence)


def share(hits: int, runs: int, confidence: float = 0.95) -> Estimate:
    """The share of runs with Clopper and Pearson's interval.

    >>> share(10, 10)
    1 [0.691503, 1]
    """
    if runs == 0:
        return unknown(0, 0.0, 1.0)
    interval = stats.binomtest(hits, runs).proportion_ci(confidence)
    return Estimate(hits / runs, float(interval.low), float(interval.high), runs, confidence)


def partial_correlation(
    x: ArrayLike, y: ArrayLike, given: Sequence[ArrayLike] = (), confidence: float = 0.95
) -> Estimate:
    """Pearson's correlation of what is left of x and y once each is regressed on what is given, with Fisher's interval.

    >>> n, norm = [4, 4, 8, 8, 9, 9], [1, 2, 3, 1, 2, 3]
    >>> round(partial_correlation(n, [2 * a - b + 5 for a, b in zip(n, norm)], [norm]).value, 9)
    1.0
    """
    both = np.stack([np.asarray(x, float), np.asarray(y, float)], 1)
    runs = len(both)
    if runs == 0:
        return unknown(0, -1.0, 1.0)
    left, taken = _beyond(both, given)
    free = runs - taken - 2  # of Fisher's z, whose variance is 1 / free for 1 taken by the constant
    sizes, scale = np.linalg.norm(left, axis=0), np.linalg.norm(both, axis=0)
    if free < 1 or (sizes <= 1e-9 * scale).any():  # nothing is left that could vary
        return unknown(runs, -1.0, 1.0)
    r = float(np.clip(left[:, 0] @ left[:, 1] / (sizes[0] * sizes[1]), -1, 1))
    if abs(r) > 1 - 1e-12:
        return Estimate(r, r, r, runs, confidence)
    z, half = math.atanh(r), float(stats.norm.ppf((1 + confidence) / 2)) / math.sqrt(free)
    return Estimate(r, math.tanh(z - half), math.tanh(z + half), runs, confidence)


def regression(y: ArrayLike, on: Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Least squares with a constant: the coefficients in the order of `on`, their standard errors, and how many degrees
    of freedom are left; None where they are not determined.

    >>> slopes, errors, free = regression([1, 3, 5, 7.5], [[0, 1, 2, 3]])
    >>> slopes.round(3), errors.round(3), free
    (array([2.15]), array([0.087]), 2)
    """
    y = np.asarray(y, float)
    design = np.column_stack([np.ones(len(y)), *on])
    free = len(y) - design.shape[1]
    if free < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    inverse = np.linalg.pinv(design)
    slopes = inverse @ y
    variance = float(np.square(y - design @ slopes).sum()) / free
    return slopes[1:], np.sqrt(variance * np.square(inverse).sum(1))[1:], free


def ratio(top: tuple[float, float], bottom: tuple[float, float], runs: int, confidence: float = 0.95) -> Estimate:
    """Of two independent numbers, each with its standard error; of nothing, where the lower may be zero.

    >>> ratio((1.0, 0.1), (10.0, 0.5), runs=40)
    0.1 [0.0780869, 0.121913]
    """
    far = float(stats.norm.ppf((1 + confidence) / 2))
    if abs(bottom[0]) <= far * bottom[1]:
        return unknown(runs)
    value = top[0] / bottom[0]
    half = far * math.hypot(top[1], value * bottom[1]) / abs(bottom[0])
    return Estimate(value, value - half, value + half, runs, confidence)


def _beyond(columns: np.ndarray, given: Sequence[ArrayLike]) -> tuple[np.ndarray, int]:
    """The columns less what a constant and what is given say of them, and how many directions that takes."""
    design = np.column_stack([np.ones(len(columns)), *given])
    slopes, *_ = np.linalg.lstsq(design, columns, rcond=None)
    return columns - design @ slopes, int(np.linalg.matrix_rank(design))
