"""What goes wrong in one of many runs, which is no reason to lose the others."""

from __future__ import annotations

import gc
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from teeter.errors import NotFinite, RunsFailed, TeeterError
from teeter.memory import give_back_memory

__all__ = ["Failures", "in_a_line", "let_go"]

_OF_ONE_RUN = (MemoryError, ArithmeticError, NotFinite)  # what a run may be too large for, or diverge to


class Failures:
    """Runs that failed while others of so many groups go on: each is told as it comes, and that there are any is raised
    in the end.

    An interrupt, and what the user can mend, a missing file or a full disk, would meet the others too, and is raised
    where it comes; so is what goes wrong in the only group there is.
    """

    def __init__(self, groups: int) -> None:
        self.groups, self.failed = groups, 0
        self.first: tuple[str, Exception] | None = None

    def add(self, problem: BaseException, specs: Sequence[Any], words: str | None = None) -> None:
        """A group of specs failed; `words` where they are not the problem's, of which the first line is told."""
        mendable = isinstance(problem, (TeeterError, OSError)) and not isinstance(problem, _OF_ONE_RUN)
        if self.groups == 1 or mendable or not isinstance(problem, Exception):
            raise problem
        line = (words or in_a_line(problem)).partition("\n")[0]
        self.failed += 1
        self.first = self.first or (line, problem)
        more = f" and {len(specs) - 1} more" if len(specs) > 1 else ""
        warnings.warn(f"{specs[0]}{more} failed: {line}", RuntimeWarning, stacklevel=3)
        let_go(problem)

    def tell(self) -> None:
        if self.first is not None:
            line, problem = self.first
            raise RunsFailed(
                f"{self.failed} of {self.groups} groups of runs failed, the first with {line}; what did not is kept, "
                "and the same command tries these again"
            ) from problem


def in_a_line(problem: BaseException) -> str:
    """Its kind, and the first line of what it says."""
    words = str(problem).strip().partition("\n")[0]
    return f"{type(problem).__name__}: {words}" if words else type(problem).__name__


def let_go(problem: BaseException | None) -> None:
    """Of all that was at work when it was raised, which an exception holds: models, and their gradients. Only then is
    there memory to give back."""
    while problem is not None:
        traceback.clear_frames(problem.__traceback__)
        problem = problem.__cause__ or problem.__context__
    gc.collect()
    give_back_memory()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
