"""The course of a run that learns PARITY, in a few numbers: what sharpness does when the loss falls and at the end, and
how log blow-up and norm move together once it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from teeter.studies.hahn2024.learning import CONVERGED
from teeter.studies.over_runs import correlation, slope

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Course", "course_of"]

GUESS = 0.25  # the loss of one half for targets 0 and 1
COLUMNS = {
    "text": {"mse": "mse", "sharpness": "sharpness", "norm": "norm", "blowup": "blowup"},
    "released": {"mse": "mse", "sharpness": "sharpness_released", "norm": "norm", "blowup": "blowup_released"},
}


@dataclass(frozen=True)
class Course:
    """What a run came to.

    It is learning where its loss, counted from that of a guess downwards, falls most, and has learned at the first row
    that would count as converged. The end is the last tenth of the rows, the peak of sharpness the highest median of
    three rows in turn.
    """

    weight_decay: float
    lag: int  # rows from that fall to the steepest rise of sharpness
    before: float  # sharpness before that fall, the median, as a share of its peak
    left: float  # sharpness at the end, as a share of its peak
    end: float  # sharpness at the end
    blowup: float  # log blow-up at the end
    jump: float  # of log blow-up, from a twentieth of the run before that fall to one after it, beyond its trend
    norm_change: float  # since it has learned
    blowup_change: float
    line: float | None  # the correlation of log blow-up and norm since it has learned; None where they stay as they are
    bend: float | None  # log2 of how much steeper it is in the later half of the norm's way than in the earlier one


def course_of(run: pd.DataFrame) -> Course:
    """From the rows of a converged run."""
    run = run.sort_values("step")
    step, mse, sharp, norm, blowup = (run[name].to_numpy(float) for name in ("step", *COLUMNS["text"]))
    learning, rising = int(np.argmax(_rise(-np.minimum(mse, GUESS)))), int(np.argmax(_rise(sharp)))
    learned, near, ending = int(np.argmax(mse <= CONVERGED)), max(len(step) // 20, 1), -max(len(step) // 10, 1)
    peak, end = float(np.median([sharp[:-2], sharp[1:-1], sharp[2:]], 0).max()), float(sharp[ending:].mean())
    line = correlation(norm[learned:], blowup[learned:])
    return Course(
        weight_decay=float(run.weight_decay.iloc[0]),
        lag=rising - learning,
        before=float(np.median(sharp[: learning + 1])) / peak,
        left=end / peak,
        end=end,
        blowup=float(blowup[ending:].mean()),
        jump=_jump(blowup, learning, near),
        norm_change=float(norm[-1] - norm[learned]),
        blowup_change=float(blowup[-1] - blowup[learned]),
        line=None if line.n == 0 else line.value,
        bend=None if line.n == 0 else _bend(norm[learned:], blowup[learned:]),
    )


def _bend(norm: np.ndarray, blowup: np.ndarray) -> float | None:
    """0 of a line; at most 4 either way, and 4 of a slope that changes its sign. None where a half has too few rows."""
    late = (norm - (norm[0] + norm[-1]) / 2) * (norm[-1] - norm[0]) >= 0
    after, before = (slope(norm[some], blowup[some]) for some in (late, ~late))
    if after.n == 0 or before.n == 0:
        return None
    if after.value * before.value < 0 or before.value == 0:
        return 4.0
    return float(np.clip(np.log2(after.value / before.value), -4, 4)) if after.value else -4.0


def _jump(values: np.ndarray, at: int, near: int) -> float:
    """From so many rows before to as many after, less what the rise over the rows before that would have come to: with
    weight decay, blow-up rises all the time."""
    before, after, first = max(at - near, 0), min(at + 1 + near, len(values) - 1), max(at - 4 * near, 0)
    trend = (values[before] - values[first]) / (before - first) if before > first else 0.0
    return float(values[after] - values[before] - trend * (after - before))


def _rise(values: np.ndarray) -> np.ndarray:
    """From each row to the next, by means over a fortieth of all rows on either side: one row alone is noisy."""
    width = max(len(values) // 40, 1)
    after = range(1, len(values))
    return np.array([values[k : k + width].mean() - values[max(k - width, 0) : k].mean() for k in after])
