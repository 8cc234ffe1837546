"""Which token of every row of a training batch is nudged, and by what noise."""

from __future__ import annotations

import torch
from torch import Tensor

from teeter import counter
from teeter.perturb import Inputs, Noise, Perturbation
from teeter.perturb.inputs import device_of

__all__ = ["draw"]

_APART = 1 << 63  # training never shares a hash with a measurement of the same seed
_TOKEN, _NOISE = 0, 1


def draw(
    perturbation: Perturbation, inputs: Inputs, row: Tensor, *, seed: int, step: int | Tensor
) -> tuple[Noise, Tensor]:
    """One token of every row, uniformly among those there are, and the noise for it; and whether a row has any.

    `row` numbers the rows, and the step may be a tensor as well. What a row gets is a pure function of (seed, step, its
    number), so that a batch that comes in parts is nudged as it would be in one.

    >>> from teeter.perturb import BitFlip
    >>> noise, there = draw(BitFlip(), torch.ones(4, 10), torch.arange(4), seed=0, step=3)
    >>> part, _ = draw(BitFlip(), torch.ones(2, 10), torch.arange(2, 4), seed=0, step=3)
    >>> torch.equal(part.token, noise.token[2:]), bool(there.all())
    (True, True)
    """
    place = device_of(inputs)
    there, row = perturbation.positions(inputs).to(place), row.to(place)
    rank = (counter.uniform(_APART + (seed << 1) + _TOKEN, step, row) * there.sum(1)).long()
    token = (there.cumsum(1) <= rank.unsqueeze(1)).sum(1).clamp_max(there.shape[1] - 1)
    return Noise(_APART + (seed << 1) + _NOISE, row, token, torch.zeros_like(row) + step), there.any(1)
