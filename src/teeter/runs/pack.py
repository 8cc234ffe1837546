"""Many finished runs in one compressed file, for results that are kept with the project: thousands of small files are
slow to clone and to look through."""

from __future__ import annotations

import gzip
import json
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from teeter.errors import InputError

__all__ = ["NAME", "read_pack", "write_pack"]

NAME = "runs.jsonl.gz"  # a line a run


def read_pack(place: Path) -> dict[str, dict[str, Any]]:
    """Runs by key, as they were packed; none where there is no file."""
    try:
        with gzip.open(place, "rt", encoding="utf-8") as file:
            runs = [json.loads(line) for line in file]
        return {run["key"]: run for run in runs}
    except FileNotFoundError:
        return {}
    except (OSError, EOFError, ValueError, TypeError, KeyError) as problem:
        raise InputError(f"{place} is damaged ({problem}): restore it, or delete it and run the study again") from None


def write_pack(place: Path, runs: Iterable[dict[str, Any]]) -> None:
    """Put these in the place of the pack before, in one step that cannot be half done; the same runs give the same
    bytes."""
    part = place.with_name(f".pack.{uuid.uuid4().hex}.part")
    lines = "".join(json.dumps(run) + "\n" for run in sorted(runs, key=lambda run: run["key"]))
    try:
        with part.open("wb") as file:
            file.write(gzip.compress(lines.encode(), mtime=0))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
