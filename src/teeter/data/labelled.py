"""Images with labels, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from teeter.data.arrays import read_array, read_arrays
from teeter.errors import InputError

__all__ = ["LabelledImages", "array_file", "from_arrays", "read_as"]


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images as bytes of shape (images, channels, height, width), and the number of each one's class.

    >>> pixels = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> few = LabelledImages(pixels, labels=torch.tensor([1, 0]), classes=("light", "dark"))
    >>> few.floats().flatten(), few.standardised(mean=0.5, std=0.25).flatten()
    (tensor([0., 1.]), tensor([-2.,  2.]))
    >>> few.counts(), few.moments()
    ([1, 1], ([0.5], [0.5]))
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

    def to(self, device: torch.device | str) -> LabelledImages:
        """The same on that device, still as bytes: CIFAR-10 takes 180 MB there."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def take(self, index: Tensor) -> LabelledImages:
        """Some of them."""
        return replace(self, images=self.images[index], labels=self.labels[index])

    def floats(self) -> Tensor:
        """The images with values from 0 to 1."""
        return self.images.float() / 255

    def standardised(self, mean: float | Sequence[float], std: float | Sequence[float]) -> Tensor:
        """(floats - mean) / std, where mean and std are one number or one for each channel."""
        channels, place = self.images.shape[1], self.images.device
        shift, scale = (
            torch.as_tensor(value, dtype=torch.float32, device=place).reshape(-1, 1, 1) for value in (mean, std)
        )
        if {len(shift), len(scale)} - {1, channels} or not bool((scale > 0).all()):
            raise InputError(
                f"mean and a positive std are one number, or one for each of {channels} channels; got {mean} and {std}"
            )
        return (self.floats() - shift) / scale

    def counts(self) -> list[int]:
        """How many images each class has."""
        return self.labels.bincount(minlength=len(self.classes)).tolist()

    def moments(self) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of each channel, over all pixels from 0 to 1; exact, since bytes are summed."""
        if not self.images.numel():
            raise InputError("no images have no mean")
        total = self.images.sum((0, 2, 3), dtype=torch.int64).double()
        squares = torch.zeros_like(total)
        for part in self.images.split(2048):  # the squares of all at once would take four times their memory
            squares += part.int().square().sum((0, 2, 3), dtype=torch.int64)
        pixels = self.images.numel() // self.images.shape[1]
        mean = total / pixels
        return (mean / 255).tolist(), ((squares / pixels - mean**2).clamp_min(0).sqrt() / 255).tolist()


def read_as(place: Path | str, images: Tensor, labels: Tensor, classes: tuple[str, ...]) -> LabelledImages:
    """What was read in a file, or in a folder of them: where the two do not fit, the error says in which."""
    try:
        return LabelledImages(images, labels, classes)
    except InputError as problem:
        raise InputError(f"{place} does not fit: {problem}") from None


def array_file(folder: Path, split: str) -> Path | None:
    """Where a user has saved a split with numpy: see `from_arrays`."""
    names = f"{split}.npz", f"{split}-images.npy", f"{split}-labels.npy"
    return next((folder / name for name in names if (folder / name).is_file()), None)


def from_arrays(
    folder: Path, split: str, classes: tuple[str, ...], shape: tuple[int, int, int]
) -> LabelledImages | None:
    """What a user has saved with numpy: `train.npz` with `images` and `labels`, or `train-images.npy` and
    `train-labels.npy`; images as bytes of shape (images, height, width, channels), the last three of which are
    `shape`. None if neither is there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "test.npz", images=np.zeros((5, 8, 8, 3), dtype=np.uint8), labels=np.zeros(5, dtype=int))
    >>> from_arrays(folder, "test", ("only",), shape=(8, 8, 3)).images.shape
    torch.Size([5, 3, 8, 8])
    """
    place = array_file(folder, split)
    if place is None:
        return None
    if place.suffix == ".npz":
        arrays = read_arrays(place)
        if not {"images", "labels"} <= arrays.keys():
            raise InputError(f"{place} holds two arrays, 'images' and 'labels', got {', '.join(arrays) or 'none'}")
        images, labels = arrays["images"], arrays["labels"]
    else:
        images, labels = (read_array(folder / f"{split}-{part}.npy") for part in ("images", "labels"))
    if images.dtype != np.uint8 or images.shape[1:] != shape or not np.issubdtype(labels.dtype, np.integer):
        first = images.shape[1:] == (shape[2], *shape[:2])
        raise InputError(
            f"{place} holds bytes of shape (images, {', '.join(map(str, shape))}) and whole numbers, "
            f"got {images.dtype} {images.shape} and {labels.dtype} {labels.shape}"
            + (": put the channels last, with images.transpose(0, 2, 3, 1)" if first else "")
        )
    pixels = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return read_as(place, torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)), classes)
