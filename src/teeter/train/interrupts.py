"""Ctrl-C that waits for the end of a step, so that weights are never left half moved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupts"]


class Interrupts:
    """Within the block, a first Ctrl-C sets `asked` and nothing else; a second one interrupts at once, as ever.

    Within `allowed()`, where nothing can be left half done, the first one leaves that block at once. In a thread other
    than the main one, which the keyboard does not reach, nothing changes.

    >>> with Interrupts() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupts.asked
    True
    """

    def __init__(self) -> None:
        self.asked = False
        self._at_once = False
        self._before = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *problem: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Where an interrupt does no harm: it ends the block, and `asked` says so."""
        self._at_once = True
        try:
            yield
        except KeyboardInterrupt:
            self.asked = True
        finally:
            self._at_once = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if again or self._at_once:
            raise KeyboardInterrupt
