"""ImageNet-1k (Russakovsky et al. 2015) as folders of pictures: V section 5 measures on 20,000 of its training images.

No package registry has it. It goes into `imagenet` (or `ImageNet`, `ILSVRC2012`) in the folder that TEETER_DATA names,
as `train/<class>/*.JPEG` and `val/<class>/*.JPEG`, where a class is its WordNet number, such as n01440764. The pictures
for validation come without such folders, all in one; they have to be sorted into them first.
"""

from __future__ import annotations

from pathlib import Path

from teeter.data.folders import labelled_folder
from teeter.data.labelled import LabelledImages
from teeter.data.own import absent, owned
from teeter.errors import UnknownName

__all__ = ["imagenet", "imagenet_folder", "own_imagenet"]

_SPLITS = ("train", "val")
_NAMES = ("imagenet", "ImageNet", "ILSVRC2012")


def imagenet_folder(split: str = "train") -> Path:
    """Where the user's own ImageNet is."""
    if split not in _SPLITS:
        raise UnknownName("split", split, _SPLITS)
    place = own_imagenet(split)
    if place is None:
        raise absent("ImageNet", f"{split}/<class>/*.JPEG", "imagenet")
    return place


def own_imagenet(split: str) -> Path | None:
    """The same, or None where there is none."""
    return owned(f"{name}/{split}" for name in _NAMES)


def imagenet(split: str = "train", *, limit: int | None = None, size: int = 224, seed: int = 0) -> LabelledImages:
    """A random `limit` of the pictures, or all (193 GB to train on): resized to 8/7 of `size` and cropped, as is usual.

    What a pretrained model is measured on is prepared in that model's own way: `teeter measure MODEL imagenet`.
    """
    return labelled_folder(imagenet_folder(split), size=size, resize=size * 8 // 7, limit=limit, seed=seed)
