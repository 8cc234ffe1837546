"""Photographs as the tensors a model was trained on: resized, cropped, standardised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from teeter.cube.memory import require
from teeter.data.pictures import find_images, framed, pillow
from teeter.errors import InputError
from teeter.integrations.pretrained import read_json

__all__ = ["ImageFormat", "find_images", "read_images"]

# Those of transformers' preparations that do what the keys of their file say, and nothing more.
_PLAIN = ("ViT", "DeiT", "CLIP", "Bit", "Beit", "Pvt", "Siglip", "MobileNetV1", "MobileNetV2", "Segformer")

# Those to which a size that is one number is the shortest side; to the others it is a square's.
_SHORTEST = ("CLIP", "Bit", "MobileNetV1", "MobileNetV2", "Siglip", "ConvNext")


@dataclass(frozen=True)
class ImageFormat:
    """What is done to a picture: `resize` (its shortest side, or height and width), `crop` from the centre, then
    (pixel * scale - mean) / std for each channel; one channel is gray, three are red, green and blue.

    >>> from PIL import Image
    >>> small = ImageFormat(resize=4, crop=(4, 4), mean=(0.5,), std=(0.5,))
    >>> small.prepare(Image.new("L", (12, 8), color=255))
    tensor([[[1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.]]])
    """

    resize: int | tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    scale: float = 1 / 255
    resample: int = 2  # as Pillow numbers them: bilinear

    def __post_init__(self) -> None:
        if len(self.mean) not in (1, 3) or len(self.std) != len(self.mean):
            raise InputError(f"mean and std are one number each, or three, got {self.mean} and {self.std}")
        if not all(map(math.isfinite, self.mean)) or not all(s > 0 and math.isfinite(s) for s in self.std):
            raise InputError(f"mean and std are finite and std is positive, got {self.mean} and {self.std}")
        resize = (self.resize,) if isinstance(self.resize, int) else self.resize or ()
        if any(side < 1 for side in (*resize, *(self.crop or ()))):
            raise InputError(f"sizes of images are at least 1, got {self.resize} and {self.crop}")

    @classmethod
    def of(cls, folder: Path | str) -> ImageFormat:
        """What the preprocessor_config.json of a model directory says."""
        folder = Path(folder)
        says = read_json(folder / "preprocessor_config.json")
        kind = str(says.get("image_processor_type") or says.get("feature_extractor_type") or "ViT")
        kind = kind.removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
        if kind not in (*_PLAIN, "ConvNext"):
            raise InputError(
                f"how a {kind} model prepares images is not known here ('{folder}'): give image size, mean and std"
            )
        channels = read_json(folder / "config.json").get("num_channels", 3)
        try:
            resize, crop = _sizes(says, kind)
            normal = says.get("do_normalize", True)
            mean, std = (
                tuple(np.broadcast_to(says.get(f"image_{name}", 0.5) if normal else plain, channels).tolist())
                for name, plain in (("mean", 0.0), ("std", 1.0))
            )
            scale = float(says.get("rescale_factor", 1 / 255)) if says.get("do_rescale", True) else 1.0
            return cls(resize, crop, mean, std, scale, int(says.get("resample", 2)))
        except (TypeError, ValueError, KeyError, AttributeError) as problem:
            raise InputError(f"cannot understand the preprocessor_config.json of '{folder}': {problem}") from None

    def sized(self, size: int) -> ImageFormat:
        """The same with another size: the shortest side resized to it, then a square from the centre."""
        return replace(self, resize=size, crop=(size, size))

    def prepare(self, image: Any) -> Tensor:
        """(channels, height, width) of a Pillow image."""
        image = framed(image, self.resize, self.crop, gray=len(self.mean) == 1, resample=self.resample)
        pixels = torch.from_numpy(np.array(image, dtype=np.float32)).reshape(image.height, image.width, -1)
        mean, std = torch.tensor(self.mean), torch.tensor(self.std)
        return ((pixels * self.scale - mean) / std).movedim(-1, 0).contiguous()


def read_images(places: Sequence[Path | str], form: ImageFormat | None = None) -> Tensor:
    """Pictures as one tensor, (inputs, channels, height, width); without a format, as large as they are, 0 to 1."""
    opener, _ = pillow()
    form = form or ImageFormat()
    batch: Tensor | None = None
    for row, place in enumerate(places):
        try:
            with opener.open(place) as image:
                one = form.prepare(image)
        except Exception as problem:  # what a damaged picture raises depends on its format
            raise InputError(f"cannot read the image '{place}': {problem}") from None
        if batch is None:
            require(len(places) * one.nbytes, f"a batch of {len(places)} images")
            batch = torch.empty(len(places), *one.shape)
        if batch.shape[1:] != one.shape:
            sizes = " and ".join(f"{width} x {height}" for height, width in (batch.shape[-2:], one.shape[-2:]))
            raise InputError(f"images differ in size ({sizes}, from '{place}' on): give an image size")
        batch[row] = one
    if batch is None:
        raise InputError("there is no image to read")
    return batch


def _sizes(says: dict[str, Any], kind: str) -> tuple[int | tuple[int, int] | None, tuple[int, int] | None]:
    """What to resize to and to crop, from the keys of a preprocessor_config.json."""
    cropped = says.get("do_center_crop", False) and kind != "Segformer"  # whose preparation knows no crop
    crop = _pair(says["crop_size"]) if cropped else None
    if not says.get("do_resize", True):
        return None, crop
    size = says["size"]
    if isinstance(size, int):
        size = {"shortest_edge": size} if kind in _SHORTEST else {"height": size, "width": size}
    if "shortest_edge" not in size:
        return (size["height"], size["width"]), crop
    side = int(size["shortest_edge"])
    if kind != "ConvNext":
        return side, crop
    # ConvNeXt keeps the picture's shape only below 384, and then crops by a share that it calls crop_pct.
    return (int(side / says.get("crop_pct", 224 / 256)), (side, side)) if side < 384 else ((side, side), None)


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size["height"], size["width"])
