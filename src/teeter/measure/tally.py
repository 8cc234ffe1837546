"""Changes counted by input, and the interval they support.

The independent unit is the input. With s_i the sum of changes on input i over c_i draws, the estimate is
p = sum s_i / sum c_i and its variance m/(m-1) sum (s_i - p c_i)^2 / (sum c_i)^2 over the m inputs met (linearised).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.measure.estimate import Estimate

__all__ = ["FEW", "Sight", "Tally"]

FEW = 30  # inputs that changed, below which their spread is not believed


class Sight(NamedTuple):
    """A tally in a few numbers."""

    inputs: float  # met
    counts: float
    value: float
    squares: float  # of what each input's sum is off by
    changed: float  # inputs with any change
    unchanged: float  # inputs that could have changed more
    bearing: float  # how many inputs the sum rests on: fewer where some changed much more (NaN if none did)


@dataclass
class Tally:
    """Sums and counts by input; two tallies of disjoint draws merge by addition."""

    sums: Tensor
    counts: Tensor
    rate: bool = True  # changes were truth values, or means of them
    draws: float | None = None  # how many changes there were, where the counts do not say

    @classmethod
    def empty(cls, inputs: int, device: torch.device | str = "cpu") -> Tally:
        sums, counts = (torch.zeros(inputs, dtype=torch.float64, device=device) for _ in range(2))
        return cls(sums, counts)

    def add(self, index: Tensor, changes: Tensor, weight: Tensor | None = None) -> None:
        """One change for each of the inputs named; an input may be named more than once.

        A weighted change is a share of an input's own mean, and whoever weights says with `visit` how many means
        there are.
        """
        values = changes.to(self.sums)
        if changes.dtype != torch.bool and self.rate:  # truth values may come in any type
            self.rate = bool(((values == 0) | (values == 1)).all())
        self.sums.index_add_(0, index, values if weight is None else values * weight)
        if weight is None:
            self.visit(index)

    def visit(self, index: Tensor) -> None:
        """Count these inputs once more."""
        self.counts.index_add_(0, index, torch.ones_like(index, dtype=torch.float64))

    def cpu(self) -> Tally:
        """The tally where its estimate is made; a copy unless it is there."""
        return replace(self, sums=self.sums.cpu(), counts=self.counts.cpu())

    def clone(self) -> Tally:
        return replace(self, sums=self.sums.clone(), counts=self.counts.clone())

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.sums + other.sums, self.counts + other.counts, self.rate and other.rate)

    def sight(self) -> Sight:
        """What an interval needs to know, in one transfer from the device."""
        sums, counts = self.sums.double(), self.counts.double()
        value = sums.sum() / counts.sum()
        facts = (
            (counts > 0).sum(),
            counts.sum(),
            value,
            (sums - value * counts).square().sum(),
            (sums > 0).sum(),
            (sums < counts - 1e-9).sum(),
            sums.abs().sum() ** 2 / sums.square().sum(),
        )
        return Sight(*torch.stack([fact.double() for fact in facts]).tolist())

    def by_input(self) -> Tally:
        """Every input met counts once, with the mean of its changes: for designs that try all tokens of an input."""
        met = self.counts > 0
        means = torch.where(met, self.sums / self.counts.clamp_min(1), 0.0)
        return Tally(means, met.double(), self.rate, float(self.counts.sum()))

    def estimate(self, confidence: float = 0.95, seen: Sight | None = None) -> Estimate:
        """The mean change with its interval; `seen` is this tally's sight, where it was taken already.

        >>> Tally(torch.zeros(100), torch.ones(100)).estimate()
        0 [0, 0.0362167]
        """
        from scipy.special import stdtrit

        if not 0 < confidence < 1:
            raise InputError(f"confidence lies in (0, 1), got {confidence}")
        seen = seen or self.sight()
        if seen.inputs < 2:
            raise InputError(f"an interval needs at least two inputs, got {seen.inputs:g}")
        inputs, p = seen.inputs, seen.value
        variance = inputs / (inputs - 1) * seen.squares / seen.counts**2
        if not self.rate:
            half = -float(stdtrit(inputs - 1, (1 - confidence) / 2)) * math.sqrt(variance)
            return Estimate(p, p - half, p + half, int(inputs), confidence)
        most = seen.counts if self.draws is None else self.draws
        low, high = _proportion(p, variance, inputs, most, confidence)
        # Few inputs that changed, or few that did not, say little about the spread between inputs: then the end on that
        # side is at least where it would be with none, as if each input were all or none.
        bound = -math.expm1(math.log((1 - confidence) / 2) / inputs)
        if seen.changed < FEW:
            high = max(high, bound)
        if seen.unchanged < FEW:
            low = min(low, 1 - bound)
        return Estimate(p, low, high, int(inputs), confidence)


def _proportion(p: float, variance: float, inputs: float, draws: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval at the effective sample size p (1 - p) / variance (Korn & Graubard 1998).

    Where all inputs agree the variance says nothing; in the worst case each input is all or none, so the inputs are
    what counts. Otherwise the draws are the most that can count.
    """
    from scipy.special import betaincinv, stdtrit

    tail = (1 - confidence) / 2
    p = min(max(p, 0.0), 1.0)
    if p in (0.0, 1.0) or variance < 1e-24:
        effective = float(inputs)
    else:
        effective = min(p * (1 - p) / variance, draws)
        # Student's quantile for the inputs in place of the normal one at the effective size.
        if effective > 1:
            effective *= (float(stdtrit(effective - 1, tail)) / float(stdtrit(inputs - 1, tail))) ** 2
        effective = min(effective, draws)
    flips = p * effective
    low = 0.0 if p == 0 else float(betaincinv(flips, effective - flips + 1, tail))
    high = 1.0 if p == 1 else float(betaincinv(flips + 1, effective - flips, 1 - tail))
    return min(low, p), max(high, p)
