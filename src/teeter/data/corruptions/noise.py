"""Corruptions by noise: each value of each channel on its own."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.linear import to_bytes

__all__ = ["gaussian_noise", "impulse_noise", "shot_noise", "speckle_noise"]


def gaussian_noise(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """x + sigma * normal, for pixels x from 0 to 1: the grain of a picture taken in poor light."""
    return to_bytes(images + 255 * constants * draws.normal(0, *images.shape[1:]))


def speckle_noise(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """x + x * sigma * normal: noise in proportion to the light."""
    return to_bytes(images * (1 + constants * draws.normal(0, *images.shape[1:])))


def impulse_noise(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """A part of all values turns black or white, each with even chance."""
    chance = draws.uniform(0, *images.shape[1:])
    struck = torch.where(chance < constants / 2, 255, 0).to(torch.uint8)
    return torch.where(chance < constants, struck, images)


def shot_noise(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """Poisson(x * photons) / photons: light comes in photons.

    Pixels have 256 values, so the distribution functions of all 256 Poisson variables fit into one sorted table, one
    after the other; a count is where pixel + uniform falls in it.
    """
    table, levels = _photons(constants)
    chance = torch.floor(draws.uniform(0, *images.shape[1:]) * 2.0**44) * 2.0**-44  # pixel + chance is then exact
    count = torch.searchsorted(table.flatten(), images + chance, right=True)
    return levels[count - images.long() * table.shape[1]]


@cache
def _photons(photons: float) -> tuple[Tensor, Tensor]:
    """Pixel + P(count <= k) for every pixel and k, and the byte that k photons make."""
    from scipy.stats import poisson  # takes longer to import than all of this room

    most = int(poisson.isf(1e-16, photons)) + 1
    below = poisson.cdf(np.arange(most), np.arange(256)[:, None] * photons / 255)
    below[:, -1] = 1  # no count above it, however rounding falls
    levels = to_bytes(torch.arange(most + 1, dtype=torch.float64) / photons * 255)
    return torch.from_numpy(below + np.arange(256)[:, None]), levels
