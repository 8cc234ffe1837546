"""Work that is shared out among processes on this machine, each of which takes the next piece when it is done with one.

Processes are started afresh rather than forked: a GPU, or threads, would not outlive a fork. Each has its share of the
cores. They write to the store themselves, and nothing but how far they are comes back.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch

from teeter.errors import InputError, TeeterError

__all__ = ["on_cores"]


def on_cores(
    work: Callable[[Sequence[Any]], object],
    pieces: Sequence[Sequence[Any]],
    workers: int,
    finished: Callable[[int], None] = lambda count: None,
    seconds: float | None = None,
) -> None:
    """Do `work(piece)` for all pieces, in so many processes; `work` is a function that they can import.

    `finished` is told how many things of all pieces are done. Once `seconds` are over, nothing more is begun. Ctrl-C
    reaches those that are at work, which keep what they keep. What goes wrong in one ends it all, when the others are
    done with what they have.
    """
    if workers < 1:
        raise InputError(f"work is done by at least one process, got {workers}")
    begin, done = time.perf_counter(), 0
    at_work: dict[Future[None], int] = {}
    left = list(reversed(pieces))
    share = max(1, (os.cpu_count() or 1) // workers)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (share,)) as pool:
        try:
            while left or at_work:
                while left and len(at_work) < workers:
                    if seconds is not None and time.perf_counter() - begin > seconds:
                        left.clear()
                        break
                    piece = left.pop()
                    at_work[pool.submit(_do, work, piece)] = len(piece)
                for ended in wait(at_work, return_when=FIRST_COMPLETED).done:
                    done += at_work.pop(ended)
                    ended.result()  # raises what went wrong
                    finished(done)
        except BrokenProcessPool:
            raise InputError(
                "a process ended without a word, as one does for which there is no memory: take fewer of them"
            ) from None


def _begin(threads: int) -> None:
    """In a new process: while it waits for work, the keyboard is not its business."""
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _do(work: Callable[[Sequence[Any]], object], piece: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        work(piece)
    except TeeterError as problem:  # of whatever kind: not all of them can be sent from process to process
        raise InputError(str(problem)) from None
    except Exception:
        raise RuntimeError(traceback.format_exc()) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
