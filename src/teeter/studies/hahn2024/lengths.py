"""What `scaling` and `long` share: the row a run ends with, and how a column of such rows depends on the length.

Runs that did not converge are left out of everything but their count (H 7.1). Where too few are left to say anything,
an estimate has an interval so wide that no claim is decided by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import stats

from teeter.measure import Estimate
from teeter.studies.hahn2024.learning import CONVERGED, Learner, learn
from teeter.train import Trained

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SHARPNESS",
    "correlation",
    "discarded",
    "final_row",
    "fisher",
    "level",
    "points",
    "ratio",
    "rises",
    "run",
    "significant",
    "slope",
    "slope_doubt",
    "variance",
]

Measured: TypeAlias = "Callable[[pd.DataFrame], Estimate]"

SHARPNESS = {"text": "sharpness", "released": "sharpness_released"}  # which column either variant is judged by
FAR = 1e6  # what an interval extends to that says nothing: infinity has no place in JSON
ALPHA = 0.05


def run(spec: Learner) -> list[dict[str, Any]]:
    (made,) = learn([spec], None)
    return final_row(spec, made)


def final_row(spec: Learner, made: Trained) -> list[dict[str, Any]]:
    """What a run came to, and why it is discarded if it is.

    `unexplained` is the error over that of the best constant. "not learned": no better than half of that error; "not
    exact": better, but above 1e-3.
    """
    last = made.rows[-1]
    unexplained = last["mse"] / variance(spec.function, spec.n)
    if made.stopped == "diverged":
        fate = "diverged"
    elif last["mse"] <= CONVERGED:
        fate = "converged"
    else:
        fate = "not learned" if unexplained >= 0.5 else "not exact"
    columns = ("mse", "sharpness", "sharpness_released", "blowup", "blowup_released", "norm")
    kept = {name: last[name] for name in columns}
    return [{**kept, "unexplained": unexplained, "converged": fate == "converged", "fate": fate}]


def variance(function: str, n: int) -> float:
    """Of a function with values 0 and 1 on random bits: the error of the best constant.

    >>> variance("parity", 5), variance("mean", 5), variance("majority", 4) == 5 / 16 * 11 / 16
    (0.25, 0.05, True)
    """
    if function == "mean":
        return 1 / (4 * n)
    if function == "majority":
        share = sum(math.comb(n, k) for k in range(n // 2 + 1, n + 1)) / 2**n
        return share * (1 - share)
    return 0.25


def points(table: pd.DataFrame, function: str, variant: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and values of the runs that converged."""
    rows = table.loc[(table["function"] == function) & (table["variant"] == variant) & table["converged"].astype(bool)]
    return rows["n"].to_numpy(float), rows[column].to_numpy(float)


def _fitted(x: np.ndarray, y: np.ndarray) -> Any:
    """The least-squares line, or None where the points do not have one, or no doubt of it."""
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return stats.linregress(x, y)


def slope(function: str, variant: str) -> Measured:
    """Of the least-squares line of sharpness over n, one point a run."""

    def measure(table: pd.DataFrame) -> Estimate:
        x, y = points(table, function, variant, SHARPNESS[variant])
        line = _fitted(x, y)
        if line is None:
            return Estimate(0.0, -FAR, FAR, len(x))
        half = stats.t.ppf(0.975, len(x) - 2) * line.stderr
        return Estimate(float(line.slope), float(line.slope - half), float(line.slope + half), len(x))

    return measure


def correlation(function: str, variant: str) -> Measured:
    """Pearson's r of sharpness and n, with Fisher's interval."""

    def measure(table: pd.DataFrame) -> Estimate:
        x, y = points(table, function, variant, SHARPNESS[variant])
        line = _fitted(x, y)
        if line is None or len(x) < 4:
            return Estimate(0.0, -1.0, 1.0, len(x))
        r = float(line.rvalue)
        low, high = fisher(r, len(x))
        return Estimate(r, min(low, r), max(high, r), len(x))

    return measure


def fisher(r: float, runs: int) -> tuple[float, float]:
    """The 95 % interval of a correlation of so many runs."""
    z = math.atanh(max(min(r, 1 - 1e-12), 1e-12 - 1))
    half = float(stats.norm.ppf(0.975)) / math.sqrt(runs - 3)
    return math.tanh(z - half), math.tanh(z + half)


def significant(function: str, variant: str, doubt: float) -> Measured:
    """1 where the p-value of the slope is below 0.05, 0 where it is not although the slope's interval has a half-width
    of at most `doubt`; with a wider one, not to be significant means nothing."""

    def measure(table: pd.DataFrame) -> Estimate:
        x, y = points(table, function, variant, SHARPNESS[variant])
        line = _fitted(x, y)
        if line is not None and line.pvalue < ALPHA:
            return Estimate.exact(1.0, len(x))
        if line is not None and slope(function, variant)(table).half_width <= doubt:
            return Estimate.exact(0.0, len(x))
        return Estimate(0.5, 0.0, 1.0, len(x))

    return measure


def rises(function: str, variant: str) -> Measured:
    """1 where all of the slope's interval is above 0, 0 where none of it is."""

    def measure(table: pd.DataFrame) -> Estimate:
        found = slope(function, variant)(table)
        if found.low > 0 or found.high < 0:
            return Estimate.exact(float(found.low > 0), found.n)
        return Estimate(0.5, 0.0, 1.0, found.n)

    return measure


def slope_doubt(slope: float, r: float, runs: int) -> float:
    """The half-width of a slope's interval that its value, r and the number of runs imply.

    >>> round(slope_doubt(1.8e-3, 0.67, 270), 6)
    0.00024
    """
    return abs(slope / r) * math.sqrt((1 - r * r) / (runs - 2)) * float(stats.t.ppf(0.975, runs - 2))


def level(function: str, variant: str, shortest: int) -> Measured:
    """Mean sharpness at lengths from `shortest` on."""

    def measure(table: pd.DataFrame) -> Estimate:
        x, y = points(table, function, variant, SHARPNESS[variant])
        return _mean(y[x >= shortest])

    return measure


def _mean(y: np.ndarray) -> Estimate:
    if len(y) < 2:
        return Estimate(0.0, -FAR, FAR, len(y))
    half = float(stats.t.ppf(0.975, len(y) - 1) * y.std(ddof=1) / math.sqrt(len(y)))
    return Estimate(float(y.mean()), float(y.mean()) - half, float(y.mean()) + half, len(y))


def ratio(function: str, other: str, variant: str, shortest: int) -> Measured:
    """Mean sharpness over that of another function, both at lengths from `shortest` on.

    The interval has all ratios a for which the mean of one minus a times that of the other may be zero (Fieller).
    """

    def measure(table: pd.DataFrame) -> Estimate:
        above, below = (level(name, variant, shortest)(table) for name in (function, other))
        units = min(above.n, below.n)
        if below.low <= 0:
            return Estimate(0.0, -FAR, FAR, units)
        a, b, da, db = above.value, below.value, above.half_width, below.half_width
        centre, wide = a * b, math.sqrt(max((a * b) ** 2 - (a * a - da * da) * (b * b - db * db), 0.0))
        low, high = ((centre + side * wide) / (b * b - db * db) for side in (-1, 1))
        value = a / b
        return Estimate(value, min(low, value), max(high, value), units)

    return measure


def discarded(function: str, variant: str) -> Measured:
    """The share of runs that did not converge, with Wilson's interval."""

    def measure(table: pd.DataFrame) -> Estimate:
        rows = table.loc[(table["function"] == function) & (table["variant"] == variant)]
        if rows.empty:
            return Estimate(0.5, 0.0, 1.0, 0)
        lost = int((~rows["converged"].astype(bool)).sum())
        ends = stats.binomtest(lost, len(rows)).proportion_ci(method="wilson")
        share = lost / len(rows)
        return Estimate(share, min(float(ends.low), share), max(float(ends.high), share), len(rows))

    return measure
