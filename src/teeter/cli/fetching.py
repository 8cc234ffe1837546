"""What a user sees while data comes: a bar on a terminal, a line for each step elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["fetching"]


@contextmanager
def fetching() -> Iterator[None]:
    """Shows every download and decoding within the block on stderr; where there is none, nothing at all."""
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    from teeter.data.progress import listening

    console = Console(stderr=True)
    # What is being done comes last and is cut where the terminal is narrow; the numbers are not.
    numbers = (BarColumn(20), DownloadColumn(table_column=Column(min_width=14, no_wrap=True)))
    elapsed = TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True))
    words = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (SpinnerColumn(), *numbers, elapsed, words)
    bar = Progress(*columns, console=console, transient=True)
    said: list[str] = []

    def show(words: str, done: int, total: int | None) -> None:
        new = words not in said[-1:]
        if new:
            said.append(words)
        if not console.is_terminal:
            if new:
                print(words, file=sys.stderr)
            return
        if new:
            for old in bar.task_ids:
                bar.update(old, visible=False)
            bar.add_task(words, total=total)
            bar.start()
        bar.update(bar.task_ids[-1], completed=done)

    try:
        with listening(show):
            yield
    finally:
        if bar.tasks:
            bar.stop()
