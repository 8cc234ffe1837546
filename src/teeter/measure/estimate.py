"""A measured value with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtrit
from torch import Tensor

from teeter.errors import InputError

__all__ = ["Estimate", "mean_of_inputs"]


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


def mean_of_inputs(values: Tensor, confidence: float = 0.95) -> Estimate:
    """The mean of one value in [0, 1] for each independent input, with its interval.

    Student's t over the inputs, which holds once some dozens of inputs differ from 0; where far fewer do, the values
    are too skewed for it. Where all inputs give 0 there is no spread to go by, and the interval ends at the
    mean mu for which so many zeros would have chance (1 - confidence) / 2: since P(value = 0) <= 1 - mu, that is
    1 - ((1 - confidence) / 2)^(1/n). All ones are the mirror image.

    >>> import torch
    >>> mean_of_inputs(torch.zeros(100))
    0 [0, 0.0362167]
    """
    n = values.numel()
    if values.ndim != 1 or n < 2:
        raise InputError(
            f"an interval needs one value for each of at least two inputs, got shape {tuple(values.shape)}"
        )
    values = values.double()
    if not bool(((values >= 0) & (values <= 1)).all()):
        raise InputError("values of a rate lie in [0, 1]")
    if not 0 < confidence < 1:
        raise InputError(f"confidence lies in (0, 1), got {confidence}")
    mean = float(values.mean())
    tail = (1 - confidence) / 2
    room = -math.expm1(math.log(tail) / n)
    if mean == 0:
        return Estimate(0.0, 0.0, room, n, confidence)
    if mean == 1:
        return Estimate(1.0, 1 - room, 1.0, n, confidence)
    half = -float(stdtrit(n - 1, tail)) * float(values.std()) / math.sqrt(n)
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), n, confidence)
