"""EfficientNet-Lite0, a convolutional network for photographs of 224 pixels.

Tan & Le (2019, EfficientNet), in the form without squeeze and excitation and with ReLU6 that its authors released for
small devices. It stands in for V's ConvNeXt (section 5, ImageNet) where that is not to be had: its weights are in a
public package, and `teeter.integrations.efficientnet_lite0` reads them. 4,652,008 parameters. Dropout and stochastic
depth, which only matter while it is trained, are left out, and its BatchNorms forget as torch's do.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.sizes import check_images, check_sizes

__all__ = ["EfficientNetLite", "InvertedBottleneck"]

# For each stage: blocks, kernel, stride of the first block, how much wider blocks are inside, channels it puts out.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class Convolved(nn.Module):
    """A convolution, a BatchNorm and, unless it is the last of a block, ReLU6.

    Images are padded so that n pixels become ceil(n / stride), the odd zero below and to the right.
    """

    def __init__(
        self, inside: int, outside: int, kernel: int = 1, stride: int = 1, groups: int = 1, last: bool = False
    ):
        super().__init__()
        self.kernel, self.stride, self.last = kernel, stride, last
        self.convolution = nn.Conv2d(inside, outside, kernel, stride=stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outside, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        sides = []
        for size in (x.shape[3], x.shape[2]):
            lacking = max((-(-size // self.stride) - 1) * self.stride + self.kernel - size, 0)
            sides += [lacking // 2, lacking - lacking // 2]
        x = self.norm(self.convolution(F.pad(x, sides) if any(sides) else x))
        return x if self.last else F.relu6(x)


class InvertedBottleneck(nn.Module):
    """Wider, then each channel by itself, then narrow again; plus the input, where shapes allow."""

    def __init__(self, inside: int, outside: int, *, kernel: int, stride: int, wider: int) -> None:
        super().__init__()
        width = inside * wider
        self.adds = stride == 1 and inside == outside
        self.expand = Convolved(inside, width) if wider > 1 else nn.Identity()
        self.depthwise = Convolved(width, width, kernel, stride, groups=width)
        self.project = Convolved(width, outside, last=True)

    def forward(self, x: Tensor) -> Tensor:
        answer = self.project(self.depthwise(self.expand(x)))
        return answer + x if self.adds else answer


class EfficientNetLite(nn.Module):
    """A stem, stages of inverted bottlenecks, a last 1 x 1 convolution (`features`), the mean over places, a linear
    head. `stages` are (blocks, kernel, stride, wider, channels) each, `dim` the channels of the stem, `width` those of
    the features.

    >>> sum(weight.numel() for weight in EfficientNetLite().parameters())
    4652008
    """

    def __init__(
        self,
        *,
        channels: int = 3,
        classes: int = 1000,
        dim: int = 32,
        width: int = 1280,
        stages: Sequence[tuple[int, int, int, int, int]] = STAGES,
    ) -> None:
        super().__init__()
        check_sizes(channels=channels, classes=classes, dim=dim, width=width, stages=len(stages))
        self.channels = channels
        self.stem = Convolved(channels, dim, 3, stride=2)
        self.blocks, inside = nn.Sequential(), dim
        for stage in stages:
            if len(stage) != 5:
                raise InputError(f"a stage is (blocks, kernel, stride, wider, channels), got {stage}")
            number, kernel, stride, wider, outside = stage
            check_sizes(blocks=number, kernel=kernel, stride=stride, wider=wider, channels=outside)
            for i in range(number):
                step = 1 if i else stride
                self.blocks.append(InvertedBottleneck(inside, outside, kernel=kernel, stride=step, wider=wider))
                inside = outside
        self.last, self.head = Convolved(inside, width), nn.Linear(width, classes)

    def features(self, images: Tensor) -> Tensor:
        """(batch, places, width): what the head takes the mean of."""
        check_images(images, self.channels)
        return self.last(self.blocks(self.stem(images))).flatten(2).transpose(1, 2)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images).mean(1))
