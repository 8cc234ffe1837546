"""Folders of pictures, one folder a class, as ImageNet and many others are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from teeter.cube.memory import require
from teeter.data.labelled import LabelledImages
from teeter.data.pictures import find_images, framed, pillow
from teeter.data.subset import subset
from teeter.errors import InputError

__all__ = ["ClassFolders", "class_folders", "labelled_folder"]


@dataclass(frozen=True, eq=False)
class ClassFolders:
    """Where pictures are and which class each has; nothing has been opened."""

    places: tuple[Path, ...]
    labels: Tensor
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.places)


def class_folders(folder: Path | str) -> ClassFolders:
    """The pictures below the folders in `folder`, each of which is a class, in the order of their names."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"there is no folder '{folder}'")
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not classes:
        raise InputError(f"'{folder}' holds no folders: each class has one of its own, with its pictures in it")
    found = [find_images(folder / name) for name in classes]
    labels = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor([len(part) for part in found]))
    return ClassFolders(tuple(place for part in found for place in part), labels, tuple(classes))


def labelled_folder(
    folder: Path | str, *, size: int, resize: int | None = None, limit: int | None = None, seed: int = 0
) -> LabelledImages:
    """Pictures in colour as one tensor: the shortest side resized (to `size` unless `resize` says otherwise), then a
    square of `size` from the centre. All of them, or a random `limit` of them, the same for the same seed.
    """
    if size < 1 or (resize is not None and resize < 1):
        raise InputError(f"pictures are at least 1 pixel large, got size = {size}, resize = {resize}")
    known = class_folders(folder)
    chosen = subset(len(known), limit, seed)
    opener, _ = pillow()
    require(len(chosen) * 3 * size * size, f"a tensor of {len(chosen)} images")
    images = torch.empty(len(chosen), 3, size, size, dtype=torch.uint8)
    for row, i in enumerate(chosen.tolist()):
        try:
            with opener.open(known.places[i]) as image:
                pixels = np.array(framed(image, size if resize is None else resize, (size, size), gray=False))
        except Exception as problem:  # what a damaged picture raises depends on its format
            raise InputError(f"cannot read the image '{known.places[i]}': {problem}") from None
        images[row] = torch.from_numpy(pixels).movedim(-1, 0)
    return LabelledImages(images, known.labels[chosen], known.classes)
