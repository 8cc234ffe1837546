"""What `scaling` and `long` share: the row a run ends with, and how a column of such rows depends on the length.

Runs that did not converge are left out of everything but their count (H 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from teeter.measure import Estimate
from teeter.studies import over_runs
from teeter.studies.hahn2024.learning import CONVERGED, Learner, at_the_end, learn
from teeter.train import Trained

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = [
    "SHARPNESS",
    "correlation",
    "discarded",
    "final_row",
    "level",
    "of_variant",
    "points",
    "ratio",
    "rises",
    "run",
    "significant",
    "slope",
    "slope_doubt",
    "steeper",
    "variance",
]

Measured: TypeAlias = "Callable[[pd.DataFrame], Estimate | None]"

SHARPNESS = {"text": "sharpness", "released": "sharpness_released"}  # which column either variant is judged by


def of_variant(variant: str, measure: Measured) -> Measured:
    """A measure of the runs of one variant, which a tier may not have."""

    def of_those(table: pd.DataFrame) -> Estimate | None:
        here = table.loc[table["variant"] == variant]
        return None if here.empty else measure(here)

    return of_those


def run(spec: Learner) -> list[dict[str, Any]]:
    (made,) = learn([spec], None)
    return final_row(spec, made)


def final_row(spec: Learner, made: Trained) -> list[dict[str, Any]]:
    """What a run came to, and why it is discarded if it is.

    `unexplained` is the error over that of the best constant. "not learned": no better than half of that error; "not
    exact": better, but above 1e-3.
    """
    last = at_the_end(made)
    mse, unexplained = last["mse"], None
    if mse is None:
        fate = "diverged"
    else:
        unexplained = mse / variance(spec.function, spec.n)
        fate = "converged" if mse <= CONVERGED else "not learned" if unexplained >= 0.5 else "not exact"
    return [{**last, "unexplained": unexplained, "converged": fate == "converged", "fate": fate}]


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


def _of(function: str, variant: str, answer: Callable[[pd.DataFrame], Estimate]) -> Measured:
    """What the runs of a function and variant say; None where there is none."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = table.loc[(table["function"] == function) & (table["variant"] == variant)]
        return None if here.empty else answer(table)

    return measure


def _sharp(table: pd.DataFrame, function: str, variant: str) -> tuple[np.ndarray, np.ndarray]:
    return points(table, function, variant, SHARPNESS[variant])


def slope(function: str, variant: str) -> Measured:
    """Of the least-squares line of sharpness over n, one point a run."""
    return _of(function, variant, lambda table: over_runs.slope(*_sharp(table, function, variant)))


def correlation(function: str, variant: str) -> Measured:
    """Pearson's r of sharpness and n, with Fisher's interval."""
    return _of(function, variant, lambda table: over_runs.correlation(*_sharp(table, function, variant)))


def significant(function: str, variant: str, doubt: float) -> Measured:
    """1 where the slope's interval leaves out 0 (its p-value is below 0.05), 0 where it does not although its
    half-width is at most `doubt`; with a wider one, not to be significant means nothing."""

    def answer(table: pd.DataFrame) -> Estimate:
        found = over_runs.slope(*_sharp(table, function, variant))
        if found.low > 0 or found.high < 0:
            return Estimate.exact(1.0, found.n)
        if found.half_width <= doubt:
            return Estimate.exact(0.0, found.n)
        return over_runs.unknown((0.0, 1.0))

    return _of(function, variant, answer)


def rises(function: str, variant: str) -> Measured:
    """1 where all of the slope's interval is above 0, 0 where none of it is."""

    def answer(table: pd.DataFrame) -> Estimate:
        found = over_runs.slope(*_sharp(table, function, variant))
        if found.low > 0 or found.high < 0:
            return Estimate.exact(float(found.low > 0), found.n)
        return over_runs.unknown((0.0, 1.0))

    return _of(function, variant, answer)


def steeper(function: str, other: str, variant: str) -> Measured:
    """The slope of one function's line over that of another's."""
    return _of(
        function,
        variant,
        lambda table: over_runs.ratio(
            over_runs.line(*_sharp(table, function, variant)), over_runs.line(*_sharp(table, other, variant))
        ),
    )


def slope_doubt(slope: float, r: float, runs: int) -> float:
    """The half-width of a slope's interval that its value, r and the number of runs imply.

    >>> round(slope_doubt(1.8e-3, 0.67, 270), 6)
    0.00024
    """
    error = abs(slope / r) * math.sqrt((1 - r * r) / (runs - 2))
    return over_runs.Fitted(slope, error, runs - 2, runs).half_width


def level(function: str, variant: str, shortest: int) -> Measured:
    """Mean sharpness at lengths from `shortest` on."""
    return _of(function, variant, lambda table: over_runs.mean(_from(table, function, variant, shortest)))


def ratio(function: str, other: str, variant: str, shortest: int, column: str | None = None) -> Measured:
    """Mean sharpness (or a column) over that of another function, at lengths from `shortest` on: a mean over seeds.

    Runs of one seed begin alike, and under draws that all runs share err alike: the seed is the unit. And each run is
    held against that of the other function which has its seed and length, so that neither has more of the longer ones.
    """

    def answer(table: pd.DataFrame) -> Estimate:
        here = table.loc[(table["variant"] == variant) & (table["n"] >= shortest) & table["converged"].astype(bool)]
        above, below = (
            here.loc[here["function"] == name].set_index(["seed", "n"])[column or SHARPNESS[variant]]
            for name in (function, other)
        )
        both = above.index.intersection(below.index)
        means = [each.loc[both].astype(float).groupby("seed").mean() for each in (above, below)]
        return over_runs.mean(means[0] / means[1], over_runs.POSITIVE)

    return _of(function, variant, answer)


def _from(table: pd.DataFrame, function: str, variant: str, shortest: int) -> np.ndarray:
    x, y = _sharp(table, function, variant)
    return y[x >= shortest]


def discarded(function: str, variant: str) -> Measured:
    """The share of runs that did not converge."""

    def answer(table: pd.DataFrame) -> Estimate:
        rows = table.loc[(table["function"] == function) & (table["variant"] == variant)]
        return over_runs.share(~rows["converged"].to_numpy(bool))

    return _of(function, variant, answer)
