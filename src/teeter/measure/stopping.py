"""When a measurement has had enough, and when to look next."""

from __future__ import annotations

import math
from dataclasses import dataclass

from teeter.errors import InputError
from teeter.measure.estimate import Estimate
from teeter.measure.tally import FEW, Sight

__all__ = ["FIRST_LOOK", "Stop", "stalled"]

FIRST_LOOK = 256  # triples before the first look at the interval
_SOON, _LATE = 1.1, 2.0  # factors between which the next look lies
_SECOND = 4.0  # after the first look, which sees too little to be worth another soon


@dataclass(frozen=True)
class Stop:
    """When a measurement has had enough."""

    precision: float | None
    half_width: float | None
    budget: int | None
    confidence: float
    judges: bool  # a shard cannot judge the whole

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence lies in (0, 1), got {self.confidence}")
        for name, value in (("precision", self.precision), ("half_width", self.half_width)):
            if value is not None and not value > 0:
                raise InputError(f"{name} is positive, got {value}")
        if self.budget is not None and (not self.budget >= 4 or self.budget % 1):
            raise InputError(f"a budget is at least 4 forwards, and a whole number, got {self.budget!r}")

    @property
    def aims(self) -> bool:
        """Whether anything but the budget ends it."""
        return self.judges and (self.precision is not None or self.half_width is not None)

    def enough(self, result: Estimate, seen: Sight, rate: bool) -> str | None:
        """Why it ends here, if it does."""
        believed = seen.bearing >= min(FEW if rate else 3 * FEW, 0.8 * seen.inputs)
        if self.half_width is not None and result.half_width <= self.half_width and (rate or believed):
            return "half-width"
        if self.precision is not None and believed and result.half_width <= self.precision * abs(result.value):
            return "precision"
        return None

    def next_look(self, look: int, result: Estimate | None, ahead: float | None = None) -> int:
        """Where the interval should be narrow enough; `ahead` is the variance of a visit from here on, where it is not
        that of the visits so far.

        The mean of M visits, `look` of them with variance v and the rest with w, has variance t where
        t M^2 = w M + look (v - w).
        """
        from scipy.special import ndtri

        factor = late = _LATE if look > FIRST_LOOK else _SECOND
        if self.aims and result is not None:
            aim = max(self.half_width or 0.0, (self.precision or 0.0) * abs(result.value))
            if aim > 0:
                v = look * (result.half_width / aim) ** 2  # in units of t
                w = v if ahead is None else ahead * (ndtri(0.5 + self.confidence / 2) / aim) ** 2
                visits = (w + math.sqrt(max(w**2 + 4 * look * (v - w), 0.0))) / 2
                factor = min(max(1.02 * visits / look, _SOON), late)
        return int(look * factor) + 1


def stalled(halves: dict[int, float], done: int, inputs: int) -> str | None:
    """After eight rounds, whether twice the draws have bought less than a tenth of the interval."""
    if done < 8 * inputs:
        return None
    earlier = [half for at, half in halves.items() if at <= done / 2]
    return "inputs" if earlier and halves[done] > 0.9 * earlier[-1] else None
