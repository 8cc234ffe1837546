"""Arrays of bytes that took work to make, kept in the cache."""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["keep", "read_kept"]

_STALE = 24 * 3600  # seconds after which an unfinished file is nobody's any more
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def read_kept(place: Path, shape: tuple[int, ...]) -> _Bytes | None:
    """What was kept, if it is there, whole and of this shape."""
    try:
        array = np.load(place, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array if isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.shape == shape else None


def keep(place: Path, array: _Bytes) -> None:
    """In one step: at every moment the file is there whole or not at all, however many write it at once."""
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place.parent)
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what writers that were killed long ago left unfinished."""
    for part in folder.glob(".*.part"):
        with suppress(FileNotFoundError):  # its owner has just finished
            if time.time() - part.stat().st_mtime > _STALE:
                part.unlink()
