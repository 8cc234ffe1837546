"""Several studies at once, or all of a paper: what they lack is made side by side, and no run twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from teeter.data import FetchFailed, MissingClient
from teeter.data.own import Absent
from teeter.runs import Store, digest, execute, missing_groups, on_cores
from teeter.studies.study import Outcome, Study

__all__ = ["LACKING", "execute_all"]

LACKING = (Absent, MissingClient, FetchFailed)  # data that a study needs, and others do not
LeftOut = Callable[[str, Exception], object]
Piece = Sequence[tuple[str, Any]]  # runs that are made together: under whose name they are kept, and their specs


def execute_all(
    studies: Sequence[Study],
    tier: str,
    store: Store,
    finished: Callable[[int], None] = lambda count: None,
    seconds: float | None = None,
    workers: int = 1,
    left_out: LeftOut | None = None,
) -> list[Outcome]:
    """Run what the tier of these studies still lacks, in so many processes, then judge each.

    One process makes them study by study; several take from all studies in turn, so that unlike work shares a device.
    Once `seconds` are over, nothing more is begun. `left_out` is told of each study (under the name of its home) whose
    data cannot be had, and the others go on; without it, that is an error. More than one process run what `STUDIES` has
    under the name of a study's home.

    >>> import tempfile
    >>> from teeter.studies import STUDIES
    >>> both = [STUDIES["hahn2024/functions"], STUDIES["vasudeva2025/synthetic-tables"]]
    >>> [len(outcome.provenance) for outcome in execute_all(both, "smoke", Store(tempfile.mkdtemp()))]
    [40, 7]
    """
    wanted: dict[str, tuple[Study, dict[Any, None]]] = {}
    for study in studies:
        wanted.setdefault(study.home.name, (study.home, {}))[1].update(dict.fromkeys(study.specs(tier)))
    for name in wanted:
        store.prepare(name)
    given = [(home, list(specs)) for home, specs in wanted.values()]
    (_one_by_one if workers == 1 else partial(_side_by_side, workers=workers))(
        given, store, finished, seconds=seconds, left_out=left_out
    )
    return [study.outcome(tier, store) for study in studies]


def _one_by_one(
    given: Sequence[tuple[Study, list[Any]]],
    store: Store,
    finished: Callable[[int], None],
    *,
    seconds: float | None,
    left_out: LeftOut | None,
) -> None:
    begin, done = time.perf_counter(), 0
    for home, specs in given:
        left = None if seconds is None else max(seconds - (time.perf_counter() - begin), 0.0)
        try:
            execute(
                store,
                home.name,
                home.revision,
                home.run,
                specs,
                lambda count, before=done: finished(before + count),
                home.together,
                left,
            )
        except LACKING as problem:
            if left_out is None:
                raise
            left_out(home.name, problem)
        done += sum(store.has(home.name, digest(home.name, home.revision, spec)) for spec in specs)


def _side_by_side(
    given: Sequence[tuple[Study, list[Any]]],
    store: Store,
    finished: Callable[[int], None],
    *,
    workers: int,
    seconds: float | None,
    left_out: LeftOut | None,
) -> None:
    lists: list[list[Piece]] = []
    for home, specs in given:
        keys = [digest(home.name, home.revision, spec) for spec in specs]
        groups = missing_groups(store, home.name, keys, specs, home.together)
        lists.append([[(home.name, spec) for _, spec in group] for group in groups])
    in_turn = [piece for piece in chain.from_iterable(zip_longest(*lists)) if piece is not None]
    told: set[str] = set()
    there = sum(len(specs) for _, specs in given) - sum(map(len, in_turn))
    finished(there)

    def without(problem: Exception, piece: Piece) -> Callable[[Piece], bool] | None:
        if left_out is None or not isinstance(problem, LACKING):
            return None
        name = piece[0][0]
        if name not in told:  # others of it may have been under way
            left_out(name, problem)
        told.add(name)
        return lambda other: other[0][0] == name

    on_cores(
        partial(_execute_here, store.folder), in_turn, workers, lambda count: finished(there + count), seconds, without
    )


def _execute_here(folder: Path, piece: Piece) -> None:
    """Some runs of a study, in a process of their own."""
    from teeter.studies import find

    study = find(piece[0][0])
    specs = [spec for _, spec in piece]
    execute(Store(folder), study.name, study.revision, study.run, specs, together=study.together)
