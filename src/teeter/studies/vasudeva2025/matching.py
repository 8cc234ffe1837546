"""Runs compared where their training accuracy is the same.

The level is the highest that all of them reach. Of each run it is the last measured step within 0.01 of it that counts,
or the nearest. A comparison is fair if all are within 0.05 of the level, and the level is 0.05 above that of a constant
answer: of two models that have not learned anything, the one that always says the same is not the steadier one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["FAIR", "Match", "at_level", "matches"]

NEAR, FAIR = 0.01, 0.05  # of training accuracies


@dataclass(frozen=True)
class Match:
    """Two runs of the same data and seed."""

    data: str
    seed: int
    accuracies: tuple[float, float]
    level: float
    above: float  # the level is so much above that of a constant answer
    values: tuple[float, float]  # what is compared

    @property
    def off(self) -> float:
        """By how much the farther of the two misses the level."""
        return max(abs(each - self.level) for each in self.accuracies)

    @property
    def fair(self) -> bool:
        return self.off <= FAIR <= self.above


def matches(first: Any, second: Any, column: str = "sensitivity") -> list[Match]:
    """Each pair of runs. A row of either table is a step, with `accuracy`, and with that of a constant answer as
    `frequent`."""
    theirs = {key: run for key, run in second.groupby(["data", "seed"])}
    pairs = [(key, run, theirs[key]) for key, run in first.groupby(["data", "seed"]) if key in theirs]
    return [_match(key, one.sort_values("step"), other.sort_values("step"), column) for key, one, other in pairs]


def _match(key: Any, first: Any, second: Any, column: str) -> Match:
    level = min(float(run["accuracy"].max()) for run in (first, second))
    accuracies, values = [], []
    for run in (first, second):
        place = _place(run["accuracy"], level)
        accuracies.append(float(run["accuracy"].iloc[place]))
        values.append(float(run[column].iloc[place]))
    above = level - float(first["frequent"].iloc[0])
    return Match(str(key[0]), int(key[1]), (accuracies[0], accuracies[1]), level, above, (values[0], values[1]))


def _place(accuracies: Any, level: float) -> int:
    """Which step of a run is compared at that level."""
    away = abs(accuracies.to_numpy(float) - level)
    near = (away <= NEAR).nonzero()[0]
    return int(near[-1]) if len(near) else int(away.argmin())


def at_level(table: Any, accuracy: str = "accuracy") -> Any:
    """Many runs at once, told apart by `run`: of each the row at the level that all of them reach, and `level` beside.

    Runs that have learned nothing have no part in it, and those that are never within 0.05 of the level no row.
    """
    table = table.reset_index(drop=True)
    best = table.groupby("run")[accuracy].max()
    learned = best[best >= table.groupby("run")["frequent"].max() + FAIR]
    level = float(learned.min()) if len(learned) else float("nan")
    runs = [run.sort_values("step") for key, run in table.groupby("run") if key in learned.index]
    rows = [run.index[_place(run[accuracy], level)] for run in runs]
    found = table.loc[rows].assign(level=level)
    return found.loc[(found[accuracy] - level).abs() <= FAIR]
