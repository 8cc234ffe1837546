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

    from teeter.data import listening

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
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
        if not bar.tasks:
            bar.start()
        for old in bar.task_ids[:-1] if not new else bar.task_ids:
            bar.update(old, visible=False)
        task = bar.add_task(words) if new else bar.task_ids[-1]
        # A bar that stands at its end looks finished, and the last byte is not the last of the work.
        bar.update(task, completed=done, total=None if total is None or done >= total else total)

    try:
        with listening(show):
            yield
    finally:
        if bar.tasks:
            bar.stop()
