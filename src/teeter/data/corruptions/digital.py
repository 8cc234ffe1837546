"""Corruptions of a digital kind: elastic transforms, large pixels, JPEG."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from torch import Tensor

from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.linear import gaussian_matrix, mirrored, on_grid, reflected, sampled, to_bytes
from teeter.data.pictures import pillow

__all__ = ["elastic_transform", "jpeg_compression", "pixelate"]


def elastic_transform(images: Tensor, constants: tuple[float, float, float], draws: Draws) -> Tensor:
    """A random affine map, then a smooth random displacement of every pixel.

    The affine map takes three corners of a square around the middle to places up to `reach` away from them. The
    displacement is `amount` times Gaussian-smoothed uniform noise from -1 to 1. All three are in parts of the side.
    """
    amount, sigma, reach = constants
    side = images.shape[-1]
    row, column = torch.meshgrid(*(torch.arange(side, dtype=torch.float64),) * 2, indexing="ij")

    middle, arm = side // 2, side // 3
    corners = torch.tensor([[1, 1], [1, -1], [-1, -1]], dtype=torch.float64) * arm + middle  # (x, y)
    moved = corners + reach * side * (2 * draws.uniform(0, 3, 2) - 1)
    ones = torch.ones(len(images), 3, 1, dtype=torch.float64)
    back = torch.linalg.solve(torch.cat([moved, ones], -1), corners.expand(len(images), 3, 2))  # (images, 3, 2)
    across, down, constant = (part.view(-1, 2, 1, 1) for part in back.unbind(1))
    place = across * column + down * row + constant
    turned = sampled(images.double(), place[:, 1], place[:, 0], mirrored)
    if not amount:
        return to_bytes(turned)

    smooth = gaussian_matrix(sigma * side, side, bits=16, truncate=3, border=reflected)
    shift = amount * side * (smooth @ on_grid(2 * draws.uniform(1, 2, side, side) - 1, 16) @ smooth.T)
    return to_bytes(sampled(turned, row + shift[:, 1], column + shift[:, 0], reflected))


def pixelate(images: Tensor, constants: float, draws: Draws) -> Tensor:
    """Shrink with a box filter and enlarge again, as pillow does: rows, then columns, each rounded to bytes."""
    side = images.shape[-1]
    small = int(side * constants)
    values = images.double()
    for before, after in ((side, small), (small, side)):
        box = _box(before, after)
        values = torch.floor(values @ box.T + 0.5)
        values = torch.floor(box @ values + 0.5)
    return to_bytes(values)


@cache
def _box(before: int, after: int) -> Tensor:
    """The (after, before) matrix of pillow's box filter: whole pixels whose middle lies within the box, evenly."""
    scale = before / after
    half = max(scale, 1) / 2
    middle = (np.arange(after)[:, None] + 0.5) * scale
    offset = np.arange(before) + 0.5 - middle
    inside = ((offset > -half) & (offset <= half)).astype(float)
    return on_grid(torch.from_numpy(inside / inside.sum(-1, keepdims=True)), 22)  # pillow's own precision


def jpeg_compression(images: Tensor, constants: int, draws: Draws) -> Tensor:
    """Through JPEG and back, at a quality from 1 to 95, by pillow and the libjpeg it was built with."""
    image, _ = pillow("JPEG")

    def through(pixels: np.ndarray) -> np.ndarray:
        back = np.empty_like(pixels)
        for place, each in enumerate(pixels):
            file = io.BytesIO()
            image.fromarray(each).save(file, "JPEG", quality=constants)
            with image.open(file, formats=["JPEG"]) as read:
                back[place] = read
        return back

    threads = torch.get_num_threads()
    parts = np.array_split(images.movedim(1, -1).contiguous().numpy(), threads)
    with ThreadPoolExecutor(threads) as pool:  # libjpeg runs outside Python's lock
        back = np.concatenate(list(pool.map(through, parts)))
    return torch.from_numpy(back).movedim(-1, 1).contiguous()
