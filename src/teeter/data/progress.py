"""Who hears of long work: a reader deep in a call tells, and whoever called it at the top listens.

A data set may be fetched and decoded the first time it is read, in the middle of anything. The listener is set around
that, so that no reader needs an argument for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Progress", "listening", "tell"]

Progress = Callable[[str, int, int | None], None]  # what is being done, bytes so far, of how many if that is known

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(progress: Progress) -> Iterator[None]:
    """Let `progress` hear of every fetch and decoding within the block.

    >>> with listening(lambda words, done, total: print(words, done, total)):
    ...     tell("downloading", 10, 20)
    downloading 10 20
    >>> tell("nobody hears this")
    """
    token = _LISTENER.set(progress)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(words: str, done: int = 0, total: int | None = None) -> None:
    """Say what is being done to whoever listens."""
    if (progress := _LISTENER.get()) is not None:
        progress(words, done, total)
