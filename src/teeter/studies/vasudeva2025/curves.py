"""What the studies of training curves share: when a run is measured, and what is read off a curve."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from teeter.train import Trained

__all__ = ["first", "largest_rise", "rounded", "smooth", "squares"]

_DIGITS = 5


def squares(last: int, rows: int) -> list[int]:
    """So many steps to measure at: they lie as squares do, for what happens first is short.

    >>> squares(10_000, 5)
    [0, 400, 1600, 3600, 6400, 10000]
    """
    return sorted({round(last * (k / rows) ** 2) for k in range(rows + 1)})


def smooth(values: ArrayLike) -> NDArray[np.float64]:
    """The median of each value and the two on either side of it, as far as there are any.

    >>> smooth([1, 9, 2, 3, 4]).tolist()
    [2.0, 2.5, 3.0, 3.5, 3.0]
    """
    import pandas as pd

    return pd.Series(np.asarray(values, float)).rolling(5, center=True, min_periods=1).median().to_numpy()


def first(true: ArrayLike, start: int = 0) -> int | None:
    """The first row from `start` on of which something is true.

    >>> first([True, False, True], start=1), first([False])
    (2, None)
    """
    found = np.flatnonzero(np.asarray(true, bool)[start:])
    return start + int(found[0]) if len(found) else None


def largest_rise(values: ArrayLike) -> tuple[int, int]:
    """Of all pairs of rows, the one between which the values rise most, by their ratio.

    >>> largest_rise([9, 8, 2, 5, 4, 8, 3])
    (2, 5)
    >>> largest_rise([3, 2, 1])
    (0, 0)
    """
    logs = np.log(np.asarray(values, float))
    rises = logs - np.minimum.accumulate(logs)
    end = int(rises.argmax())
    return int(logs[: end + 1].argmin()), end


def rounded(made: Trained, leave: Collection[str] = ()) -> list[Mapping[str, Any]]:
    """A run's rows in five digits, without what a plain recipe has in all of them, and without the intervals of
    accuracies, for these are of all inputs there are."""
    out = {"step", "rate", "loss", *leave}
    return [
        {
            name: float(f"{value:.{_DIGITS}g}")
            for name, value in row.items()
            if name not in out and not name.endswith(("accuracy_low", "accuracy_high"))
        }
        for row in made.rows
    ]
