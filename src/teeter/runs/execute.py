"""Run what is not in the store yet, one after the other, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from teeter.runs.provenance import capture
from teeter.runs.spec import digest, fields_of
from teeter.runs.store import Run, Store

__all__ = ["execute"]

Rows = Iterable[dict[str, Any]]


def execute(
    store: Store,
    study: str,
    revision: int,
    run: Callable[[Any], Rows],
    specs: Sequence[Any],
    finished: Callable[[int], None] = lambda count: None,
) -> list[str]:
    """The keys of all specs, every one of them in the store on return.

    `finished` is told how many are done, first those found and then one by one. What is saved stays saved,
    whatever happens to this process; calling again goes on from there.
    """
    store.prepare(study)
    keys = [digest(study, revision, spec) for spec in specs]
    missing = [(key, spec) for key, spec in zip(keys, specs, strict=True) if not store.has(study, key)]
    done = len(keys) - len(missing)
    finished(done)
    for key, spec in missing:
        before = capture()
        start = time.perf_counter()
        rows = list(run(spec))
        seconds = round(time.perf_counter() - start, 6)
        store.save(Run(study, key, fields_of(spec), rows, {**before, "seconds": seconds, "revision": revision}))
        done += 1
        finished(done)
    return keys
