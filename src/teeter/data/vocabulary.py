"""V's synthetic sentences: sparse, frequent and irrelevant tokens (V section 4.1, Definitions 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError

__all__ = ["Vocabulary", "sequences"]


@dataclass(frozen=True)
class Vocabulary:
    """Definition 4.2 with tokens counted from 0: sparse 0 (+) and 1 (-); frequent 2, 4, ..., 2m (+) and
    3, 5, ..., 2m+1 (-); irrelevant 2m+2, ..., size-1.

    >>> words = Vocabulary(m=2, size=8)
    >>> words.votes("frequent")
    tensor([ 0,  0,  1, -1,  1, -1,  0,  0])
    """

    m: int
    size: int

    def __post_init__(self) -> None:
        if self.m < 1 or self.size < 2 * self.m + 3:
            raise InputError(
                f"a vocabulary with m = {self.m} holds at least 2m + 3 = {2 * self.m + 3} tokens "
                f"(one of them irrelevant), got {self.size}"
            )

    def votes(self, kind: str) -> Tensor:
        """What each token says to a reader of one kind alone: +1, -1, or 0 for tokens of other kinds."""
        spans = {"sparse": (0, 2), "frequent": (2, 2 * self.m + 2)}
        if kind not in spans:
            raise InputError(f"tokens that vote are 'sparse' or 'frequent', got '{kind}'")
        start, stop = spans[kind]
        votes = torch.zeros(self.size, dtype=torch.int64)
        votes[start:stop:2], votes[start + 1 : stop : 2] = 1, -1
        return votes


def sequences(
    vocabulary: Vocabulary,
    count: int,
    *,
    length: int,
    n_sparse: int,
    n_frequent: int,
    n_difference: int,
    seed: int,
    start: int = 0,
    altered: bool = False,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Definition 4.3: `count` sentences as a (count, length) tensor of tokens, and their labels ±1.

    Of the frequent tokens floor((n_frequent + n_difference) / 2) agree with the label and the rest oppose it; the
    places of all tokens are shuffled. `altered` draws the sparse tokens from the opposite label, as in V's test set.
    Sentence i is a pure function of (seed, i), and `start` is the first i.
    """
    if count < 0:
        raise InputError(f"a count of sentences is not negative, got {count}")
    if not 1 <= n_difference <= n_frequent or n_sparse < 0 or n_frequent + n_sparse > length:
        raise InputError(
            f"n_difference in 1..n_frequent and n_frequent + n_sparse <= length are needed, got "
            f"n_sparse = {n_sparse}, n_frequent = {n_frequent}, n_difference = {n_difference}, length = {length}"
        )
    agreeing = (n_frequent + n_difference) // 2
    sentence = torch.arange(start, start + count, device=device).unsqueeze(-1)
    slot = torch.arange(length, device=device)
    negative = counter.bits(seed, sentence, torch.tensor(0)) < 0  # (count, 1)

    opposed = (slot >= agreeing) & (slot < n_frequent)
    is_sparse = (slot >= n_frequent) & (slot < n_frequent + n_sparse)
    side = (negative ^ opposed ^ (is_sparse & altered)).long()  # 0 for a + token, 1 for a - token
    chosen = 2 + 2 * counter.integers(vocabulary.m, seed, sentence, torch.tensor(1), slot) + side
    irrelevant = vocabulary.size - 2 * vocabulary.m - 2
    filler = 2 * vocabulary.m + 2 + counter.integers(irrelevant, seed, sentence, torch.tensor(2), slot)
    tokens = torch.where(slot < n_frequent, chosen, torch.where(is_sparse, side, filler))

    places = counter.bits(seed, sentence, torch.tensor(3), slot).argsort(-1)
    return tokens.gather(-1, places), 1 - 2 * negative.squeeze(-1).long()
