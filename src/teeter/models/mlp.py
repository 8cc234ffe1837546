"""Multilayer perceptrons on the pixels of an image, laid out in a row.

They serve V section 5 (Fashion-MNIST: 512 and 128 hidden units, with LeakyReLU or sigmoid) and A.1 (MNIST, digits below
5 against the others: 100 hidden units, with LeakyReLU); widths from appendix D. V does not give the slope of its
LeakyReLU; torch's 0.01 is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from teeter.errors import InputError
from teeter.models.sizes import check_sizes

__all__ = ["mlp"]

_ACTIVATIONS = {"leaky-relu": nn.LeakyReLU, "sigmoid": nn.Sigmoid}


def mlp(
    *,
    image_size: int = 28,
    channels: int = 1,
    classes: int = 10,
    widths: Sequence[int] = (512, 128),
    activation: str = "leaky-relu",
) -> nn.Sequential:
    """An MLP with hidden layers of these widths and an activation after each.

    >>> sum(weight.numel() for weight in mlp().parameters())
    468874
    """
    check_sizes(image_size=image_size, channels=channels, classes=classes)
    for width in widths:
        check_sizes(widths=width)
    if activation not in _ACTIVATIONS:
        raise InputError(f"activation is one of {', '.join(_ACTIVATIONS)}, got {activation!r}")
    layers: list[nn.Module] = [nn.Flatten()]
    inside = channels * image_size**2
    for width in widths:
        layers += [nn.Linear(inside, width), _ACTIVATIONS[activation]()]
        inside = width
    return nn.Sequential(*layers, nn.Linear(inside, classes))
