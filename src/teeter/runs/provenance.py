"""Where a number came from: which code, which versions, which hardware, when."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import teeter

__all__ = ["capture", "elapsed"]

_PACKAGES = ("torch", "numpy", "scipy", "pandas")


def capture() -> dict[str, str | int | None]:
    """What a reader needs to judge, or repeat, a measurement; nothing that names a person or a machine."""
    return {"when": datetime.now(UTC).isoformat(timespec="milliseconds"), **_setting()}


def elapsed(provenances: Iterable[Mapping[str, Any]]) -> float:
    """Seconds in which at least one of these runs was under way: what ran side by side counts once, on several
    machines too, and what was interrupted and resumed counts in its slices. What a run that was killed took before is
    not known.

    >>> one = {"when": "2026-01-01T12:00:00+00:00", "seconds": 4.0, "together": 2}  # two as one program, in 8 seconds
    >>> beside = {"when": "2026-01-01T12:00:06+00:00", "seconds": 5.0, "together": 1}
    >>> within = {"when": "2026-01-01T12:00:07+00:00", "seconds": 1.0, "together": 1}
    >>> later = {"when": "2026-01-01T13:00:00.500+00:00", "seconds": 3.0}
    >>> elapsed([later, one, beside, one, within])
    14.0
    >>> resumed = {**later, "seconds": 7.0, "slices": [["2026-01-01T12:30:00+00:00", 4.0], [later["when"], 3.0]]}
    >>> elapsed([resumed])
    7.0
    """
    spans = set()
    for each in provenances:
        whole = [(each["when"], each["seconds"] * each.get("together", 1))]
        for when, seconds in each.get("slices", whole):
            begin = datetime.fromisoformat(when).timestamp()
            spans.add((begin, begin + seconds))
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(end - max(begin, until), 0)
        until = max(until, end)
    return total


@cache
def _setting() -> dict[str, str | int | None]:
    return {
        "teeter": teeter.__version__,
        "commit": _commit(Path(teeter.__file__).parent),
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "system": platform.system(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit(package: Path) -> str | None:
    """The commit of the checkout teeter runs from, with "+" if files differ from it; None outside one."""
    try:
        # Tracked, not merely inside some repository: a copy installed into another project has no commit here.
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(package, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(package, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
