"""ResNet-18 for images of 32 pixels.

He, Zhang, Ren & Sun (2016, Deep Residual Learning), in the form that V names in appendix D (kuangliu/pytorch-cifar):
the stem is one 3 x 3 convolution with stride 1 and no pool, so that a 32-pixel image keeps its size until the second
stage. It serves V section 5 (CIFAR-10, Fig. 4), section 7.1 (Fig. 9), A.2 (Table 4) and A.3 (SVHN): 11,173,962
parameters, which tells the blocks of He et al. from pre-activation ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from teeter.models.sizes import check_images, check_sizes

__all__ = ["BasicBlock", "ResNet"]


def _convolved(inside: int, outside: int, kernel: int, stride: int) -> nn.Sequential:
    """A convolution that keeps the size (or divides it by the stride), and a BatchNorm."""
    convolution = nn.Conv2d(inside, outside, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside))


class BasicBlock(nn.Module):
    """relu(two 3 x 3 convolutions + shortcut): the input itself, or a 1 x 1 convolution of it where shapes change."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        changes = stride != 1 or inside != outside
        self.shortcut = _convolved(inside, outside, 1, stride) if changes else nn.Identity()
        self.first = _convolved(inside, outside, 3, stride)
        self.second = _convolved(outside, outside, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return (self.second(self.first(x).relu()) + self.shortcut(x)).relu()


class ResNet(nn.Module):
    """A stem, stages of basic blocks (each after the first halves the image and doubles the channels), the mean over
    places, a linear head. `blocks` says how many blocks each stage has, `dim` how many channels the first one has.

    >>> sum(weight.numel() for weight in ResNet().parameters())
    11173962
    """

    def __init__(
        self,
        *,
        channels: int = 3,
        classes: int = 10,
        blocks: Sequence[int] = (2, 2, 2, 2),
        dim: int = 64,
    ) -> None:
        super().__init__()
        check_sizes(channels=channels, classes=classes, dim=dim, stages=len(blocks))
        for number in blocks:
            check_sizes(blocks=number)
        self.channels = channels
        self.stem = _convolved(channels, dim, 3, 1)
        self.stages = nn.Sequential()
        inside = dim
        for stage, number in enumerate(blocks):
            outside = dim * 2**stage
            first = BasicBlock(inside, outside, stride=2 if stage else 1)
            self.stages.append(nn.Sequential(first, *(BasicBlock(outside, outside, 1) for _ in range(number - 1))))
            inside = outside
        self.head = nn.Linear(inside, classes)

    def forward(self, images: Tensor) -> Tensor:
        check_images(images, self.channels)
        return self.head(self.stages(self.stem(images).relu()).mean((2, 3)))
