"""A progress bar with the latest values, for `train(progress=...)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from teeter.train.loop import Progress
from teeter.train.run import Row

__all__ = ["bar", "words"]


@contextmanager
def bar() -> Iterator[Progress]:
    """Within: a bar on stderr, where that is a terminal, and nothing elsewhere; it is gone at the end.

    >>> with bar() as progress:
    ...     progress(50, 100, {"step": 50, "loss": 0.25, "rate": 0.1})
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with RichProgress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task, latest = shown.add_task(""), None

        def progress(step: int, steps: int, row: Row) -> None:
            nonlocal latest
            if row is not latest:  # words are made once a row, not once a step
                latest = row
                shown.update(task, total=steps, description=words(row))
            shown.update(task, completed=step)

        yield progress


def words(row: Row) -> str:
    """A row on one line, without the ends of intervals.

    >>> words({"step": 200, "loss": 0.0123456, "rate": 0.001, "accuracy": 1.0, "accuracy_low": 0.9})
    'loss 0.0123  accuracy 1'
    """
    shown = {name: value for name, value in row.items() if name not in ("step", "rate") and value is not None}
    return "  ".join(f"{name} {value:.3g}" for name, value in shown.items() if not name.endswith(("_low", "_high")))
