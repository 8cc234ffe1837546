"""Nudge all weights at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, count, take
from teeter.perturb.noise import Noise, check_sigma2

__all__ = ["WeightNoise", "perturbed_weights"]


def perturbed_weights(model: nn.Module, sigma: float, noise: Noise, skip: Sequence[str] = ()) -> dict[str, Tensor]:
    """The parameters plus Gaussian noise of standard deviation sigma, for the one row of `noise`.

    Parameters whose name contains one of `skip` keep their values.
    """
    nudged = {}
    for number, (name, weight) in enumerate(model.named_parameters()):
        if any(part in name for part in skip):
            continue
        own = Noise(noise.seed, noise.input, torch.full_like(noise.token, number), noise.draw)
        nudged[name] = weight + sigma * own.normal(*weight.shape)[0].to(weight)
    return nudged


@dataclass(frozen=True)
class WeightNoise:
    """Gaussian noise of variance sigma2 on every parameter, drawn anew for each input (V section 7.2).

    One token, number 0. Every row is a network of its own, so this is as slow as a forward for each;
    `teeter.sharpness` shares a draw between inputs.
    """

    sigma2: float
    skip: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_sigma2(self.sigma2)

    def positions(self, inputs: Inputs) -> Tensor:
        return torch.ones(count(inputs), 1, dtype=torch.bool)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        if not isinstance(model, nn.Module):
            raise InputError(f"weight noise needs a torch module, got {type(model).__name__}")
        outputs = []
        for row in range(len(noise.input)):
            one = slice(row, row + 1)
            own = Noise(noise.seed, noise.input[one], noise.token[one], noise.draw[one])
            weights = perturbed_weights(model, check_sigma2(self.sigma2), own, self.skip)
            alone = take(inputs, torch.tensor([row]))
            answer = functional_call(model, weights, (alone,))
            outputs.append(getattr(answer, "logits", answer))
        return torch.cat(outputs)
