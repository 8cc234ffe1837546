"""The folders that a user may name in the environment: TEETER_DATA for files of their own, TEETER_CACHE for ours."""

from __future__ import annotations

import os
from pathlib import Path

from teeter.errors import InputError

__all__ = ["cache_folder", "data_folder"]


def data_folder() -> Path | None:
    """The folder that TEETER_DATA names, if it names one."""
    return _named("TEETER_DATA")


def cache_folder() -> Path:
    """Where what was fetched or made is kept: the folder that TEETER_CACHE names, or else ~/.cache/teeter."""
    if (chosen := _named("TEETER_CACHE")) is not None:
        return chosen
    try:
        return Path.home() / ".cache" / "teeter"
    except RuntimeError:
        raise InputError("there is no home folder to keep packages in: set TEETER_CACHE to a folder") from None


def _named(variable: str) -> Path | None:
    if not (words := os.environ.get(variable)):
        return None
    try:
        return Path(words).expanduser().absolute()
    except RuntimeError as problem:  # ~ or ~somebody, where there is no such home
        raise InputError(f"{variable} is '{words}', which names no folder ({problem}): set it to another") from None
