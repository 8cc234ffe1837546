"""What teeter raises: each error says what was given, what was expected, and what to do.

All of them are a `TeeterError`, which the command line prints as one line with exit code 2;
each is also the built-in exception a caller would expect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "MissingExtra", "NotFinite", "RunsFailed", "TeeterError", "TooLarge", "UnknownName"]


class TeeterError(Exception):
    """Something a user can mend."""


class InputError(TeeterError, ValueError):
    """An argument that does not mean anything here."""


class MissingExtra(InputError):
    """What needs a package that is not installed; the message says how to install it."""


class NotFinite(InputError):
    """A model whose answers are no longer numbers."""


class RunsFailed(TeeterError, RuntimeError):
    """Some of many runs; its cause is what went wrong in the first of them."""


class TooLarge(TeeterError, MemoryError):
    """A request that does not fit into memory; the message says how much it would take."""


class UnknownName(TeeterError, LookupError):
    """A name nobody has registered; the message offers the nearest one.

    >>> print(UnknownName("function", "parti", ["parity", "majority"]))
    no function named 'parti': did you mean 'parity'? There are: majority, parity
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
        hint = f": did you mean '{near[0]}'?" if near else "."
        super().__init__(f"no {kind} named '{name}'{hint} There are: {', '.join(names)}")
