"""The noise of V's released code: not on a patch, which it takes it for, but on as many pixels all over the image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from teeter.errors import InputError
from teeter.perturb import Inputs, Noise, PatchNoise

__all__ = ["ScatteredNoise"]


@dataclass(frozen=True)
class ScatteredNoise:
    """Gaussian noise of variance sigma2 on patch * patch pixels drawn at random, all channels of each; one that is
    drawn twice gets both. 16 pixels of a 32 x 32 image lie in about 14 of its 64 patches.

    The released code draws pixels once for a whole batch, which is the same in the mean; here every image has its own.
    """

    patch: int
    sigma2: float = 1.0

    def positions(self, inputs: Inputs) -> Tensor:
        return PatchNoise(self.patch).positions(inputs)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        if not isinstance(inputs, Tensor):
            raise InputError("scattered noise is for images as one tensor")
        rows, channels, height, width = inputs.shape
        pixels = noise.integers(height * width, self.patch**2)
        # The first of the numbers come of the very hashes that the pixels come of, and are left alone.
        step = noise.normal(channels + 1, self.patch**2)[:, 1:].to(inputs) * self.sigma2**0.5
        nudged = inputs.flatten(2).scatter_add(2, pixels.unsqueeze(1).expand(rows, channels, -1), step)
        return model(nudged.view(inputs.shape))
