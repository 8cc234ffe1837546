"""Claims that something is not there: a slope, a correlation, a sharpness that is 0 or as good as 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from teeter.measure import Estimate
from teeter.studies.study import Claim

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["absence", "size"]


def absence(claim: str, measure: Callable[[pd.DataFrame], Estimate], most: float) -> Claim:
    """Reproduced where all of the interval is within ±`most`, not reproduced where none of it is: an interval that
    reaches farther may be of something that is there."""
    return Claim(claim, 0, lambda table: size(measure(table), most), tolerance=most, resolution=most / 2)


def size(found: Estimate, most: float) -> Estimate:
    """How far a number is from 0: from nothing at all on, unless it is surely more than `most`.

    >>> size(Estimate(-0.1, -0.3, 0.1, n=20), most=0.5), size(Estimate(-0.8, -0.9, -0.7, n=20), most=0.5)
    (0.1 [0, 0.3], 0.8 [0.7, 0.9])
    """
    near = max(found.low, -found.high)
    return Estimate(abs(found.value), near if near > most else 0.0, max(-found.low, found.high), found.n)
