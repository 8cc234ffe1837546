"""Run what is not in the store yet, in this process: one after the other, or many at once where that is faster."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from teeter.errors import InputError
from teeter.memory import give_back_memory
from teeter.products import by_onednn, quick_products
from teeter.runs.failures import Failures
from teeter.runs.provenance import capture
from teeter.runs.spec import digest, fields_of
from teeter.runs.store import Run, Store

__all__ = ["Rows", "Together", "execute", "missing_groups"]

Rows: TypeAlias = Iterable[dict[str, Any]]
_SLICES = "slices.json"


@dataclass(frozen=True)
class Together:
    """How specs are run many at once: those of one key, `most` at a time.

    `run(specs, folder)` gives the rows of each, in their order. The folder is for what is under way: a run that is
    killed finds there what it left, and once it is done the folder is removed. Without one nothing is kept.
    """

    key: Callable[[Any], Hashable]
    run: Callable[[Sequence[Any], Path | None], Sequence[Rows]]
    most: int


def execute(
    store: Store,
    study: str,
    revision: int,
    run: Callable[[Any], Rows],
    specs: Sequence[Any],
    together: Together | None = None,
) -> list[str]:
    """The keys of all specs, every one of them in the store on return.

    What is saved stays saved, whatever happens to this process; calling again goes on from there. That runs failed is
    raised once the others are done (see `Failures`).
    """
    store.prepare(study)
    keys = [digest(study, revision, spec) for spec in specs]
    groups = missing_groups(store, study, keys, specs, together)
    failures = Failures(len(groups))
    for group in groups:
        try:
            _make(store, study, revision, run, group, together)
        except BaseException as problem:
            failures.add(problem, [spec for _, spec in group])
        finally:
            give_back_memory()  # the next group's tensors have other sizes
    failures.tell()
    return keys


def _make(
    store: Store,
    study: str,
    revision: int,
    run: Callable[[Any], Rows],
    group: Sequence[tuple[str, Any]],
    together: Together | None,
) -> None:
    """Run one group, and save what comes out."""
    before, start = capture(), time.perf_counter()
    products = {"products": "oneDNN"} if by_onednn() else {}
    # What is under way is of these very runs: others, however alike, have a folder of their own.
    runs = " ".join([*(key for key, _ in group), *products.values()])
    folder = store.under_way(study, hashlib.sha256(runs.encode()).hexdigest()[:16])
    earlier = _slices(folder)
    try:
        with quick_products():
            if together is None:
                found = [list(run(spec)) for _, spec in group]
            else:
                found = [list(rows) for rows in together.run([spec for _, spec in group], folder)]
    except BaseException:
        _keep(folder, [*earlier, (str(before["when"]), time.perf_counter() - start)])
        raise
    if len(found) != len(group):
        raise InputError(f"{study}: {len(group)} specs were run together and gave rows for {len(found)}")
    slices = [*earlier, (str(before["when"]), time.perf_counter() - start)]
    each = round(sum(seconds for _, seconds in slices) / len(group), 6)
    origin = {**before, "seconds": each, "together": len(group), "revision": revision, **products}
    if earlier:
        origin["slices"] = [[when, round(seconds, 3)] for when, seconds in slices]
    for (key, spec), rows in zip(group, found, strict=True):
        store.save(Run(study, key, fields_of(spec), rows, origin))
    if together is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _slices(folder: Path) -> list[tuple[str, float]]:
    """When runs that were interrupted had begun, and how many seconds they had then."""
    place = folder / _SLICES
    return [(when, seconds) for when, seconds in json.loads(place.read_text())] if place.exists() else []


def _keep(folder: Path, slices: list[tuple[str, float]]) -> None:
    """Beside what is under way, if anything is. Where that fails, what stopped the run is still what is told."""
    with suppress(OSError):
        if not folder.exists():
            return
        part = folder / f"{_SLICES}.part"
        part.write_text(json.dumps(slices))
        part.replace(folder / _SLICES)


def missing_groups(
    store: Store, study: str, keys: Sequence[str], specs: Sequence[Any], together: Together | None
) -> list[list[tuple[str, Any]]]:
    """The keys and specs that are not in the store, by what is run at once, in the order of the first of each."""
    found: dict[Hashable, list[tuple[str, Any]]] = {}
    for key, spec in zip(keys, specs, strict=True):
        if not store.has(study, key):
            found.setdefault(key if together is None else together.key(spec), []).append((key, spec))
    size = 1 if together is None else together.most
    return [group[first : first + size] for group in found.values() for first in range(0, len(group), size)]
