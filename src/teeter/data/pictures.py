"""Photographs: which files are some, and their resizing and cropping. They need Pillow, of the extra `images`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from teeter.errors import InputError, MissingExtra

__all__ = ["ENDINGS", "find_images", "framed", "pillow", "read_picture"]

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def pillow(what: str = "pictures") -> tuple[Any, Any]:
    """Pillow's `Image` and `ImageOps`."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtra(f"Pillow reads {what} and is not installed: pip install 'teeter[images]'") from None
    return Image, ImageOps


def find_images(folder: Path | str) -> list[Path]:
    """The pictures in a folder and the folders below it, in the order of their names; hidden ones are left out."""
    folder, found = Path(folder), list[Path]()
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".") and _ends(name)]
    if not found:
        raise InputError(f"there is no image in '{folder}': their names end in {', '.join(ENDINGS)}")
    return sorted(found)


def _ends(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in ENDINGS


def read_picture(place: Path) -> Tensor:
    """The red, green and blue of a picture, as bytes of shape (3, height, width)."""
    image, _ = pillow()
    with image.open(place) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB"))).movedim(-1, 0)


def framed(
    image: Any, resize: int | tuple[int, int] | None, crop: tuple[int, int] | None, *, gray: bool, resample: int = 2
) -> Any:
    """A Pillow image upright, in red, green and blue or gray, resized (its shortest side, or height and width), then
    cropped from the centre, black beyond the border.

    >>> from PIL import Image
    >>> framed(Image.new("RGB", (60, 40)), 20, (16, 24), gray=False).size
    (24, 16)
    """
    _, operations = pillow()
    image = operations.exif_transpose(image).convert("L" if gray else "RGB")
    if resize is not None:
        image = image.resize(_target(image.size, resize), resample=resample)
    if crop is not None:
        height, width = crop
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    return image


def _target(size: tuple[int, int], resize: int | tuple[int, int]) -> tuple[int, int]:
    """Width and height after resizing an image of that width and height."""
    if not isinstance(resize, int):
        return resize[1], resize[0]
    width, height = size
    long = int(resize * max(size) / min(size))
    return (resize, long) if width <= height else (long, resize)
