"""Random crops and flips of whole batches, on the device and without a loop over images.

What happens to an image is a pure function of (seed, epoch, its index in the data set), so a batch may hold any images
in any order.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from teeter import counter
from teeter.errors import InputError

__all__ = ["crop_and_flip"]


def crop_and_flip(
    images: Tensor, index: Tensor, *, seed: int, epoch: int, padding: int = 4, flip: bool = True
) -> Tensor:
    """A batch (images, channels, height, width) of any type, each image padded by `padding` zeros on every side,
    cropped back to its size at a random place, and with `flip` mirrored left to right half of the time.

    `index` holds each image's number in the data set. Zeros are black before standardising and the mean after it.

    >>> images = torch.arange(1, 10).view(1, 1, 3, 3)
    >>> crop_and_flip(images, torch.tensor([0]), seed=0, epoch=0, padding=1)
    tensor([[[[0, 0, 0],
              [3, 2, 1],
              [6, 5, 4]]]])
    """
    if images.ndim != 4 or index.shape != images.shape[:1]:
        raise InputError(
            f"images of shape (images, channels, height, width) and the index of each are needed, "
            f"got {tuple(images.shape)} and {tuple(index.shape)}"
        )
    if padding < 0:
        raise InputError(f"padding is 0 or more, got {padding}")
    place = images.device
    count, channels, height, width = images.shape
    index = index.to(place)
    top = counter.integers(2 * padding + 1, seed, epoch, 0, index)
    left = counter.integers(2 * padding + 1, seed, epoch, 1, index)
    mirrored = (counter.bits(seed, epoch, 2, index) < 0) & flip

    rows = top[:, None] + torch.arange(height, device=place)
    across = torch.arange(width, device=place)
    columns = left[:, None] + torch.where(mirrored[:, None], across.flip(0), across)
    each, channel = torch.arange(count, device=place), torch.arange(channels, device=place)
    padded = pad(images, (padding,) * 4)
    return padded[each[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]
