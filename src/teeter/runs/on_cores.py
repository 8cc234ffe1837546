"""Work that is shared out among processes on this machine, each of which takes the next piece when it is done with one.

Processes are started afresh rather than forked: a GPU, or threads, would not outlive a fork. Each has its share of the
cores. They write to the store themselves, and nothing but how far they are comes back.

The keyboard is the parent's business: Ctrl-C reaches no worker by itself, wherever it is in its work, and the parent
tells each of them once. A worker whose parent is gone ends too.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from teeter.errors import InputError, NotFinite, TeeterError
from teeter.memory import keep_freed_memory
from teeter.runs.failures import Failures, in_a_line, let_go

__all__ = ["on_cores"]

_UNIX = os.name == "posix"
_STOP: Any = None  # in a worker: set when nothing more is to be begun


def on_cores(
    work: Callable[[Sequence[Any]], object],
    pieces: Sequence[Sequence[Any]],
    workers: int,
    finished: Callable[[int], None] = lambda count: None,
    seconds: float | None = None,
    without: Callable[[Exception, Any], Callable[[Any], bool] | None] = lambda problem, piece: None,
) -> None:
    """Do `work(piece)` for all pieces, in so many processes; `work` is a function that they can import, and a script
    that calls this has `if __name__ == "__main__":` around what it does.

    `finished` is told how many things of all pieces are done. Once `seconds` are over, nothing more is begun. Ctrl-C,
    or an error that the user can mend, interrupts the others, which keep what they keep when they are interrupted; that
    pieces failed for other reasons is raised once the others are done (see `Failures`). `without` is asked first of
    every problem with a piece: where it answers with a test, nothing is interrupted or raised, and the pieces that are
    left and pass the test are left out.
    """
    if workers < 1:
        raise InputError(f"work is done by at least one process, got {workers}")
    begin, done, left = time.perf_counter(), 0, list(reversed(pieces))
    workers = max(1, min(workers, len(pieces)))
    at_work: dict[Future[None], Sequence[Any]] = {}
    failures = Failures(len(pieces))
    others, fresh = set(multiprocessing.active_children()), multiprocessing.get_context("spawn")
    stop, share = fresh.Event(), max(1, torch.get_num_threads() // workers)
    with ProcessPoolExecutor(workers, fresh, _begin, (share, stop)) as pool:
        try:
            while left or at_work:
                while left and len(at_work) < workers:
                    if seconds is not None and time.perf_counter() - begin > seconds:
                        left.clear()
                        break
                    piece = left.pop()
                    with _deaf():
                        at_work[pool.submit(_do, work, piece)] = piece
                for ended in wait(at_work, return_when=FIRST_COMPLETED).done:
                    piece = at_work.pop(ended)
                    try:
                        ended.result()  # raises what went wrong
                    except BrokenProcessPool:
                        raise
                    except Exception as problem:  # in a RuntimeError, what `_do` makes of it
                        alike = without(problem, piece)
                        if alike is not None:
                            left = [other for other in left if not alike(other)]
                            continue
                        failures.add(problem, piece, str(problem) if isinstance(problem, RuntimeError) else None)
                    else:
                        done += len(piece)
                        finished(done)
        except BrokenProcessPool:
            raise InputError(
                "a process ended without a word: there may be no memory for so many, or the script that starts them "
                'lacks `if __name__ == "__main__":`'
            ) from None
        except BaseException:
            with _deaf():  # a second Ctrl-C, until all are told of the first
                stop.set()
                _interrupt(set(multiprocessing.active_children()) - others)
            raise
    failures.tell()


@contextmanager
def _deaf() -> Iterator[None]:
    """What is started in here does not hear the keyboard until `_begin`; this process hears it once it is out again."""
    if not _UNIX or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(processes: set[BaseProcess]) -> None:
    for each in processes:
        if _UNIX and each.pid is not None and each.is_alive():  # elsewhere the console tells them
            os.kill(each.pid, signal.SIGINT)


def _begin(threads: int, stop: Any) -> None:
    """In a new process: while it waits for work, an interrupt is none of its business."""
    global _STOP
    _STOP = stop
    keep_freed_memory()
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _UNIX:
        os.setpgid(0, 0)  # the terminal speaks to the parent's group
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _do(work: Callable[[Sequence[Any]], object], piece: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if _STOP.is_set():  # told while it was reading what to do
            raise KeyboardInterrupt
        work(piece)
        return
    except (TeeterError, OSError) as problem:
        told = _anew(problem)
        let_go(problem)
    except (Exception, SystemExit) as problem:
        told = RuntimeError(f"{in_a_line(problem)}\n{traceback.format_exc()}")
        let_go(problem)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise told  # out here, where it no longer holds what was at work


def _anew(problem: TeeterError | OSError) -> Exception:
    """The same error, as it can be sent to another process; else one that says the same."""
    with suppress(TypeError):
        made = type(problem)(*problem.args)
        if str(made) == str(problem):
            return made
    return (NotFinite if isinstance(problem, ArithmeticError) else InputError)(str(problem))
