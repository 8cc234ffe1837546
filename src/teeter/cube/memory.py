"""How much memory there is, asked before a table is made rather than after the machine is on its knees."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from teeter.errors import TooLarge

__all__ = ["available", "require"]

_CGROUP = Path("/sys/fs/cgroup")


def available(device: torch.device | str = "cpu") -> int:
    """Bytes that can be allocated on the device now, as far as the system tells."""
    if torch.device(device).type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, ready for reuse
        return torch.cuda.mem_get_info(device)[0] + kept
    rooms = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                rooms.append(int(line.split()[1]) * 1024)
        limit = (_CGROUP / "memory.max").read_text().strip()
        if limit != "max":  # a container sees the whole machine in meminfo but is held to this
            used = int((_CGROUP / "memory.current").read_text())
            pages = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
            rooms.append(int(limit) - used + int(pages["inactive_file"]))  # cached files give way
    except (OSError, ValueError, KeyError):
        pass  # not every system has these files; physical memory is then the answer
    return max(0, min(rooms))


def readable(size: float) -> str:
    """
    >>> readable(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            return f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def require(size: int, purpose: str, device: torch.device | str = "cpu") -> None:
    """Raise `TooLarge` unless `size` bytes are there."""
    room = available(device)
    if size > room:
        raise TooLarge(f"{purpose} needs {readable(size)} of memory and {readable(room)} are available on {device}")
