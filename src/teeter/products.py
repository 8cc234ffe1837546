"""Float32 matrix products by oneDNN where torch would ask MKL, for whoever asks for them: TEETER_ONEDNN=1.

On AMD's processors with AVX-512 MKL uses half of each vector, and oneDNN is up to twice as fast (see
benchmarks/processor.py). torch asks it for float32 only where it is allowed bf16, by
`set_float32_matmul_precision("medium")`. oneDNN takes bf16 then only where a processor multiplies tiles of it (AMX),
which AMD's do not: products are float32 as before. That is checked, by products that bf16 would get wrong.

It has to be asked for since rounding, which training enlarges, then hangs on what is multiplied at once: with MKL, a
model trained in a stack of two or more comes out the same whatever the others are; with oneDNN it does not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

from teeter.errors import InputError

__all__ = ["able_to_ask", "by_onednn", "onednn_computes_float32", "precision_of_float32", "quick_products"]

_SHAPES = ((64, 128, 32), (257, 64, 96), (1024, 128, 512))  # (rows, what is summed over, columns)
_FLOAT32 = 1e-5  # of the largest entry: float32 is wrong by 1e-6 of it, bf16 by 1e-3


def by_onednn() -> bool:
    """Whether it is asked for, and torch would do so. Not where there is a GPU: what torch is told holds for that too,
    and there it would mean fewer bits."""
    return able_to_ask() and os.environ.get("TEETER_ONEDNN") == "1"


def able_to_ask() -> bool:
    """Whether torch would ask oneDNN, if it were told to."""
    return "AVX512" in torch.backends.cpu.get_cpu_capability() and not torch.cuda.is_available()


@cache
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


def precision_of_float32(device: str) -> str:
    """What to tell torch, so that float32 is computed as float32 on this type of device.

    >>> precision_of_float32("cuda")
    'highest'
    """
    if device != "cpu" or not by_onednn():
        return "highest"
    if not onednn_computes_float32():
        raise InputError("TEETER_ONEDNN=1 asks for float32, and oneDNN computes bf16 on this processor: leave it out")
    return "medium"


@contextmanager
def quick_products() -> Iterator[None]:
    """Within, in programs of our own: by oneDNN, where that is asked for."""
    if not by_onednn():
        yield
        return
    with _precision(precision_of_float32("cpu")):
        yield


@contextmanager
def _precision(kind: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(kind)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
