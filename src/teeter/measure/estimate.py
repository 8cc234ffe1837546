"""A measured value with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from teeter.errors import InputError

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """A value, an interval that contains the truth with the stated confidence, and how many units it rests on.

    >>> Estimate(0.25, 0.2, 0.3, n=400)
    0.25 [0.2, 0.3]
    >>> Estimate.exact(1.5)
    1.5
    """

    value: float
    low: float
    high: float
    n: int  # independent units, which for models are inputs, not draws
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:  # also false for NaN
            raise InputError(f"an estimate lies within its interval, got {self.value} in [{self.low}, {self.high}]")
        if not 0 < self.confidence <= 1:
            raise InputError(f"confidence lies in (0, 1], got {self.confidence}")

    @classmethod
    def exact(cls, value: float, n: int = 1) -> Estimate:
        """A value without doubt: low == value == high."""
        return cls(value, value, value, n, confidence=1.0)

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def __repr__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.6g}"
        return f"{self.value:.6g} [{self.low:.6g}, {self.high:.6g}]"
