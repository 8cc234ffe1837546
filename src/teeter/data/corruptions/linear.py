"""Linear maps of pixels: matrices, borders and sampling, in sums that are exact.

Weights are rounded to multiples of 2^-b, with b small enough that pixels times weights add up in float64 without any
rounding. The sums are then the same in whatever order they are taken: no batch size, number of threads or library of
matrix products can move a pixel. The rounding itself is far below a pixel's own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "Border",
    "gaussian_matrix",
    "mirrored",
    "nearest",
    "on_grid",
    "reflected",
    "sampled",
    "to_bytes",
    "weights",
    "zoom_matrix",
]

Border = Callable[[np.ndarray, int], np.ndarray]  # which pixel stands for one at a place beyond the image


def to_bytes(values: Tensor) -> Tensor:
    """Values from 0 to 255 as bytes, cut off to whole ones as numpy's uint8 does; whatever is beyond is clipped.

    >>> to_bytes(torch.tensor([-3.0, 7.9, 8 - 1e-12, 300.0], dtype=torch.float64)).tolist()
    [0, 7, 8, 255]
    """
    # The small addend keeps a value that is whole but for rounding.
    return (values + 1e-6).clamp_(0, 255).to(torch.uint8)


def on_grid(values: Tensor, bits: int) -> Tensor:
    """Values rounded to multiples of 2^-bits."""
    return torch.round(values * 2.0**bits) * 2.0**-bits


def weights(rows: np.ndarray, bits: int) -> Tensor:
    """Rows of weights on the grid of 2^-bits, each with a sum of exactly 1: what is lost goes to its largest."""
    exact = on_grid(torch.from_numpy(rows / rows.sum(-1, keepdims=True)), bits)
    largest = exact.argmax(-1, keepdim=True)
    return exact.scatter_add(-1, largest, 1 - exact.sum(-1, keepdim=True))


def nearest(index: np.ndarray, side: int) -> np.ndarray:
    """The border a | a b c | c."""
    return index.clip(0, side - 1)


def reflected(index: np.ndarray, side: int) -> np.ndarray:
    """The border b a | a b c | c b (scipy's reflect)."""
    folded = index % (2 * side)
    return np.minimum(folded, 2 * side - 1 - folded)


def mirrored(index: np.ndarray, side: int) -> np.ndarray:
    """The border c b | a b c | b a (OpenCV's default, reflect 101)."""
    folded = index % (2 * side - 2)
    return np.minimum(folded, 2 * side - 2 - folded)


def gaussian_matrix(sigma: float, side: int, bits: int, truncate: float = 4, border: Border | None = None) -> Tensor:
    """The (side, side) matrix of a Gaussian filter along one axis, cut off at `truncate` standard deviations.

    >>> gaussian_matrix(0.5, 3, bits=10).sum(-1)
    tensor([1., 1., 1.], dtype=torch.float64)
    """
    radius = int(truncate * sigma + 0.5)
    reach = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * (reach / sigma) ** 2) if radius else np.ones(1)
    matrix = np.zeros((side, side))
    place = np.arange(side)
    for shift, weight in zip(reach, kernel, strict=True):
        np.add.at(matrix, (place, (border or nearest)(place + shift, side)), weight)
    return weights(matrix, bits)


def zoom_matrix(factor: float, side: int, bits: int) -> Tensor:
    """The (side, side) matrix that magnifies the middle of one axis by `factor`, with linear interpolation.

    The middle ceil(side / factor) pixels are stretched from end to end over round(that * factor), of which the middle
    `side` are kept.
    """
    kept = int(np.ceil(side / factor))
    long = round(kept * factor)
    at = (side - kept) // 2 + (np.arange(side) + (long - side) // 2) * ((kept - 1) / (long - 1))
    low = np.minimum(np.floor(at).astype(int), side - 2)
    matrix = np.zeros((side, side))
    matrix[np.arange(side), low] = 1 - (at - low)
    matrix[np.arange(side), low + 1] = at - low
    return weights(matrix, bits)


def sampled(images: Tensor, rows: Tensor, columns: Tensor, border: Border) -> Tensor:
    """The images at real-valued places, by linear interpolation: rows and columns of shape (images, height, width).

    >>> image = torch.tensor([[[[0.0, 10.0], [20.0, 30.0]]]], dtype=torch.float64)
    >>> at = torch.full((1, 1, 1), 0.5, dtype=torch.float64)
    >>> float(sampled(image, at, at / 2, reflected))
    12.5
    """
    height, width = images.shape[-2:]
    flat = images.flatten(2)
    top, left = rows.floor(), columns.floor()
    down, across = (rows - top).unsqueeze(1), (columns - left).unsqueeze(1)
    index = [
        [torch.from_numpy(border(part.long().numpy() + step, size)) for step in (0, 1)]
        for part, size in ((top, height), (left, width))
    ]

    def tap(i: int, j: int) -> Tensor:
        place = (index[0][i] * width + index[1][j]).flatten(1).unsqueeze(1)
        return flat.gather(-1, place.expand(-1, flat.shape[1], -1)).view(*images.shape[:2], *rows.shape[1:])

    upper = tap(0, 0) * (1 - across) + tap(0, 1) * across
    lower = tap(1, 0) * (1 - across) + tap(1, 1) * across
    return upper * (1 - down) + lower * down
