"""What models answer with nudged weights, string by string: sharpness of any part of the answers, from one pass."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from teeter.measure.sharpness import Nudging
from teeter.measure.stacked import stacked_answers
from teeter.studies.hahn2024.learning import POSITIONS
from teeter.train import Stack

__all__ = ["answers", "changes"]


def answers(stack: Stack, x: Tensor) -> tuple[Tensor, Tensor]:
    """What each model says of all strings, (models, strings, ...), and what it says with nudged weights, (draws,
    models, strings, ...): the nudges are those of `teeter.sharpness`."""
    stack.shape.eval()
    how, weights = Nudging(skip=POSITIONS), {name: part.detach() for name, part in stack.weights.items()}
    noise = how.noise({name: part[0] for name, part in weights.items()}, range(how.draws))

    def say(weights: Mapping[str, Tensor]) -> Tensor:
        return stacked_answers(stack.shared, weights, x, batch=1024, pairs=stack.pairs(x))

    with torch.no_grad():
        nudged = [
            say({name: part + noise[name][draw] if name in noise else part for name, part in weights.items()})
            for draw in range(how.draws)
        ]
        return say(weights).double(), torch.stack(nudged).double()


def changes(clean: Tensor, nudged: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Of answers meant to be 0 and 1, in units of ±1 and for every draw: the change that Eq. 15 has the mean of, and
    the rise of the error, as the released code has it."""
    rise = (nudged - targets).square() - (clean - targets).square()
    return {"sharpness": 4 * (nudged - clean).square(), "sharpness_released": 4 * rise}
