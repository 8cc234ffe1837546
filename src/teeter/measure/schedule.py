"""Which (input, token, draw) triples are tried, in which order: the design of a measurement.

Designs that do not look at answers, as a pure function of the seed: triple number j is the same whatever the batch
size, and a measurement that stops early has tried exactly the first j. Everything stays on the device of the inputs,
so that a GPU never waits for its next batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError

__all__ = ["Broad", "Paper", "Places", "Rounds", "Triples"]

_ORDER, TOKEN = 1, 2  # what a hash of the seed is for, so that order and token do not share numbers


@dataclass(frozen=True)
class Triples:
    input: Tensor
    token: Tensor
    draw: Tensor
    fresh: Tensor | None = None  # inputs met for the first time, where the design knows
    weight: Tensor | None = None  # what a change counts, one if nothing is said

    def __getitem__(self, which: Tensor | slice) -> Triples:
        weight = None if self.weight is None else self.weight[which]
        fresh = None if self.fresh is None or len(self.fresh) else self.fresh  # none in the whole is none in a part
        return Triples(self.input[which], self.token[which], self.draw[which], fresh, weight)


class Places:
    """The tokens of every input that can be nudged, however many it has."""

    def __init__(self, positions: Tensor) -> None:
        self.counts = positions.sum(-1)
        self.inputs = self.counts.nonzero().squeeze(-1)  # an input without tokens has nothing to nudge
        if len(self.inputs) == 0:
            raise InputError("no input has a token to perturb: all of them are padding or skipped")
        self._tokens = None if bool(positions.all()) else positions.nonzero()[:, 1]
        self._first = self.counts.cumsum(0) - self.counts

    def token(self, index: Tensor, rank: Tensor) -> Tensor:
        """The rank-th token of these inputs."""
        return rank if self._tokens is None else self._tokens[self._first[index] + rank]

    def at(self, index: Tensor, share: Tensor) -> Tensor:
        """The token at that share, in [0, 1), of the way through these inputs."""
        return self.token(index, (share * self.counts[index]).long())


class Rounds:
    """Every input once, in random order; then every input again, in another."""

    def __init__(self, inputs: Tensor, seed: int) -> None:
        self.inputs, self.seed = inputs, seed
        self._orders: dict[int, Tensor] = {}

    def __getitem__(self, numbers: slice) -> Tensor:
        """The inputs at places start .. stop-1 of this endless sequence."""
        start, stop, n = numbers.start, numbers.stop, len(self.inputs)
        spans = [(r, max(start - r * n, 0), min(stop - r * n, n)) for r in range(start // n, (stop - 1) // n + 1)]
        return torch.cat([self._order(r)[a:b] for r, a, b in spans])

    def _order(self, round_: int) -> Tensor:
        if round_ not in self._orders:
            self._orders = {r: order for r, order in self._orders.items() if r == round_ - 1}
            self._orders[round_] = self.inputs[_shuffled(self.seed, round_, self.inputs)]
        return self._orders[round_]


def _shuffled(seed: int, round_: int, like: Tensor) -> Tensor:
    number = torch.arange(len(like), device=like.device)
    return counter.bits(seed, _ORDER, round_, number).argsort()


class Broad:
    """Every input once, in random order, with one of its tokens drawn at random; then every input again.

    Each triple is on another input for as long as there are any, which is what makes an error bar small: flips
    cluster in few inputs, and further draws on one input say little about the others.
    """

    name = "broad"

    def __init__(self, positions: Tensor, seed: int) -> None:
        self.seed = seed
        self.places = Places(positions)
        self.inputs = self.places.inputs
        self.rounds = Rounds(self.inputs, seed)

    def triples(self, start: int, stop: int) -> Triples:
        """Triples number start .. stop-1."""
        chosen = self.rounds[start:stop]
        round_ = torch.arange(start, stop, device=chosen.device) // len(self.inputs)
        share = counter.uniform(self.seed, TOKEN, chosen, round_)
        fresh = chosen[: max(min(stop, len(self.inputs)) - start, 0)]
        return Triples(chosen, self.places.at(chosen, share), round_, fresh)

    def limit(self, budget: int, clean: bool = True) -> int:
        """How many triples fit into so many forwards: each one, and one clean for every input met."""
        met = len(self.inputs) if clean else 0
        return int(budget // 2 if budget <= 2 * met else budget - met)


class Paper:
    """V's design: on a random subset of the inputs, every token, `draws` times each."""

    name = "paper"

    def __init__(self, positions: Tensor, seed: int, subset: int | None, draws: int) -> None:
        self.places = Places(positions)
        some = self.places.inputs
        if subset is not None and not 1 <= subset <= len(some):
            raise InputError(f"the subset has between 1 and {len(some)} inputs, got {subset}")
        self.inputs = some[_shuffled(seed, 0, some)][:subset]
        self.draws = draws
        self._ends = (draws * self.places.counts[self.inputs]).cumsum(0)
        self.ends = self._ends.cpu()
        self.total = int(self.ends[-1])

    def triples(self, start: int, stop: int) -> Triples:
        number = torch.arange(start, stop, device=self._ends.device)
        which = torch.searchsorted(self._ends, number, right=True)
        index = self.inputs[which]
        tokens = self.places.counts[index]
        inside = number - (self._ends[which] - self.draws * tokens)
        begins = torch.cat([torch.zeros(1, dtype=torch.long), self.ends[:-1]])
        first, last = torch.searchsorted(begins, torch.tensor([start, stop])).tolist()
        return Triples(index, self.places.token(index, inside % tokens), inside // tokens, self.inputs[first:last])

    def limit(self, budget: int, clean: bool = True) -> int:
        """The triples of all inputs that fit whole, so that every input's mean is over all of its tokens."""
        fits = self.ends + clean * torch.arange(1, len(self.ends) + 1) <= budget
        if not bool(fits[0]):
            raise InputError(f"a budget of {budget} forwards does not cover one input with all of its tokens")
        return int(self.ends[fits][-1])
