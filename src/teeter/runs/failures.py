"""What goes wrong in one of many runs, which is no reason to lose the others."""

from __future__ import annotations

import warnings

from teeter.errors import TeeterError

__all__ = ["Failures"]


class Failures:
    """Runs that failed while others go on: each is told as it comes, where there are `more`, and the first is raised in
    the end.

    An interrupt, and what the user can mend, a missing file or a full disk, would meet the others too, and is raised
    where it comes.
    """

    def __init__(self) -> None:
        self.problems: list[Exception] = []

    def add(self, problem: BaseException, more: bool) -> None:
        if not isinstance(problem, Exception) or isinstance(problem, (TeeterError, OSError)):
            raise problem
        self.problems.append(problem)
        if more:
            words = str(problem).strip() or type(problem).__name__
            warnings.warn(f"a run failed, and the others go on: {words.splitlines()[-1]}", RuntimeWarning, stacklevel=3)

    def tell(self) -> None:
        if self.problems:
            first = self.problems[0]
            first.add_note(f"{len(self.problems)} failed, this one first; what did not is kept")
            raise first
