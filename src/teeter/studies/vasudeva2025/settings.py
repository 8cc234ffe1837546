"""The image data sets of V's experiments, and how it uses each: patches, noise and batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from teeter import data
from teeter.data import LabelledImages
from teeter.studies.vasudeva2025.looks import LEVELS

__all__ = ["NARROW", "SETTINGS", "TINY", "Setting", "enlarged", "read", "scaled"]


@dataclass(frozen=True)
class Setting:
    """A data set as V uses it."""

    read: Callable[[str], LabelledImages]
    patch: int
    sigma2: float
    batch: int = 100
    whole: float | None = None  # the variance of noise on all pixels (A.2)
    levels: tuple[float, ...] = (1.0,)  # times the variance, at the end
    replaced: bool = False  # whether patches are exchanged too, at the end
    weights: bool = False  # whether they are nudged too (7.2)
    along: int = 0  # images on which all kinds of noise are also tried while a model is trained (A.2, A.3); 0: none
    corrupted: bool = False  # whether accuracy is also measured on corrupted test images (7.1)
    size: int = 0  # pixels that an image is enlarged to; 0: as it is
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of models, where they are not V's own


# Of every kind of model one that scikit-learn's digits (8 x 8) can be learned with in seconds.
TINY: dict[str, dict[str, Any]] = {
    "cnn": dict(image_size=8, dim=8, width=32),
    "convmixer": dict(patch=4, dim=32, layers=2),
    "densenet121": dict(blocks=(2, 2), growth=8, dim=16),
    "mlp-leaky-relu": dict(image_size=8, widths=(64, 32)),
    "mlp-sigmoid": dict(image_size=8, widths=(64, 32)),
    "resnet18": dict(blocks=(1, 1), dim=16),
    "vit-simple": dict(image_size=8, patch=4, dim=32, layers=2, heads=2, dim_head=16, width=64),
    "vit-small": dict(image_size=8, patch=4, dim=32, layers=2, heads=2, dim_head=16, width=64),
}
_GRAY = {name: dict(own, channels=1) for name, own in TINY.items()}
# And V's own cut short and narrow, with which CIFAR-10 (32 x 32) can be learned in minutes.
_NARROW_VIT = dict(layers=3, heads=4, dim_head=16, width=128)
NARROW: dict[str, dict[str, Any]] = {
    "convmixer": dict(dim=64, layers=4),
    "densenet121": dict(blocks=(3, 4, 3), growth=8, dim=16),
    "resnet18": dict(blocks=(1, 1, 1), dim=16),
    "vit-simple": _NARROW_VIT,
    "vit-small": _NARROW_VIT,
}
_WHOLE: dict[str, Any] = dict(whole=0.025, levels=LEVELS, weights=True, along=5_000)  # looked at from all sides
_LARGE: dict[str, Any] = dict(sigma2=15.0, levels=LEVELS)  # V's variance for ImageNet
SETTINGS = {
    "mnist": Setting(data.below_5, patch=7, sigma2=1.0, batch=50, levels=(0.25, 1.0, 4.0, 16.0, 64.0), replaced=True),
    "fashion-mnist": Setting(data.fashion_mnist, patch=4, sigma2=5.0, levels=LEVELS),
    "cifar10": Setting(data.cifar10, patch=4, sigma2=1.0, corrupted=True, **_WHOLE),
    "cifar10-small": Setting(
        data.cifar10, patch=4, sigma2=1.0, corrupted=True, sizes=NARROW, **{**_WHOLE, "along": 1_000}
    ),
    "svhn": Setting(data.svhn, patch=4, sigma2=1.0, levels=LEVELS),
    "digits": Setting(data.digits, patch=4, sigma2=1.0, batch=20, sizes=_GRAY, **_WHOLE),
    "imagenet": Setting(data.imagenet, patch=16, **_LARGE),
    "cifar10-224": Setting(
        data.cifar10,
        patch=16,
        size=224,
        sizes={"efficientnet-lite0": dict(classes=10), "vit-simple": dict(image_size=224, patch=16)},
        **_LARGE,
    ),
    "cifar10-96": Setting(
        data.cifar10,
        patch=16,
        size=96,
        sizes={
            "efficientnet-lite0": dict(classes=10),
            "vit-simple": dict(image_size=96, patch=16, layers=3, heads=4, dim_head=16, width=128),
        },
        **_LARGE,
    ),
    "digits-32": Setting(
        data.digits,
        patch=8,
        size=32,
        sizes={
            "efficientnet-lite0": dict(
                channels=1, classes=10, dim=8, width=32, stages=((1, 3, 1, 1, 8), (1, 3, 2, 2, 16))
            ),
            "vit-simple": dict(_GRAY["vit-simple"], image_size=32, patch=8),
        },
        **_LARGE,
    ),
}


@lru_cache(maxsize=4)
def read(name: str, split: str) -> LabelledImages:
    """All images of a set, once."""
    return SETTINGS[name].read(split)


def scaled(images: LabelledImages, device: torch.device) -> tuple[Tensor, Tensor]:
    """Pixels from -1 to 1, and labels."""
    there = images.to(device)
    return there.standardised(0.5, 0.5), there.labels


def enlarged(images: Tensor, size: int) -> Tensor:
    """The same with so many pixels, bilinear between those there are; as they are where size is 0 or theirs already."""
    if size in (0, images.shape[-1]):
        return images
    larger = images.new_empty(*images.shape[:2], size, size)
    for here, some in zip(larger.split(1000), images.split(1000), strict=True):  # all at once would take twice the room
        here.copy_(nn.functional.interpolate(some, (size, size), mode="bilinear"))
    return larger
