"""Which library computes float32 matrix products on a processor: torch has two, and asks the slower one on AMD's.

That is MKL, which on a processor of AMD uses vectors half as wide as AVX-512's. oneDNN uses all of them: products are
twice as fast (benchmarks/processor.py). torch asks it for float32 only where it is allowed bf16, by
`set_float32_matmul_precision("medium")`. oneDNN then takes bf16 only for units that multiply tiles of it (AMX), which
no such processor has, so that products are float32 as before. This is checked, in both ways, before anything relies on
it: by what the processor says of itself, and by products that bf16 would get wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

__all__ = ["is_faster_by_onednn", "onednn_computes_float32", "precision_of_float32", "quick_products"]

_CPUINFO = Path("/proc/cpuinfo")
_WIDE = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
_SHAPES = ((64, 128, 32), (257, 64, 96), (1024, 128, 512))  # (rows, what is summed over, columns)
_FLOAT32 = 1e-5  # of the largest entry: float32 is wrong by 1e-6 of it, bf16 by 1e-3


def is_faster_by_onednn(cpuinfo: str) -> bool:
    """Whether the processor, of which Linux tells this, is AMD's with AVX-512 and without units for bf16 tiles.

    >>> is_faster_by_onednn("vendor_id : GenuineIntel")
    False
    """
    told: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())  # of the first core
    flags = set(told.get("flags", "").split())
    tiles = any(flag.startswith("amx") for flag in flags)
    return told.get("vendor_id") == "AuthenticAMD" and flags >= _WIDE and not tiles


def onednn_computes_float32() -> bool:
    """Whether products are float32 to the last bits where bf16 is allowed."""
    with _precision("medium"):
        return all(_error(*shape) < _FLOAT32 for shape in _SHAPES)


def _error(rows: int, inner: int, columns: int) -> float:
    """Of products, alone and in a batch, as a share of the largest entry."""
    random = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, rows, inner, generator=random), torch.randn(2, inner, columns, generator=random)
    exact = a.double() @ b.double()
    worst = torch.stack([(a @ b - exact).abs().max(), (a[0] @ b[0] - exact[0]).abs().max()]).max()
    return float(worst / exact.abs().max())


@cache
def precision_of_float32(device: str) -> str:
    """What to tell torch, so that float32 is computed as float32 on this type of device, and fast.

    >>> precision_of_float32("cuda")
    'highest'
    """
    if device != "cpu" or os.environ.get("TEETER_ONEDNN") == "0" or not _CPUINFO.exists():
        return "highest"
    both = torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()
    return "medium" if both and is_faster_by_onednn(_CPUINFO.read_text()) and onednn_computes_float32() else "highest"


@contextmanager
def quick_products() -> Iterator[None]:
    """Within, in programs of our own: float32 by the faster library. Where there is a GPU nothing changes, since what
    torch is told holds for that too, and there it would mean fewer bits. With TEETER_ONEDNN=0 it is left alone."""
    if torch.cuda.is_available() or precision_of_float32("cpu") == "highest":
        yield
        return
    with _precision("medium"):
        yield


@contextmanager
def _precision(kind: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(kind)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
