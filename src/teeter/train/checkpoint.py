"""A run's state on disk: one safetensors file, tensors by name and the other facts as JSON in its header.

It is written beside its place, flushed to the disk and renamed, so that a kill at any moment leaves the checkpoint
before it whole. Nothing in it is run as code when it is read.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from teeter.errors import InputError

__all__ = ["Checkpoint", "read_checkpoint", "same_run", "write_checkpoint"]

NAME = "checkpoint.safetensors"
_STALE = 3600  # seconds after which an unfinished file is nobody's any more


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Tensors by name, on the CPU, and facts that JSON can hold."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def write_checkpoint(folder: Path | str, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Path:
    """Put a checkpoint in the folder, in the place of the one before, in one step that cannot be half done.

    >>> import tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_checkpoint(folder, {"weight": torch.ones(2)}, {"step": 7})
    >>> found = read_checkpoint(folder)
    >>> found.tensors["weight"], found.facts
    (tensor([1., 1.]), {'step': 7})
    """
    from safetensors.torch import save_file

    place = Path(folder) / NAME
    if place.parent.exists() and not place.parent.is_dir():
        raise InputError(f"checkpoints are kept in a folder, got the file {place.parent}")
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place.parent)
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
    # Copies, since safetensors refuses tensors that share memory, as tied weights do.
    alone = {name: each.detach().to("cpu", copy=True).contiguous() for name, each in tensors.items()}
    try:
        save_file(alone, part, metadata={"facts": json.dumps(dict(facts))})
        _flush(part)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    with suppress(OSError):  # so that the new name outlives a power cut too; not every file system offers this
        _flush(place.parent)
    return place


def read_checkpoint(folder: Path | str) -> Checkpoint | None:
    """The checkpoint of a folder, or None where there is none."""
    from safetensors import SafetensorError, safe_open

    place = Path(folder) / NAME
    if not place.exists():
        return None
    try:
        with safe_open(place, framework="pt") as file:
            facts = json.loads((file.metadata() or {})["facts"])
            return Checkpoint({name: file.get_tensor(name) for name in file.keys()}, facts)
    except (SafetensorError, OSError, ValueError, KeyError) as problem:
        raise InputError(f"{place} is damaged ({problem}): remove it to begin anew") from None


def same_run(folder: Path | str, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to go on with what another run left: every fact that identifies a run is the same in both.

    >>> same_run("runs/3", {"recipe.rate": 0.1, "seed": 0}, {"recipe.rate": 0.2, "seed": 0})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    teeter.errors.InputError: the checkpoint in runs/3 is of another run: recipe.rate is 0.1 there and 0.2 here; ...
    """
    for name in [*asked, *(name for name in found if name not in asked)]:
        there, here = found.get(name), asked.get(name)
        if there != here:
            raise InputError(
                f"the checkpoint in {folder} is of another run: {name} is {there} there and {here} here; "
                f"give this run a folder of its own, or remove the file to begin anew"
            )


def _sweep(folder: Path) -> None:
    """Remove what writers that were killed left unfinished."""
    for part in folder.glob(f".{NAME}.*.part"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > _STALE:
                part.unlink()


def _flush(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
