"""Which (input, token, draw) triples are tried, in which order: the design of a measurement.

Both designs are a pure function of the seed. Triple number j is the same whatever the batch size, and a measurement
that stops early has tried exactly the first j.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError

__all__ = ["Broad", "Paper", "Triples"]

_ORDER, _TOKEN = 1, 2  # what a hash of the seed is for, so that order and token do not share numbers


@dataclass(frozen=True)
class Triples:
    input: Tensor
    token: Tensor
    draw: Tensor


def _shuffled(seed: int, round_: int, count: int) -> Tensor:
    return counter.bits(seed, torch.tensor(_ORDER), torch.tensor(round_), torch.arange(count)).argsort()


class Broad:
    """Every input once, in random order, with one of its tokens drawn at random; then every input again.

    Each triple is on another input for as long as there are any, which is what makes an error bar small: flips
    cluster in few inputs, and further draws on one input say little about the others.
    """

    name = "broad"

    def __init__(self, positions: Tensor, seed: int) -> None:
        self.seed = seed
        self.inputs = positions.any(-1).nonzero().squeeze(-1)  # an input without tokens has nothing to nudge
        if len(self.inputs) == 0:
            raise InputError("no input has a token to perturb: all of them are padding or skipped")
        self.ranks = positions.long().cumsum(-1)
        self.orders: dict[int, Tensor] = {}

    def triples(self, start: int, stop: int) -> Triples:
        """Triples number start .. stop-1."""
        number = torch.arange(start, stop)
        round_ = number // len(self.inputs)
        place = number % len(self.inputs)
        chosen = torch.cat([self._order(int(r))[place[round_ == r]] for r in round_.unique()])
        ranks = self.ranks[chosen]
        share = counter.uniform(self.seed, torch.tensor(_TOKEN), chosen, round_)
        rank = (share * ranks[:, -1]).long()
        return Triples(chosen, (ranks > rank.unsqueeze(-1)).long().argmax(-1), round_)

    def _order(self, round_: int) -> Tensor:
        if round_ not in self.orders:
            self.orders = {r: order for r, order in self.orders.items() if r == round_ - 1}
            self.orders[round_] = self.inputs[_shuffled(self.seed, round_, len(self.inputs))]
        return self.orders[round_]

    def limit(self, budget: int) -> int:
        """How many triples fit into so many forwards: each one, and one clean for every input met."""
        met = len(self.inputs)
        return budget // 2 if budget <= 2 * met else budget - met

    def forwards(self, triples: int) -> int:
        return triples + min(triples, len(self.inputs))


class Paper:
    """V's design: on a random subset of the inputs, every token, `draws` times each."""

    name = "paper"

    def __init__(self, positions: Tensor, seed: int, subset: int | None, draws: int) -> None:
        if draws < 1:
            raise InputError(f"draws is at least 1, got {draws}")
        some = positions.any(-1).nonzero().squeeze(-1)
        if len(some) == 0:
            raise InputError("no input has a token to perturb: all of them are padding or skipped")
        if subset is not None and not 1 <= subset <= len(some):
            raise InputError(f"the subset has between 1 and {len(some)} inputs, got {subset}")
        self.inputs = some[_shuffled(seed, 0, len(some))][:subset]
        self.draws = draws
        self.tokens = [row.nonzero().squeeze(-1) for row in positions[self.inputs]]
        sizes = torch.tensor([draws * len(tokens) for tokens in self.tokens])
        self.ends = sizes.cumsum(0)
        self.total = int(self.ends[-1])

    def triples(self, start: int, stop: int) -> Triples:
        number = torch.arange(start, stop)
        which = torch.searchsorted(self.ends, number, right=True)
        inside = number - torch.cat([torch.zeros(1, dtype=torch.long), self.ends])[which]
        token, draw = torch.empty_like(number), torch.empty_like(number)
        for w in which.unique():
            here = which == w
            tokens = self.tokens[int(w)]
            token[here], draw[here] = tokens[inside[here] % len(tokens)], inside[here] // len(tokens)
        return Triples(self.inputs[which], token, draw)

    def limit(self, budget: int) -> int:
        """The triples of all inputs that fit whole, so that every input's mean is over all of its tokens."""
        fits = self.ends + torch.arange(1, len(self.ends) + 1) <= budget
        if not bool(fits[0]):
            raise InputError(f"a budget of {budget} forwards does not cover one input with all of its tokens")
        return int(self.ends[fits][-1])

    def forwards(self, triples: int) -> int:
        return triples + int((self.ends < triples).sum()) + 1 if triples else 0
