"""What a user sees while data comes: a bar on a terminal, a line for each step elsewhere."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console

__all__ = ["fetching", "orderly_end"]


@contextmanager
def fetching() -> Iterator[None]:
    """Shows every download and decoding within the block on stderr; where there is none, nothing at all. Whoever asks
    the process to end meanwhile leaves nothing half-written."""
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
        with orderly_end(), listening(show):
            yield
    finally:
        if bar.tasks:
            bar.stop()


@contextmanager
def orderly_end() -> Iterator[None]:
    """SIGTERM and SIGHUP end the process the way an error does, so that what is half done is cleared away.

    By default they would end it on the spot: its client would go on downloading, into a folder nobody takes up.
    """
    if threading.current_thread() is not threading.main_thread():  # handlers are the main thread's
        yield
        return

    def end(number: int, frame: Any) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]  # nohup has them ignored
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
