"""ConvMixer: patches like a ViT's, mixed by convolutions in the place of attention.

Trockman & Kolter (2022, Patches Are All You Need?). It serves V section 5 (CIFAR-10, Fig. 4), where it tells apart what
comes of patches from what comes of attention. The defaults are V's: dimension 128, 6 layers, kernel 3 (appendix D), and
patch 4 as for every CIFAR-10 model: 117,642 parameters, a count that no other patch size has. In V's released script
the ConvMixer shares its dimension, layers and patch with the ViTs' options, whose defaults are not those of the text.
"""

from __future__ import annotations

from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.sizes import check_images, check_sizes, patches_across

__all__ = ["ConvMixer"]


def _convolved(convolution: nn.Conv2d) -> nn.Sequential:
    return nn.Sequential(convolution, nn.GELU(), nn.BatchNorm2d(convolution.out_channels))


class Mixing(nn.Module):
    """Across places (a convolution for each channel, around a residual), then across channels at each place."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.places = _convolved(nn.Conv2d(dim, dim, kernel, groups=dim, padding=kernel // 2))
        self.channels = _convolved(nn.Conv2d(dim, dim, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.channels(x + self.places(x))


class ConvMixer(nn.Module):
    """Patches, layers of mixing, the mean over places, a linear head; every convolution before a GELU and a BatchNorm.

    The image may be of any size that the patch divides.

    >>> sum(weight.numel() for weight in ConvMixer().parameters())
    117642
    """

    def __init__(
        self,
        *,
        channels: int = 3,
        classes: int = 10,
        patch: int = 4,
        dim: int = 128,
        layers: int = 6,
        kernel: int = 3,
    ) -> None:
        super().__init__()
        check_sizes(channels=channels, classes=classes, patch=patch, dim=dim, layers=layers, kernel=kernel)
        if kernel % 2 == 0:
            raise InputError(f"only a kernel of odd size keeps the grid of patches as it is, got kernel = {kernel}")
        self.channels, self.patch = channels, patch
        self.embed = _convolved(nn.Conv2d(channels, dim, patch, stride=patch))
        self.layers = nn.Sequential(*(Mixing(dim, kernel) for _ in range(layers)))
        self.head = nn.Linear(dim, classes)

    def forward(self, images: Tensor) -> Tensor:
        check_images(images, self.channels)
        for side in images.shape[2:]:
            patches_across(side, self.patch)  # a convolution would leave out the rest in silence
        return self.head(self.layers(self.embed(images)).mean((2, 3)))
