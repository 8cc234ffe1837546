"""Addition modulo p, the task on which V section 7.3 (after Nanda et al. 2023) watches a transformer grok."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError

__all__ = ["LabelledPairs", "modular_addition"]


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs (a, b) of shape (pairs, 2), or with `equals` (a, b, =) of shape (pairs, 3), and a + b mod p."""

    tokens: Tensor
    labels: Tensor
    p: int

    def __len__(self) -> int:
        return len(self.labels)


def modular_addition(
    p: int = 113, *, share: float = 0.3, seed: int = 0, equals: bool = False, device: torch.device | str = "cpu"
) -> tuple[LabelledPairs, LabelledPairs]:
    """All p^2 pairs, parted at random: floor(share * p^2) to train on and the rest to test. Each part is in the order
    of a, then b. `equals` puts a third token p, the sign of equality, after each pair.

    >>> train, test = modular_addition()
    >>> len(train), len(test)
    (3830, 8939)
    >>> a, b = train.tokens[7].tolist()
    >>> int(train.labels[7]) == (a + b) % 113
    True
    """
    if p < 2 or not 0 < share < 1:
        raise InputError(f"p is at least 2 and the share to train on between 0 and 1, got p = {p}, share = {share}")
    pair = torch.arange(p * p, device=device)
    a, b = pair // p, pair % p
    tokens = torch.stack([a, b, *([torch.full_like(a, p)] if equals else [])], dim=-1)
    count = int(share * p * p + 1e-9)  # 0.29 of 100 is 29, not 28.999
    if not 0 < count < p * p:
        raise InputError(f"a share of {share} of {p * p} pairs leaves nothing to train on or nothing to test")
    order = counter.bits(seed, pair).argsort()
    first, second = order[:count].sort().values, order[count:].sort().values
    train, test = (LabelledPairs(tokens[part], (a + b)[part] % p, p) for part in (first, second))
    return train, test
