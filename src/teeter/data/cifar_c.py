"""CIFAR-10-C: CIFAR-10's test images, corrupted (Hendrycks and Dietterich 2019; V section 7, Figures 9, 20, 21).

The official arrays come first where they are: NAME.npy and labels.npy in the folder `CIFAR-10-C` of the folder that
TEETER_DATA names. Without them the images are made here, from CIFAR-10's own test images, and kept in the cache. Every
answer says which of the two it is. They agree in everything but their random numbers and what the libraries that made
the official ones (ImageMagick, OpenCV, libjpeg) have changed since.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from teeter.data.arrays import read_array
from teeter.data.cifar10 import CIFAR10_CLASSES, cifar10
from teeter.data.corruptions import CORRUPTIONS, corrupted
from teeter.data.corruptions.by_name import check
from teeter.data.environment import cache_folder
from teeter.data.kept import keep, read_kept
from teeter.data.labelled import LabelledImages, read_as
from teeter.data.own import absent, owned
from teeter.errors import InputError, UnknownName

__all__ = ["CorruptedImages", "cifar10_c", "generated_folder", "official_array", "own_cifar10_c"]

REVISION = 1  # raise it whenever the same seed would give other images
_EACH = 10_000  # images at each severity of the official arrays


@dataclass(frozen=True, eq=False)
class CorruptedImages(LabelledImages):
    """Images with labels, and how they were corrupted: official ones have no seed."""

    corruption: str
    severity: int
    source: Literal["official", "generated"]
    seed: int | None


def cifar10_c(
    corruption: str,
    severity: int,
    test: LabelledImages | None = None,
    *,
    seed: int = 0,
    source: Literal["official", "generated"] | None = None,
) -> CorruptedImages:
    """CIFAR-10's test images with one corruption at one severity from 1 to 5.

    `source` asks for one of the two kinds; unless it does, official arrays come first. Images are generated from
    `test`, by default `teeter.data.cifar10("test")`, and kept under `TEETER_CACHE`: the second time they are read.

    >>> few = LabelledImages(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), torch.tensor([3, 8]), ("",) * 10)
    >>> noisy = cifar10_c("shot_noise", 5, few, source="generated")
    >>> noisy.source, noisy.labels.tolist()
    ('generated', [3, 8])
    """
    check(corruption, severity)
    if source not in (None, "official", "generated"):
        raise UnknownName("source", str(source), ("official", "generated"))
    official = official_array(corruption)
    if official is not None and source != "generated":
        return _official(official.parent, corruption, severity)
    if source == "official":
        raise absent("CIFAR-10-C", f"{corruption}.npy and labels.npy", "CIFAR-10-C")
    if test is None:
        test = cifar10("test")
    images = _generated(test.images.cpu(), corruption, severity, seed).to(test.images.device)
    return CorruptedImages(images, test.labels, test.classes, corruption, severity, "generated", seed)


def official_array(corruption: str) -> Path | None:
    """The file of the official images, where the user has it."""
    return owned(f"{folder}/{corruption}.npy" for folder in ("CIFAR-10-C", "cifar10-c"))


def own_cifar10_c(_: str = "") -> Path | None:
    """The folder of the official arrays, where the user has any of them."""
    files = (official_array(corruption) for corruption in CORRUPTIONS)
    return next((file.parent for file in files if file is not None), None)


def generated_folder() -> Path:
    """Where generated images are kept."""
    return cache_folder() / "corruptions"


def _official(folder: Path, corruption: str, severity: int) -> CorruptedImages:
    images = _array(folder / f"{corruption}.npy", (5 * _EACH, 32, 32, 3))
    labels = _array(folder / "labels.npy", (5 * _EACH,))
    rows = slice(_EACH * (severity - 1), _EACH * severity)
    pixels = torch.from_numpy(np.ascontiguousarray(np.moveaxis(images[rows], -1, 1)))
    numbers = torch.from_numpy(labels[rows].astype(np.int64))
    known = read_as(folder / "labels.npy", pixels, numbers, CIFAR10_CLASSES)
    return CorruptedImages(known.images, known.labels, known.classes, corruption, severity, "official", None)


def _array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """An array in a file, of which only what is asked for is read."""
    if not path.is_file():
        raise InputError(f"{path.parent} has no {path.name}: put it there, beside the images")
    array = read_array(path, mapped=True)
    kind = "u" if len(shape) > 1 else "iu"
    if array.shape != shape or array.dtype.kind not in kind or (kind == "u" and array.dtype.itemsize != 1):
        wanted = "bytes" if kind == "u" else "whole numbers"
        raise InputError(f"{path} holds {array.dtype} of shape {array.shape}, expected {wanted} of shape {shape}")
    return array


def _generated(images: Tensor, corruption: str, severity: int, seed: int) -> Tensor:
    """From the cache, or made and put there."""
    digest = hashlib.sha256(images.contiguous().numpy().data).hexdigest()[:16]
    place = generated_folder() / f"{corruption}-{severity}-seed{seed}-v{REVISION}-{digest}.npy"
    kept = read_kept(place, tuple(images.shape))
    if kept is not None:
        return torch.from_numpy(kept)
    made = corrupted(images, corruption, severity, seed)
    keep(place, made.numpy())
    return made
