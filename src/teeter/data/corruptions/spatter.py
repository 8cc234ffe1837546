"""Spatter: drops of water or mud on the lens.

The published definition is a chain of OpenCV's filters. They are written out here for a batch of images in whole
numbers: what OpenCV computes on bytes comes out the same to the bit.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.linear import Border, gaussian_matrix, mirrored, nearest, on_grid, to_bytes

__all__ = ["canny", "chamfer", "equalised", "spatter"]

_WATER, _MUD = (175, 238, 238), (63, 42, 20)  # pale turquoise, brown
_DISTANCE = {(0, 1): 65536, (1, 1): 91750, (1, 2): 143976}  # 1, 1.4 and 2.1969 in units of 2^-16
_FAR = 1 << 30


def spatter(images: Tensor, constants: tuple[float, ...], draws: Draws) -> Tensor:
    """Smoothed Gaussian noise above a threshold is liquid. Water adds light to the image, mud hides it."""
    mean, deviation, smoothing, threshold, last, mud = constants
    side = images.shape[-1]
    smooth = gaussian_matrix(smoothing, side, bits=16)
    liquid = smooth @ on_grid(mean + deviation * draws.normal(0, side, side), 16) @ smooth.T
    if mud:
        edge = gaussian_matrix(last, side, bits=22)
        cover = edge @ (liquid > threshold).double() @ edge.T
        cover = torch.where(cover < 0.8, 0, cover).unsqueeze(1)
        return to_bytes(images * (1 - cover) + _colour(_MUD) * cover)
    # Bytes that begin again at 0 after 255: where the liquid is deepest the published drops have holes.
    depth = torch.where(liquid < threshold, 0, (liquid * 255).int() % 256)
    light = (depth * _relief(depth)).double()
    light *= last / light.amax((1, 2), keepdim=True).clamp(min=1)
    return to_bytes(images + light.unsqueeze(1) * _colour(_WATER))


def _colour(rgb: tuple[int, int, int]) -> Tensor:
    return torch.tensor(rgb, dtype=torch.float64).view(3, 1, 1)


def _relief(depth: Tensor) -> Tensor:
    """The light on drops: the distance from their rims, spread over all bytes, lit from one side, blurred."""
    far = chamfer(canny(depth)).clamp(max=20 * 65536)
    shape = equalised(_box_sum(far) // (9 * 65536))
    around = _framed(shape, mirrored)
    side = depth.shape[-1]
    lamp = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))
    lit = sum(lamp[i][j] * around[:, i : i + side, j : j + side] for i in range(3) for j in range(3))
    return (2 * _box_sum(torch.as_tensor(lit).clamp(0, 255)) + 9) // 18  # the mean of nine, to the nearest


def _framed(values: Tensor, border: Border) -> Tensor:
    """One pixel more on all sides."""
    side = values.shape[-1]
    place = torch.from_numpy(border(np.arange(-1, side + 1), side))
    return values[:, place][:, :, place]


def _box_sum(values: Tensor) -> Tensor:
    """The sum over each pixel and its eight neighbours; the border mirrors the image."""
    side = values.shape[-1]
    around = _framed(values, mirrored)
    rows = around[:, :side] + around[:, 1 : side + 1] + around[:, 2:]
    return rows[..., :side] + rows[..., 1 : side + 1] + rows[..., 2:]


def canny(grey: Tensor, low: int = 50, high: int = 150) -> Tensor:
    """Canny's edges of images of shape (images, height, width), True at an edge.

    Sobel's 3 x 3 gradients, their sizes |gx| + |gy|; what is no smaller than its neighbours along the gradient, in the
    nearest of four directions; of that, all above `high` and whatever above `low` is connected to it.
    """
    around = _framed(grey, nearest)
    smooth = around[:, :-2] + 2 * around[:, 1:-1] + around[:, 2:]
    gx = smooth[..., 2:] - smooth[..., :-2]
    smooth = around[..., :-2] + 2 * around[..., 1:-1] + around[..., 2:]
    gy = smooth[:, 2:] - smooth[:, :-2]
    size = gx.abs() + gy.abs()
    beyond = functional.pad(size, (1, 1, 1, 1))

    def at(down: int, across: int) -> Tensor:
        return beyond[:, 1 + down : beyond.shape[1] - 1 + down, 1 + across : beyond.shape[2] - 1 + across]

    flat = gx.abs() * 13573  # tan 22.5 degrees, in units of 2^-15
    tall = gy.abs() << 15
    horizontal, vertical = tall < flat, tall > flat + (gx.abs() << 16)
    falling = (gx ^ gy) < 0
    peak = torch.where(falling, (size > at(-1, 1)) & (size > at(1, -1)), (size > at(-1, -1)) & (size > at(1, 1)))
    peak = torch.where(vertical, (size > at(-1, 0)) & (size >= at(1, 0)), peak)
    peak = torch.where(horizontal, (size > at(0, -1)) & (size >= at(0, 1)), peak)
    weak = peak & (size > low)
    edges = weak & (size > high)
    while True:
        grown = functional.max_pool2d(edges.unsqueeze(1).float(), 3, stride=1, padding=1)[:, 0].bool() & weak
        if torch.equal(grown, edges):
            return edges
        edges = grown


def chamfer(edges: Tensor) -> Tensor:
    """The length of the shortest path to an edge in steps of 1, 1.4 (diagonal) and 2.1969 (a knight's), times 2^16."""
    distance = torch.where(edges, 0, _FAR).int()
    steps = {
        (i * down, j * across, length)
        for (a, b), length in _DISTANCE.items()
        for i, j in ((a, b), (b, a))
        for down in (-1, 1)
        for across in (-1, 1)
    }
    while True:
        around = functional.pad(distance, (2, 2, 2, 2), value=_FAR)
        nearer = distance
        for down, across, length in steps:
            seen = around[:, 2 + down : around.shape[1] - 2 + down, 2 + across : around.shape[2] - 2 + across]
            nearer = torch.minimum(nearer, seen + length)
        if torch.equal(nearer, distance):
            return distance
        distance = nearer


def equalised(values: Tensor) -> Tensor:
    """Small whole numbers spread evenly over 0 .. 255, by their counts; an image of one value stays as it is."""
    most = int(values.max()) + 1
    counts = torch.stack([(values == level).sum((1, 2)) for level in range(most)], -1)  # (images, levels)
    total = values.shape[1] * values.shape[2]
    lowest = (counts > 0).int().argmax(-1, keepdim=True)
    first = counts.gather(-1, lowest)
    scale = 255 / (total - first).clamp(min=1)
    spread = torch.round((counts.cumsum(-1) - first).clamp(min=0) * scale).long()
    spread = torch.where(first == total, torch.arange(most), spread)
    return spread.gather(-1, values.flatten(1).long()).view(values.shape)
