"""The user's own files: whatever lies in the folder that TEETER_DATA names comes before anything that is fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from teeter.errors import InputError

__all__ = ["Absent", "absent", "data_folder", "owned"]


class Absent(InputError):
    """What no package registry has, and the user has not put where it is looked for."""


def data_folder() -> Path | None:
    """The folder that TEETER_DATA names, if it names one."""
    return Path(root).expanduser().absolute() if (root := os.environ.get("TEETER_DATA")) else None


def owned(patterns: Iterable[str]) -> Path | None:
    """The first file or folder of the user's own that is called like one of the patterns, such as `svhn/*.mat`."""
    root = data_folder()
    if root is None:
        return None
    return next((path for pattern in patterns for path in sorted(root.glob(pattern))), None)


def absent(what: str, files: str, folder: str) -> Absent:
    """The error for what no package registry has: it says which files to put where.

    >>> import os
    >>> os.environ["TEETER_DATA"] = "/home/ada/data"
    >>> print(absent("SVHN", "train_32x32.mat", "svhn"))
    SVHN is in no package registry: put train_32x32.mat into /home/ada/data/svhn
    >>> del os.environ["TEETER_DATA"]
    >>> print(absent("SVHN", "train_32x32.mat", "svhn"))
    SVHN is in no package registry: set TEETER_DATA to a folder of yours and put train_32x32.mat into svhn in it
    """
    root = data_folder()
    if root is None:
        where = f"set TEETER_DATA to a folder of yours and put {files} into {folder} in it"
    else:
        where = f"put {files} into {root / folder}"
    return Absent(f"{what} is in no package registry: {where}")
