"""The user's own files: whatever lies in the folder that TEETER_DATA names comes before anything that is fetched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from teeter.data.environment import data_folder
from teeter.errors import InputError

__all__ = ["Absent", "absent", "beside", "owned"]


class Absent(InputError):
    """What no package registry has, and the user has not put where it is looked for."""


def owned(names: Iterable[str]) -> Path | None:
    """The first of these files or folders, such as `svhn/train_32x32.mat`, that the user has."""
    root = data_folder()
    if root is None:
        return None
    return next((root / name for name in names if (root / name).exists()), None)


def beside(folder: Path, files: tuple[str, ...], endings: tuple[str, ...] = ("",)) -> tuple[Path, ...] | None:
    """All of these files, each with one of the endings, or None where the folder has none of them.

    One without the others is a mistake to be told, not to be mended by taking the rest from elsewhere.
    """
    found = [next((p for end in endings if (p := folder / f"{file}{end}").is_file()), None) for file in files]
    there = tuple(path for path in found if path is not None)
    if there and len(there) < len(files):
        missing, known = files[found.index(None)], there[0].name
        either = ", compressed or not" if len(endings) > 1 else ""
        raise InputError(f"{folder} has no {missing}{either}: put it there, beside {known}")
    return there or None


def absent(what: str, files: str, folder: str) -> Absent:
    """The error for what no package registry has: it says which files to put where.

    >>> import os
    >>> os.environ["TEETER_DATA"] = "/"
    >>> print(absent("SVHN", "train_32x32.mat", "svhn"))
    SVHN is in no package registry: put train_32x32.mat into /svhn
    >>> os.environ["TEETER_DATA"] = "/nowhere"
    >>> print(absent("SVHN", "train_32x32.mat", "svhn"))
    SVHN is in no package registry: put train_32x32.mat into /nowhere/svhn (TEETER_DATA names no folder that is there)
    >>> del os.environ["TEETER_DATA"]
    >>> print(absent("SVHN", "train_32x32.mat", "svhn"))
    SVHN is in no package registry: set TEETER_DATA to a folder of yours and put train_32x32.mat into svhn in it
    """
    root = data_folder()
    if root is None:
        where = f"set TEETER_DATA to a folder of yours and put {files} into {folder} in it"
    else:
        where = f"put {files} into {root / folder}"
        where += "" if root.is_dir() else " (TEETER_DATA names no folder that is there)"
    return Absent(f"{what} is in no package registry: {where}")
