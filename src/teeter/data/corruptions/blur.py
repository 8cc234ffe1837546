"""Corruptions by blur."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.linear import gaussian_matrix, mirrored, to_bytes, weights, zoom_matrix

__all__ = ["defocus_blur", "gaussian_blur", "glass_blur", "motion_blur", "swept", "zoom_blur"]


def gaussian_blur(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """A Gaussian filter of standard deviation sigma, cut off at 4 sigma; pixels at the border go on beyond it."""
    blur = gaussian_matrix(constants, images.shape[-1], bits=22)
    return to_bytes(blur @ images.double() @ blur.T)


def defocus_blur(images: Tensor, constants: tuple[float, float], draws: Draws) -> Tensor:
    """The mean over a disk whose edge is softened by a 3 x 3 Gaussian; the border mirrors the image."""
    return to_bytes(images.flatten(2).double() @ _disk(*constants, images.shape[-1])).view(images.shape)


@cache
def _disk(radius: float, softness: float, side: int) -> Tensor:
    """From every pixel to every pixel, (side^2, side^2)."""
    reach = np.arange(-8, 9)
    disk = (reach[:, None] ** 2 + reach**2 <= radius**2).astype(float)
    edge = np.exp(-0.5 * (np.arange(-1, 2) / softness) ** 2)
    padded = np.pad(disk, 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    soft = np.einsum("ijkl,k,l->ij", windows, edge, edge)
    matrix = np.zeros((side, side, side, side))
    row, column = np.mgrid[:side, :side]
    for i, j in np.argwhere(soft):
        place = mirrored(row + reach[i], side), mirrored(column + reach[j], side)
        np.add.at(matrix, (row, column, *place), soft[i, j])
    return weights(matrix.reshape(side**2, -1), bits=32).T.contiguous()


def zoom_blur(images: Tensor, constants: tuple[float, float], draws: Draws) -> Tensor:
    """The mean of the image and its magnifications by 1, 1 + step, ... (1 twice, as published)."""
    return to_bytes(images.flatten(2).double() @ _zooms(*constants, images.shape[-1])).view(images.shape)


@cache
def _zooms(end: float, step: float, side: int) -> Tensor:
    factors = np.arange(1, end, step)  # its rounding includes the end itself, as in the published data
    matrix = np.eye(side**2)
    for factor in factors:
        one = zoom_matrix(factor, side, bits=40).numpy()
        matrix += np.kron(one, one)
    return weights(matrix, bits=32).T.contiguous()


def motion_blur(images: Tensor, constants: tuple[int, float], draws: Draws) -> Tensor:
    """A camera that moves: each image in its own direction, up to 45 degrees off the horizontal."""
    return swept(images, *constants, draws.uniform(0) * 90 - 45)


def swept(images: Tensor, radius: int, sigma: float, angle: Tensor) -> Tensor:
    """The weighted mean of 2 radius + 1 pixels along a line at `angle` degrees, one for each image.

    It begins at the pixel itself with weights exp(-i^2 / 2 sigma^2), each place rounded to a whole pixel; pixels at the
    border go on beyond it. It is ImageMagick's motion blur, and is rounded to the nearest byte as there.
    """
    side = images.shape[-1]
    step = np.arange(2 * radius + 1)
    kernel = weights(np.exp(-0.5 * (step / sigma) ** 2), bits=32).tolist()
    turn = torch.deg2rad(angle)
    rise, run = torch.sin(turn), torch.cos(turn)
    place = torch.arange(side)
    flat = images.flatten(2).double()
    total = torch.zeros_like(flat)
    for i, weight in enumerate(kernel):
        if weight:
            rows = (place + torch.ceil(i * rise - 0.5).long().unsqueeze(-1)).clamp(0, side - 1)
            columns = (place + torch.ceil(i * run - 0.5).long().unsqueeze(-1)).clamp(0, side - 1)
            index = (rows.unsqueeze(-1) * side + columns.unsqueeze(-2)).flatten(1).unsqueeze(1)
            total += weight * flat.gather(-1, index.expand_as(flat))
    return to_bytes(total + 0.5).view(images.shape)


def glass_blur(images: Tensor, constants: tuple[float, int, int], draws: Draws) -> Tensor:
    """Blur, move each pixel to one of its neighbours' places, blur again.

    The published code goes through the pixels from the bottom right and exchanges each with one drawn from those up to
    `reach` above and to the left of it. On colour images, though, its exchange only copies: both sides of the
    assignment are views of one array, so the neighbour keeps its colour. CIFAR-10-C was made so, and so it is here. A
    copy from what the pass has not yet reached is a gather: a pass takes one step for all pixels. (A reach of 1 draws
    offsets of -1 or 0 alone; a larger one would also look ahead, and needs the passes one by one.)
    """
    sigma, reach, passes = constants
    assert reach == 1, "32-pixel images have a reach of 1 at every severity"
    side = images.shape[-1]
    moved = gaussian_blur(images, sigma, draws).flatten(2)
    inner = torch.zeros(side, side, dtype=torch.bool)
    inner[reach + 1 :, reach + 1 :] = True  # where the published loops go
    place = torch.arange(side**2)
    for turn in range(passes):
        up, left = draws.integers(2, turn, 2, side**2).unbind(1)
        source = torch.where(inner.flatten(), place - side * up - left, place)
        moved = moved.gather(-1, source.unsqueeze(1).expand_as(moved))
    return gaussian_blur(moved.view(images.shape), sigma, draws)
