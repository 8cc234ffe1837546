"""Many finished runs in one compressed file, for results that are kept with the project: thousands of small files are
slow to clone and to look through.

A pack is named by what it holds and never changed. Several may stand side by side, with the same run in more than one:
whoever packs reads them all, writes a new one and removes those it has read, so that no two packers lose a run.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from teeter.errors import InputError

__all__ = ["PATTERN", "read_pack", "write_pack"]

PATTERN = "runs-*.jsonl.gz"  # a line a run


def read_pack(place: Path) -> dict[str, dict[str, Any]]:
    """Runs by key, as they were packed."""
    try:
        with gzip.open(place, "rt", encoding="utf-8") as file:
            runs = [json.loads(line) for line in file]
        return {run["key"]: run for run in runs}
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, TypeError, KeyError, zlib.error) as problem:
        raise InputError(f"{place} is damaged ({problem}): restore it, or delete it and run the study again") from None


def write_pack(folder: Path, runs: Iterable[dict[str, Any]]) -> Path:
    """Put these into a pack, in one step that cannot be half done; the same runs give the same name and bytes."""
    lines = "".join(json.dumps(run) + "\n" for run in sorted(runs, key=lambda run: run["key"])).encode()
    place = folder / PATTERN.replace("*", hashlib.sha256(lines).hexdigest()[:12])
    part = folder / f".pack.{uuid.uuid4().hex}.part"
    try:
        with part.open("wb") as file:
            file.write(gzip.compress(lines, mtime=0))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    return place
