"""Files of numpy's, read so that nothing in them is run and whatever is wrong with one is told in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from teeter.errors import InputError

__all__ = ["read_array", "read_arrays"]

_Array = np.ndarray[Any, np.dtype[Any]]


def read_array(place: Path | str, *, mapped: bool = False) -> _Array:
    """The array in an .npy file; mapped, only what is asked for is read.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "three.npy"
    >>> np.save(place, np.arange(3))
    >>> read_array(place)
    array([0, 1, 2])
    """
    try:
        if mapped:
            return np.lib.format.open_memmap(place, mode="r")
        # A file that numpy opens itself stays open where it is no whole archive.
        with open(place, "rb") as file:
            array = np.load(file, allow_pickle=False)  # a pickle could run code
            if not isinstance(array, np.ndarray):
                raise ValueError("it holds several arrays and should be called .npz")
    except Exception as problem:  # what a damaged file raises depends on where: its header is parsed as Python
        raise _unreadable(place, problem) from None
    return array


def read_arrays(place: Path | str) -> dict[str, _Array]:
    """The arrays in an .npz file, by name."""
    try:
        with open(place, "rb") as file:
            known = np.load(file, allow_pickle=False)
            if isinstance(known, np.ndarray):
                raise ValueError("it holds one array without a name and should be called .npy")
            arrays = {name: known[name] for name in known.files}
    except Exception as problem:
        raise _unreadable(place, problem) from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # any file in the archive may be called anything
            raise InputError(f"cannot read {place}: what it calls '{name}' is no array")
    return arrays


def _unreadable(place: Path | str, problem: Exception) -> InputError:
    words = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
    return InputError(f"cannot read {place}: {words or type(problem).__name__}")
