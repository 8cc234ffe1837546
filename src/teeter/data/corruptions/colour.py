"""Corruptions of colour: brightness, contrast, saturation.

Hue, saturation and value (HSV) of a pixel: the value V is its largest channel, the saturation S = (V - smallest) / V.
A change of V alone scales all channels alike; a change of S alone scales their distances from V.
"""

from __future__ import annotations

import torch
from torch import Tensor

from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.linear import to_bytes

__all__ = ["brightness", "contrast", "saturate"]


def brightness(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """V + c, at most 1. Black, which has no hue, becomes grey."""
    pixels = images.double()
    value = pixels.amax(1, keepdim=True)
    brighter = (value + 255 * constants).clamp(max=255)
    return to_bytes(torch.where(value > 0, pixels * (brighter / value.clamp(min=1)), brighter))


def saturate(images: Tensor, constants: tuple[float, float], draws: Draws) -> Tensor:
    """a * S + b, from 0 to 1. Grey counts as an unsaturated red, as published: with b > 0 it turns red."""
    factor, addend = constants
    pixels = images.double()
    value = pixels.amax(1, keepdim=True)
    spread = value - pixels.amin(1, keepdim=True)
    old = spread / value.clamp(min=1)
    new = (factor * old + addend).clamp(0, 1)
    coloured = value - (value - pixels) * (new / old.clamp(min=1e-9))
    red = value * (1 - new * torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64).view(3, 1, 1))
    return to_bytes(torch.where(spread > 0, coloured, red))


def contrast(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """mean + c * (x - mean), with the mean of each channel over the image."""
    mean = images.long().sum((-1, -2), keepdim=True).double() / (images.shape[-1] * images.shape[-2])
    return to_bytes(mean + constants * (images - mean))
