"""Nudge one patch of an image, or all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, field, replace
from teeter.perturb.noise import Noise, check_sigma2, root_mean_square

__all__ = ["InputNoise", "PatchNoise", "PatchReplace"]


def _check_patch(patch: int) -> None:
    if not isinstance(patch, Integral) or patch < 1:
        raise InputError(f"a patch is a square, of whole pixels to a side, got {patch!r}")


def _grid(images: Tensor, patch: int) -> tuple[int, int]:
    """How many patches an image has downwards and across."""
    if images.ndim != 4 or not images.is_floating_point():
        raise InputError(
            f"images are floats of shape (inputs, channels, height, width), got {images.dtype} {tuple(images.shape)}"
        )
    height, width = images.shape[2:]
    if height % patch or width % patch:
        raise InputError(f"patches of {patch} x {patch} do not divide images of {height} x {width}")
    return height // patch, width // patch


def _cut(images: Tensor, patch: int, token: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """A copy of the images seen as patches, and the index of each row's patch: (rows, channels, patch, patch)."""
    down, across = _grid(images, patch)
    copy = images.clone(memory_format=torch.contiguous_format)
    token = token.to(images.device)
    rows = torch.arange(len(images), device=images.device)
    view = copy.view(*copy.shape[:2], down, patch, across, patch)
    return view, (rows, slice(None), token // across, slice(None), token % across)


@dataclass(frozen=True)
class PatchNoise:
    """Gaussian noise of variance sigma2 on one patch of a grid (V section 5); patch 0 is top left, then across.

    With `relative`, the standard deviation is that many times the patch's own root mean square.
    """

    patch: int
    sigma2: float = 1.0
    relative: bool = False
    field: str | None = "pixel_values"

    def __post_init__(self) -> None:
        _check_patch(self.patch)
        check_sigma2(self.sigma2)

    def positions(self, inputs: Inputs) -> Tensor:
        images = field(inputs, self.field)
        down, across = _grid(images, self.patch)
        return torch.ones(len(images), down * across, dtype=torch.bool, device=images.device)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        images = field(inputs, self.field)
        view, place = _cut(images, self.patch, noise.token)
        clean = view[place]
        step = noise.normal(*clean.shape[1:]).to(images) * check_sigma2(self.sigma2)
        if self.relative:
            step = step * root_mean_square(clean, (1, 2, 3))
        view[place] = clean + step
        return model(replace(inputs, self.field, view.view(images.shape)))


@dataclass(frozen=True)
class PatchReplace:
    """One patch exchanged: for the patch at the same place of an image drawn from `source`, or, without a source,
    for Gaussian noise of variance sigma2 (V Def. 4.1 with the patch as the token)."""

    replaces = True  # at a variance of zero it still changes the image

    patch: int
    source: Tensor | None = None
    sigma2: float = 1.0
    field: str | None = "pixel_values"

    def __post_init__(self) -> None:
        _check_patch(self.patch)
        check_sigma2(self.sigma2)
        if self.source is not None and (not isinstance(self.source, Tensor) or self.source.shape[:1] in ((), (0,))):
            shaped = f"a tensor of {tuple(self.source.shape)}" if isinstance(self.source, Tensor) else repr(self.source)
            raise InputError(f"the source of patches is a tensor of images, or None for noise, got {shaped}")

    def positions(self, inputs: Inputs) -> Tensor:
        images = field(inputs, self.field)
        down, across = _grid(images, self.patch)
        if self.source is not None and self.source.shape[1:] != images.shape[1:]:
            raise InputError(
                f"patches come from images of the same shape, got a source of {tuple(self.source.shape[1:])} "
                f"for images of {tuple(images.shape[1:])}"
            )
        return torch.ones(len(images), down * across, dtype=torch.bool, device=images.device)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        images = field(inputs, self.field)
        view, place = _cut(images, self.patch, noise.token)
        if self.source is None:
            channels = images.shape[1]
            fresh = noise.normal(channels, self.patch, self.patch) * check_sigma2(self.sigma2)
        else:
            drawn = noise.integers(len(self.source)).to(self.source.device)
            other, there = _cut(self.source[drawn], self.patch, noise.token)
            fresh = other[there]
        view[place] = fresh.to(images)
        return model(replace(inputs, self.field, view.view(images.shape)))


@dataclass(frozen=True)
class InputNoise:
    """Gaussian noise of variance sigma2 on the whole input at once (V A.2): one token, number 0."""

    sigma2: float = 1.0
    field: str | None = "pixel_values"

    def __post_init__(self) -> None:
        check_sigma2(self.sigma2)

    def positions(self, inputs: Inputs) -> Tensor:
        values = field(inputs, self.field)
        if not values.is_floating_point():
            raise InputError(f"InputNoise takes inputs of floats, got {values.dtype}")
        return torch.ones(len(values), 1, dtype=torch.bool, device=values.device)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        values = field(inputs, self.field)
        step = noise.normal(*values.shape[1:]).to(values) * check_sigma2(self.sigma2)
        return model(replace(inputs, self.field, values + step))
