"""Archives into folders, refusing whatever would land outside of them."""

from __future__ import annotations

import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PureWindowsPath

from teeter.errors import InputError

__all__ = ["untar", "unzip"]


def unzip(archive: Path, folder: Path) -> None:
    """A zip file (a wheel is one) into an existing folder. Links arrive as plain files that hold their target."""
    try:
        with zipfile.ZipFile(archive) as file:
            for name in file.namelist():
                _check_name(archive, name)
            file.extractall(folder)
    except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as problem:  # RuntimeError: it asks for a password
        raise _damaged(archive, problem) from None


def untar(archive: Path, folder: Path) -> None:
    """A tar file, compressed or not, into an existing folder: plain files and folders alone, owned by us.

    Links are refused wherever they lead: no data set needs them. (The standard library's filter for such members is
    missing from Python 3.11.0 to 3.11.3.)
    """
    try:
        with tarfile.open(archive) as file:
            for member in file:
                _check_name(archive, member.name)
                place = folder / member.name
                if member.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                elif (source := file.extractfile(member) if member.isreg() else None) is not None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with source, place.open("wb") as target:
                        shutil.copyfileobj(source, target)
                else:
                    raise _refused(archive, f"'{member.name}' is neither a file nor a folder")
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as problem:
        raise _damaged(archive, problem) from None


def _check_name(archive: Path, name: str) -> None:
    # Stripping such names, as the standard library would, hides that somebody has made them.
    path = PureWindowsPath(name)  # knows both kinds of slashes, and drives
    if path.anchor or ".." in path.parts:
        raise _refused(archive, f"'{name}' would land outside its folder")


def _refused(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive.name} is refused, and nothing of it is kept: {reason}")


def _damaged(archive: Path, problem: Exception) -> InputError:
    return InputError(f"{archive.name} is not a whole archive ({problem}): fetch it again")
