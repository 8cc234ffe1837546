"""Every corruption by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from teeter.data.corruptions.blur import defocus_blur, gaussian_blur, glass_blur, motion_blur, zoom_blur
from teeter.data.corruptions.colour import brightness, contrast, saturate
from teeter.data.corruptions.digital import elastic_transform, jpeg_compression, pixelate
from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.noise import gaussian_noise, impulse_noise, shot_noise, speckle_noise
from teeter.data.corruptions.severities import SEVERITIES
from teeter.data.corruptions.spatter import spatter
from teeter.data.corruptions.weather import fog, frost, snow
from teeter.errors import InputError, UnknownName

__all__ = ["CORRUPTIONS", "FAMILIES", "check", "corrupted"]

# From bytes of shape (images, 3, 32, 32), what SEVERITIES says, and random numbers, to bytes of the same shape.
CORRUPTIONS: dict[str, Callable[[Tensor, Any, Draws], Tensor]] = {
    "gaussian_noise": gaussian_noise,
    "shot_noise": shot_noise,
    "impulse_noise": impulse_noise,
    "defocus_blur": defocus_blur,
    "glass_blur": glass_blur,
    "motion_blur": motion_blur,
    "zoom_blur": zoom_blur,
    "snow": snow,
    "frost": frost,
    "fog": fog,
    "brightness": brightness,
    "contrast": contrast,
    "elastic_transform": elastic_transform,
    "pixelate": pixelate,
    "jpeg_compression": jpeg_compression,
    "gaussian_blur": gaussian_blur,
    "speckle_noise": speckle_noise,
    "spatter": spatter,
    "saturate": saturate,
}

FAMILIES: dict[str, list[str]] = {
    "noise": ["gaussian_noise", "shot_noise", "impulse_noise"],
    "blur": ["defocus_blur", "glass_blur", "motion_blur", "zoom_blur"],
    "weather": ["snow", "frost", "fog", "brightness"],
    "digital": ["contrast", "elastic_transform", "pixelate", "jpeg_compression"],
    "extra": ["gaussian_blur", "speckle_noise", "spatter", "saturate"],
}

_CHUNK = 250  # images at a time: few enough for a processor's cache, many enough for vector instructions


def check(corruption: str, severity: int) -> None:
    """Raise unless there is such a corruption and such a severity."""
    if corruption not in CORRUPTIONS:
        raise UnknownName("corruption", corruption, CORRUPTIONS)
    if isinstance(severity, bool) or not isinstance(severity, int) or not 1 <= severity <= 5:
        raise InputError(f"a severity is a whole number from 1 to 5, got {severity!r}")


def corrupted(images: Tensor, corruption: str, severity: int, seed: int = 0, index: Tensor | None = None) -> Tensor:
    """Images of 32 x 32 corrupted as in CIFAR-10-C (Hendrycks and Dietterich 2019), bytes to bytes.

    The random numbers of an image are a pure function of (seed, corruption, severity, its number); `index` are the
    images' numbers, 0, 1, ... unless given. What becomes of an image is therefore the same in every batch and order.

    >>> images = torch.arange(2 * 3 * 32 * 32).remainder(256).to(torch.uint8).view(2, 3, 32, 32)
    >>> both = corrupted(images, "gaussian_noise", severity=3)
    >>> second = corrupted(images[1:], "gaussian_noise", severity=3, index=torch.tensor([1]))
    >>> both.shape, both.dtype, torch.equal(both[1:], second)
    (torch.Size([2, 3, 32, 32]), torch.uint8, True)
    """
    check(corruption, severity)
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1:] != (3, 32, 32):
        raise InputError(
            f"the severities are those for colour images of 32 x 32: bytes of shape (images, 3, 32, 32), "
            f"got {images.dtype} {tuple(images.shape)}"
        )
    index = torch.arange(len(images)) if index is None else index.cpu()
    if index.dtype != torch.int64 or index.shape != images.shape[:1]:
        raise InputError(f"{len(images)} images have as many int64 numbers, got {index.dtype} {tuple(index.shape)}")
    constants = SEVERITIES[corruption][severity - 1]
    done = torch.empty_like(images, device="cpu", memory_format=torch.contiguous_format)
    for start in range(0, len(images), _CHUNK):
        part = slice(start, start + _CHUNK)
        draws = Draws(seed, corruption, severity, index[part])
        done[part] = CORRUPTIONS[corruption](images[part].cpu().contiguous(), constants, draws)
    return done.to(images.device)
