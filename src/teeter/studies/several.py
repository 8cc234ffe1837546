"""Several studies at once, or all of a paper: what they lack is made side by side, and no run twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from teeter.data import FetchFailed, MissingClient
from teeter.data.own import Absent
from teeter.errors import MissingExtra
from teeter.runs import Failures, Store, digest, execute, missing_groups, on_cores
from teeter.studies.study import Outcome, Study

__all__ = ["LACKING", "execute_all"]

LACKING = (Absent, MissingClient, FetchFailed, MissingExtra)  # what a study needs, and others do not
LeftOut = Callable[[str, Exception], object]


@dataclass(frozen=True)
class Item:
    """A run to be made: under whose name it is kept, and which studies look at it."""

    home: str
    spec: Any
    wanted_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.home}: {self.spec}"


Piece = Sequence[Item]  # those made together


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

    One process makes them one home after the other; several take from all in turn, so that unlike work shares a device.
    Once `seconds` are over, nothing more is begun. `left_out` is told of each study whose data cannot be had, or that
    needs a package that is not there; nothing more is made of it but what others want too. Without it, that is an
    error. That runs failed for other reasons is raised once all else is done. More than one process run what `STUDIES`
    has under the name of a study's home.

    >>> import tempfile
    >>> from teeter.studies import STUDIES
    >>> both = [STUDIES["hahn2024/functions"], STUDIES["vasudeva2025/synthetic-tables"]]
    >>> [len(outcome.provenance) for outcome in execute_all(both, "smoke", Store(tempfile.mkdtemp()))]
    [40, 7]
    """
    homes = {study.home.name: study.home for study in studies}
    wanted = {name: _wanted(name, studies, tier) for name in homes}
    lists = [_pieces(home, wanted[name], store) for name, home in homes.items()]
    there = sum(map(len, wanted.values())) - sum(len(piece) for pieces in lists for piece in pieces)
    finished(there)
    lacking: set[str] = set()

    def without(problem: Exception, piece: Piece) -> Callable[[Piece], bool] | None:
        if left_out is None or not isinstance(problem, LACKING):
            return None
        for name in dict.fromkeys(name for item in piece for name in item.wanted_by):
            if name not in lacking:
                lacking.add(name)
                left_out(name, problem)
        return lambda other: all(lacking.issuperset(item.wanted_by) for item in other)

    def told(count: int) -> None:
        finished(there + count)

    if workers == 1:
        _one_by_one(partial(_execute, homes, store), list(chain(*lists)), told, seconds, without)
    else:
        in_turn = [piece for piece in chain.from_iterable(zip_longest(*lists)) if piece is not None]
        on_cores(partial(_execute_here, store.folder), in_turn, workers, told, seconds, without)
    return [study.outcome(tier, store) for study in studies]


def _wanted(home: str, studies: Sequence[Study], tier: str) -> dict[Any, tuple[str, ...]]:
    """The specs of a home that these studies look at, and for each which do."""
    found: dict[Any, tuple[str, ...]] = {}
    for study in studies:
        if study.home.name == home:
            found |= {spec: (*found.get(spec, ()), study.name) for spec in study.specs(tier)}
    return found


def _pieces(home: Study, wanted: Mapping[Any, tuple[str, ...]], store: Store) -> list[Piece]:
    """Those that are not in the store. Runs of two studies are not made together: what is under way of the one would
    not be found when it is run alone."""
    keys, together = [digest(home.name, home.revision, spec) for spec in wanted], home.together
    if together is not None:
        together = replace(together, key=lambda spec, of=together.key: (wanted[spec][0], of(spec)))
    groups = missing_groups(store, home.name, keys, list(wanted), together)
    return [[Item(home.name, spec, wanted[spec]) for _, spec in group] for group in groups]


def _one_by_one(
    work: Callable[[Piece], object],
    pieces: Sequence[Piece],
    finished: Callable[[int], None],
    seconds: float | None,
    without: Callable[[Exception, Piece], Callable[[Piece], bool] | None],
) -> None:
    """What `on_cores` does, in this process."""
    begin, done, left = time.perf_counter(), 0, list(pieces)
    failures = Failures(len(left))
    while left and (seconds is None or time.perf_counter() - begin <= seconds):
        piece = left.pop(0)
        try:
            work(piece)
        except Exception as problem:
            alike = without(problem, piece)
            if alike is None:
                failures.add(problem, piece)
            else:
                left = [other for other in left if not alike(other)]
        else:
            done += len(piece)
            finished(done)
    failures.tell()


def _execute(homes: Mapping[str, Study], store: Store, piece: Piece) -> None:
    home = homes[piece[0].home]
    execute(store, home.name, home.revision, home.run, [item.spec for item in piece], together=home.together)


def _execute_here(folder: Path, piece: Piece) -> None:
    """In a process of its own."""
    from teeter.studies import STUDIES

    _execute(STUDIES, Store(folder), piece)
