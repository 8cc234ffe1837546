"""The CNN of V's Fashion-MNIST comparison (section 5, appendix D): three hidden layers.

V's text gives two convolutions with 32 channels and kernel 3, a MaxPool of 2 with stride 2, "two fully connected layers
with 128 hidden units", and LeakyReLU. It says neither how the convolutions are padded (not at all is taken, torch's
default), nor the slope (0.01, likewise), nor whether activations stand between the two convolutions and after both (one
follows every hidden layer here). "Two fully connected layers" are read as 128 hidden units and the head, which makes
the three hidden layers of section 5.
"""

from __future__ import annotations

from torch import nn

from teeter.errors import InputError
from teeter.models.sizes import check_sizes

__all__ = ["cnn"]


def cnn(
    *,
    image_size: int = 28,
    channels: int = 1,
    classes: int = 10,
    dim: int = 32,
    width: int = 128,
) -> nn.Sequential:
    """Two convolutions of `dim` channels, a pool, a hidden layer of `width` units, a head.

    >>> sum(weight.numel() for weight in cnn().parameters())
    600810
    """
    check_sizes(image_size=image_size, channels=channels, classes=classes, dim=dim, width=width)
    if image_size < 6:
        raise InputError(f"two 3 x 3 convolutions and a pool need images of at least 6 pixels a side, got {image_size}")
    side = (image_size - 4) // 2
    return nn.Sequential(
        nn.Conv2d(channels, dim, 3),
        nn.LeakyReLU(),
        nn.Conv2d(dim, dim, 3),
        nn.LeakyReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(dim * side * side, width),
        nn.LeakyReLU(),
        nn.Linear(width, classes),
    )
