"""When a measurement has had enough, and when to look next."""

from __future__ import annotations

from dataclasses import dataclass

from teeter.errors import InputError
from teeter.measure.estimate import Estimate
from teeter.measure.tally import FEW, Tally

__all__ = ["FIRST_LOOK", "Stop", "stalled"]

FIRST_LOOK = 256  # triples before the first look at the interval
_SOON, _LATE = 1.1, 2.0  # factors between which the next look lies


@dataclass(frozen=True)
class Stop:
    """When a measurement has had enough."""

    precision: float | None
    half_width: float | None
    budget: int | None
    confidence: float
    judges: bool  # a shard cannot judge the whole

    def __post_init__(self) -> None:
        for name, value in (("precision", self.precision), ("half_width", self.half_width)):
            if value is not None and not value > 0:
                raise InputError(f"{name} is positive, got {value}")
        if self.budget is not None and self.budget < 4:
            raise InputError(f"a budget is at least 4 forwards, got {self.budget}")

    @property
    def aims(self) -> bool:
        """Whether anything but the budget ends it."""
        return self.judges and (self.precision is not None or self.half_width is not None)

    def enough(self, result: Estimate, tally: Tally) -> str | None:
        seen = tally.sight()
        believed = seen.bearing >= min(FEW if tally.rate else 3 * FEW, 0.8 * seen.inputs)
        if self.half_width is not None and result.half_width <= self.half_width and (tally.rate or believed):
            return "half-width"
        if self.precision is not None and believed and result.half_width <= self.precision * abs(result.value):
            return "precision"
        return None

    def next_look(self, look: int, result: Estimate | None) -> int:
        """Where the interval should be narrow enough, since its width falls like one over the root."""
        factor = _LATE
        if self.aims and result is not None:
            aims = [self.half_width or 0.0, (self.precision or 0.0) * abs(result.value)]
            if max(aims) > 0:
                factor = min(max(1.02 * (result.half_width / max(aims)) ** 2, _SOON), _LATE)
        return int(look * factor) + 1


def stalled(halves: dict[int, float], done: int, inputs: int) -> str | None:
    """After eight rounds, whether twice the draws have bought less than a tenth of the interval."""
    if done < 8 * inputs:
        return None
    earlier = [half for at, half in halves.items() if at <= done / 2]
    return "inputs" if earlier and halves[done] > 0.9 * earlier[-1] else None
