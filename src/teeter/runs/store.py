"""A folder of finished runs, one file each; a study's runs may be packed into one.

A run is written to a hidden file beside its place, flushed to the disk, and renamed into place. Renaming within a
folder is atomic on local and network file systems alike, so at every moment a run is there whole or not at all,
however its writer ended. Any number of processes and machines may write at once: two that finish the same run write
the same rows, and the later one wins. There is no index to fall out of step, no lock to be left behind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teeter.errors import InputError
from teeter.runs.pack import PATTERN, read_pack, write_pack

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run", "Store", "tidy"]

_STALE = 24 * 3600  # seconds after which an unfinished file is nobody's any more
_ABANDONED = 30 * _STALE  # likewise of a folder with what was under way
_UNFINISHED = re.compile(r"\.[0-9a-z]+\.[0-9a-f]{32}\.part")


@dataclass(frozen=True)
class Run:
    """One finished run: what was asked, what came out, and where it came from."""

    study: str
    key: str
    spec: dict[str, Any]
    rows: list[dict[str, Any]]
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        kinds = isinstance(self.spec, dict), isinstance(self.provenance, dict), isinstance(self.rows, list)
        if not all(kinds) or not self.rows or not all(isinstance(row, dict) for row in self.rows):
            raise InputError(f"{self.study}: a run has a spec, provenance and at least one row, each a mapping")
        taken = {"run", "seconds"}  # columns the table adds
        for columns, others in [(self.spec, taken), *((row, taken | set(self.spec)) for row in self.rows)]:
            if shared := sorted(set(columns) & others):
                raise InputError(f"{self.study}: the column {', '.join(shared)} is already taken")


class Store:
    """The runs below one folder. The folder is made when the first run is saved."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"a store is a folder, got the file {self.folder}")
        self._packs: dict[Path, dict[str, dict[str, Any]]] = {}

    def path(self, study: str, key: str) -> Path:
        return self.folder / study / f"{key}.json"

    def under_way(self, study: str, key: str) -> Path:
        """A folder for what runs that are made together have not finished; it need not be there."""
        return self.folder / study / f".{key}.under-way"

    def has(self, study: str, key: str) -> bool:
        return self.path(study, key).exists() or key in self._packed(study)

    def save(self, run: Run) -> Path:
        """Put a finished run in its place, in one step that cannot be half done."""
        place = self.path(run.study, run.key)
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{run.key}.{uuid.uuid4().hex}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(asdict(run), file, indent=1)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, place)
        finally:
            part.unlink(missing_ok=True)
        _flush_folder(place.parent)
        return place

    def load(self, study: str, key: str) -> Run:
        """A finished run, or an error that names the file if something other than teeter has damaged it."""
        place = self.path(study, key)
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except FileNotFoundError:
            found = self._packed(study).get(key)
            if found is None:
                raise InputError(f"no run {key} of {study} in {self.folder}") from None
        except ValueError as problem:
            raise InputError(f"{place} is damaged ({problem}): delete it and run the study again") from None
        try:
            run = Run(**found)
        except (ValueError, TypeError) as problem:
            where = place if place.exists() else f"a pack in {place.parent}"
            raise InputError(f"{where} is damaged ({problem}): delete it and run the study again") from None
        if (run.study, run.key) != (study, key):
            raise InputError(f"{place} holds the run {run.study}/{run.key}: put it back in its place")
        return run

    def runs(self, study: str, keys: Iterable[str] | None = None) -> Iterator[Run]:
        """The finished runs of a study, in the order of the keys given, or all of them by key."""
        if keys is None:
            keys = sorted({*self._loose(study), *self._packed(study)})
        for key in keys:
            yield self.load(study, key)

    def pack(self, study: str) -> Path:
        """Put all runs of a study into one compressed file. Whoever is killed in here, or packs at the same time,
        leaves every run there once or twice, the same."""
        folder = self.folder / study
        loose, packs = self._loose(study), list(folder.glob(PATTERN))
        place = write_pack(folder, [asdict(run) for run in self.runs(study)])
        _flush_folder(folder)
        for old in [*(self.path(study, key) for key in loose), *packs]:
            if old != place:
                old.unlink(missing_ok=True)
        return place

    def _loose(self, study: str) -> list[str]:
        """The keys of runs that have a file of their own."""
        return [place.stem for place in (self.folder / study).glob("[!.]*.json")]

    def _packed(self, study: str) -> dict[str, dict[str, Any]]:
        """The runs in the study's packs, each read once: a pack never changes."""
        while True:
            found: dict[str, dict[str, Any]] = {}
            try:
                for place in sorted((self.folder / study).glob(PATTERN)):
                    if place not in self._packs:
                        self._packs[place] = read_pack(place)
                    found |= self._packs[place]
            except FileNotFoundError:  # packed anew by someone else: what it held is in another
                continue
            return found

    def table(self, study: str, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """One tidy table: a line for each row of each run, with the run's key, its spec and its seconds."""
        return tidy(self.runs(study, keys))

    def prepare(self, study: str) -> None:
        """Make the study's folder, and remove what writers that were killed long ago left unfinished in it."""
        folder = self.folder / study
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".*.part"):
            if not _UNFINISHED.fullmatch(part.name):
                continue  # not ours
            with suppress(FileNotFoundError):  # its writer has just finished it
                if time.time() - part.stat().st_mtime > _STALE:
                    part.unlink()
        for left in folder.glob(".*.under-way"):
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(left, ignore_errors=True)


def tidy(runs: Iterable[Run]) -> pd.DataFrame:
    """Runs as one table."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"run": run.key, **run.spec, **row, "seconds": run.provenance.get("seconds")}
            for run in runs
            for row in run.rows
        ]
    )


def _flush_folder(folder: Path) -> None:
    # So that the new name, not only the file, outlives a power cut. Not every file system offers this.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
