"""The design that learns where flips are: more draws on inputs that stand close to another answer, fewer on the rest.

Inputs are met in the same random order as in the broad design, block by block. An input's clean margin puts it into a
stratum, and the stratum says how many draws d it gets: a whole number and one more with the probability of the
remainder, so that d is also the expected number. With s flips in k draws the input's own unbiased estimate is s/k where
d >= 1, and s/d (zero without a draw) where d < 1; the answer is the mean of these over all inputs met. How a block is
divided rests only on what earlier blocks showed and on its own clean margins, so every block is unbiased whatever was
learned (a martingale), and the inputs stay the independent units.

With p the mean chance to flip in a stratum of share w, r how alike the draws on one input are (their correlation) and
v = (1 - r) p (1 - p) the variance that further draws on an input average away, the variance of the mean of M inputs is

    1/M (sum_h w_h (p_h - v_h + v_h / d_h) - p^2),   with p_h / d_h in place of the bracket where d_h < 1,

at M (1 + sum_h w_h d_h) forwards. Their product is made small over the scale c of d = c sqrt(v), or of c sqrt(p)
where that is below one.

Strata end at margins that were seen, so inputs whose margins agree to the last bits may change sides with the rounding
of another batch size, and later blocks with them; the answer stays unbiased, and distinct margins stay where they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from teeter import counter
from teeter.measure.run import Run
from teeter.measure.schedule import TOKEN, Places, Rounds, Triples
from teeter.measure.tally import FEW

__all__ = ["Adaptive", "Strata", "allocation", "edges_between", "strata", "variances"]

_SHARE = 3  # what this hash of the seed is for: whether an input gets the draw beyond its whole number
_GOLDEN = 0.6180339887498949  # steps that spread any number of tokens of one input evenly over its length
_QUANTILES = 2.0 ** -np.arange(7, 0, -0.5)  # finer towards small margins, where the flips are
_FEWEST, _MOST = 0.1, 8.0  # draws an input: weights stay bounded, and many inputs stay needed
_SORTED = 1 << 20  # margins looked at for where strata end
_LEARNED = 2  # inputs that flipped, before which all inputs are treated alike
_PRIOR_FLIPS, _PRIOR_PAIRS, _PRIOR_ALIKE = 12.0, 200.0, 0.1  # what is believed before anything is seen, and how much


@dataclass(frozen=True)
class Strata:
    """Of each stratum its share of the inputs and its chance to flip; and how alike the draws on one input are."""

    share: np.ndarray
    chance: np.ndarray
    alike: float


def edges_between(margin: Tensor) -> Tensor:
    """Margins at which one stratum ends and the next begins: fewer than fifteen where inputs share their margins."""
    some = margin[:: len(margin) // _SORTED + 1]  # more would not place them better
    return torch.quantile(some, torch.as_tensor(_QUANTILES).to(some)).unique()


def strata(where: Tensor, flips: Tensor, tries: Tensor, number: int) -> Strata:
    """What is known of strata 0 .. number-1, from the flips of inputs in so many tries.

    Chances fall as margins grow (isotonic regression), starting from a prior of a few flips of that shape.
    """
    from scipy.optimize import isotonic_regression

    parts = torch.stack([torch.ones_like(tries), tries, flips, tries * (tries - 1), flips * (flips - 1)])
    table = torch.zeros(len(parts), number, dtype=parts.dtype, device=parts.device).index_add_(1, where, parts)
    met, tried, flipped, pairs, both = table.cpu().numpy()
    share = met / met.sum()
    shape = np.exp(-5 * np.sqrt(np.cumsum(share) - share / 2))
    # A rate over inputs, not over tries, most of which were where flips are.
    rate = max(float((share * flipped / np.maximum(tried, 1)).sum()), 0.5 / max(float(tried.sum()), 1.0))
    prior = _PRIOR_FLIPS * share / rate + 1e-9  # tries
    raw = (flipped + prior * rate * shape / (share * shape).sum()) / (tried + prior)
    chance = isotonic_regression(np.minimum(raw, 1.0), weights=tried + prior, increasing=False).x
    chance = np.maximum(chance, 0.3 / (1 + np.cumsum(tried[::-1])[::-1]))  # no flip seen is not none to come
    agree = (both - pairs * chance**2).sum() + _PRIOR_PAIRS * _PRIOR_ALIKE
    alike = float(agree / ((pairs * chance * (1 - chance)).sum() + _PRIOR_PAIRS))
    return Strata(share, chance, min(max(alike, 0.01), 0.99))


def variances(known: Strata, draws: np.ndarray) -> np.ndarray:
    """The variance of an input's own estimate, where strata get so many draws (the last axis)."""
    p, w = known.chance, known.share
    v = (1 - known.alike) * p * (1 - p)
    second = np.where(draws > 1, p - v + v / np.maximum(draws, 1.0), p / draws)
    return (w * second).sum(-1) - (w * p).sum() ** 2


def allocation(known: Strata, clean: float, fewest: float = _FEWEST) -> np.ndarray:
    """Draws for an input of each stratum, where a clean forward costs `clean` (none on inputs met before).

    >>> two = Strata(np.array([0.1, 0.9]), np.array([0.2, 0.0001]), 0.1)
    >>> allocation(two, clean=1.0).round(1)
    array([5.3, 0.1])
    """
    p = known.chance
    scale = np.exp(np.linspace(-3, 7, 200))[:, None]
    many, few = scale * np.sqrt((1 - known.alike) * p * (1 - p)), scale * np.sqrt(p)
    draws = np.clip(np.where(many > 1, many, np.minimum(few, 1.0)), fewest, _MOST)
    cost = (clean + (known.share * draws).sum(-1)) * variances(known, draws)
    return draws[cost.argmin()]


class Adaptive:
    """Visits to inputs in random order, each with as many draws as its margin deserves.

    `clean` says whether an input's clean forward is still to be paid for.
    """

    name = "adaptive"

    def __init__(self, positions: Tensor, seed: int, clean: bool = True) -> None:
        self.seed, self.clean = seed, clean
        self.places = Places(positions)
        self.inputs = self.places.inputs
        self.rounds = Rounds(self.inputs, seed)
        self.flips, self.tries = (
            torch.zeros(len(positions), dtype=torch.float64, device=positions.device) for _ in range(2)
        )
        self.known: Strata | None = None
        self._fewest = 1.0
        self._edges: Tensor | None = None
        self._draws: dict[float, np.ndarray] = {}

    def fresh(self, start: int, stop: int) -> Tensor:
        """Inputs that visits start .. stop-1 meet first."""
        return self.rounds[start:stop] if self._clean_cost(start) else self.inputs[:0]

    def price(self, start: int) -> float:
        """Forwards that the next visit is expected to cost."""
        draws = 1.0 if self.known is None else float((self.known.share * self._allocated(start)).sum())
        return self._clean_cost(start) + draws

    def variance(self, start: int) -> float | None:
        """The variance of the next visit's estimate, where anything is known of it."""
        return None if self.known is None else float(variances(self.known, self._allocated(start)))

    def fits(self, start: int, left: float) -> int:
        """How many visits so many forwards allow, with a reserve for draws that chance adds."""
        visits = left / self.price(start)
        return int(visits if self.known is None else visits - 3 * math.sqrt(visits))

    def triples(self, start: int, stop: int, run: Run, left: float) -> tuple[Tensor, Triples] | None:
        """The inputs of visits start .. stop-1, all met, and their draws; None where they cost more than is left.

        What they cost follows from margins alone, never from flips, so a block that is given up biases nothing.
        """
        index = self.rounds[start:stop]
        wanted = torch.ones(len(index), dtype=torch.float64, device=index.device)
        if self.known is not None:
            wanted = torch.as_tensor(self._allocated(start)).to(wanted)[self._stratum(run.margin(index))]
            if left < _MOST * len(index) and float(wanted.sum()) + 2 * math.sqrt(len(index)) > left:
                return None
        visit = torch.arange(start, stop, device=index.device) // len(self.inputs)
        draws = (wanted + counter.uniform(self.seed, _SHARE, index, visit)).floor().long()
        weight = 1 / torch.where(wanted < 1, wanted, draws.double())
        which = torch.arange(len(index), device=index.device).repeat_interleave(draws)
        number = torch.arange(len(which), device=index.device) - (draws.cumsum(0) - draws)[which]
        chosen = index[which]
        begin = counter.uniform(self.seed, TOKEN, chosen, visit[which])
        token = self.places.at(chosen, (begin + number * _GOLDEN) % 1)
        return index, Triples(chosen, token, self.tries[chosen].long() + number, chosen[:0], weight[which])

    def learn(self, triples: Triples, changed: Tensor, run: Run, visits: int, flipped: int) -> None:
        """Take in what a block showed, after so many visits on which so many inputs flipped."""
        self.flips.index_add_(0, triples.input, changed)
        self.tries.index_add_(0, triples.input, torch.ones_like(triples.input, dtype=torch.float64))
        if flipped >= _LEARNED:
            met = self.rounds[0 : min(visits, len(self.inputs))] if self.clean else self.inputs
            margin = run.margin(met).double()
            if self._edges is None or self._clean_cost(visits):  # more margins are known than before
                self._edges = edges_between(margin)
            self.known = strata(self._stratum(margin), self.flips[met], self.tries[met], len(self._edges) + 1)
            self._fewest = _FEWEST if flipped >= FEW else 1.0  # until then an interval counts on every input tried
            self._draws = {}

    def _stratum(self, margin: Tensor) -> Tensor:
        assert self._edges is not None
        return torch.bucketize(margin.double(), self._edges, right=True)

    def _clean_cost(self, start: int) -> float:
        return 1.0 if self.clean and start < len(self.inputs) else 0.0

    def _allocated(self, start: int) -> np.ndarray:
        assert self.known is not None
        cost = self._clean_cost(start)
        if cost not in self._draws:
            self._draws[cost] = allocation(self.known, cost, self._fewest)
        return self._draws[cost]
