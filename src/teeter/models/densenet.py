"""DenseNet-121 for images of 32 pixels.

Huang, Liu, van der Maaten & Weinberger (2017, Densely Connected Convolutional Networks), in the form that V names in
appendix D (huyvnphan/PyTorch_CIFAR10): the stem has a 3 x 3 convolution with stride 1 in the place of 7 x 7 with stride
2, but keeps its BatchNorm and its pool, so that the dense blocks see 16, 8, 4 and 2 pixels a side. It serves V section
5 (CIFAR-10, Fig. 4) and section 7.1 (Fig. 9): 6,956,426 parameters. Convolutions start from He's normal law and the
head from a bias of 0, as in that form.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.sizes import check_images, check_sizes

__all__ = ["DenseLayer", "DenseNet"]


def _normed(inside: int, outside: int, kernel: int) -> nn.Sequential:
    """BatchNorm, ReLU and a convolution that keeps the size."""
    convolution = nn.Conv2d(inside, outside, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(nn.BatchNorm2d(inside), nn.ReLU(), convolution)


class DenseLayer(nn.Module):
    """The input, and beside it `growth` new channels made of all of it through a bottleneck of 1 x 1."""

    def __init__(self, inside: int, growth: int, bottleneck: int) -> None:
        super().__init__()
        self.narrow = _normed(inside, bottleneck * growth, 1)
        self.grow = _normed(bottleneck * growth, growth, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.grow(self.narrow(x))], 1)


class DenseNet(nn.Module):
    """A stem, dense blocks with a transition between each two (half the channels, half the size), a BatchNorm and ReLU,
    the mean over places, a linear head. `blocks` says how many layers each block has, `dim` how many channels the stem.

    >>> sum(weight.numel() for weight in DenseNet().parameters())
    6956426
    """

    def __init__(
        self,
        *,
        channels: int = 3,
        classes: int = 10,
        blocks: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        dim: int = 64,
        bottleneck: int = 4,
    ) -> None:
        super().__init__()
        check_sizes(channels=channels, classes=classes, growth=growth, dim=dim, bottleneck=bottleneck)
        check_sizes(number_of_blocks=len(blocks))
        self.channels, self.transitions = channels, len(blocks) - 1
        self.stem = nn.Sequential(
            nn.Conv2d(channels, dim, 3, padding=1, bias=False),
            nn.BatchNorm2d(dim),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        self.blocks = nn.Sequential()
        for block, layers in enumerate(blocks):
            check_sizes(blocks=layers)
            if block:
                self.blocks.append(nn.Sequential(_normed(dim, dim // 2, 1), nn.AvgPool2d(2)))
                dim //= 2
            self.blocks.append(
                nn.Sequential(*(DenseLayer(dim + i * growth, growth, bottleneck) for i in range(layers)))
            )
            dim += layers * growth
        self.norm, self.head = nn.BatchNorm2d(dim), nn.Linear(dim, classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        check_images(images, self.channels)
        smallest = 2 ** (self.transitions + 1) - 1  # the stem's pool rounds up, the transitions round down
        if min(images.shape[2:]) < smallest:
            raise InputError(
                f"this DenseNet halves an image {self.transitions + 1} times and needs {smallest} pixels a side, "
                f"got {tuple(images.shape[2:])}"
            )
        return self.head(self.norm(self.blocks(self.stem(images))).relu().mean((2, 3)))
