"""Arrays of bytes that took work to make, kept in the cache; and the end of what was left there unfinished."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from teeter.data.arrays import read_array
from teeter.data.progress import tell
from teeter.errors import InputError

__all__ = ["keep", "read_kept", "sweep"]

_STALE = 24 * 3600  # seconds after which what is unfinished is nobody's any more
_TOLD: set[Path] = set()  # folders of which it has been said that they keep nothing
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def read_kept(place: Path, shape: tuple[int, ...]) -> _Bytes | None:
    """What was kept, if it is there, whole and of this shape."""
    try:
        array = read_array(place)
    except InputError:
        return None
    return array if array.dtype == np.uint8 and array.shape == shape else None


def keep(place: Path, array: _Bytes) -> None:
    """In one step: at every moment the file is there whole or not at all, however many write it at once.

    The array is in memory. Where it cannot be kept, it has to be made anew the next time, and that is told, once.
    """
    try:
        _write(place, array)
    except OSError as problem:
        if place.parent not in _TOLD:
            _TOLD.add(place.parent)
            tell(f"nothing can be kept in {place.parent} ({problem.strerror or problem}); it is made anew each time")


def _write(place: Path, array: _Bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    sweep(place.parent)
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove the files and folders that those who were killed long ago left unfinished."""
    for part in folder.glob(".*.part"):
        with suppress(FileNotFoundError):  # its owner has just finished
            if time.time() - part.stat().st_mtime > _STALE:
                if part.is_dir():
                    shutil.rmtree(part, ignore_errors=True)
                else:
                    part.unlink()
