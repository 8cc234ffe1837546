"""Memory that is freed and soon wanted again, as in training and measuring on a processor."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

__all__ = ["give_back_memory", "keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # mallopt's names for them, in glibc's malloc.h
_NEVER = -1
_kept = False


def keep_freed_memory() -> bool:
    """Ask the C library to keep what this process frees, for the next tensor of that size; whether it will.

    glibc gives large blocks back to the system at once and asks for them anew, page by page, at the next layer of the
    next step: a vision transformer is twice as fast without that (benchmarks/processor.py). Other C libraries
    are left as they are. What is kept can come to several times what was ever needed at once, since a block does not
    always fit where another was: so this is for programs of our own, which `give_back_memory` when a piece of work is
    done, and not for whoever imports teeter. With TEETER_KEEP_MEMORY=0 nothing is asked.
    """
    global _kept
    if not sys.platform.startswith("linux") or os.environ.get("TEETER_KEEP_MEMORY") == "0":
        return False
    with suppress(AttributeError, OSError):  # not glibc
        ask = ctypes.CDLL(None).mallopt
        if all([ask(_MMAP_MAX, 0), ask(_TRIM_THRESHOLD, _NEVER)]):
            _kept = True
            return True
    return False


def give_back_memory() -> None:
    """Give the system what is kept and not in use, wherever it lies; nothing where nobody asked that it be kept."""
    if _kept:
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
