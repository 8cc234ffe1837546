"""Running the model: outputs as tensors, batches that fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from teeter.errors import InputError, NotFinite, TooLarge

__all__ = ["Batches", "hookable", "out_of_memory", "outputs", "unfused"]


def outputs(answer: Any, rows: int, check: bool = True) -> Tensor:
    """The logits of a batch, (rows,) or (rows, classes), or a clear error; `check` also looks for NaN, which waits
    for the device."""
    logits = getattr(answer, "logits", answer)
    if not isinstance(logits, Tensor):
        raise InputError(
            f"a model returns logits or a scalar for each input, got {type(answer).__name__}{_unwrapped(answer)}"
        )
    if logits.ndim not in (1, 2) or len(logits) != rows:
        raise InputError(
            f"a model given {rows} inputs returns ({rows},) or ({rows}, classes) numbers, got {tuple(logits.shape)}"
        )
    if check and not bool(torch.isfinite(logits).all()):
        raise NotFinite("the model returned NaN or infinity")
    return logits.detach()


def _unwrapped(answer: Any) -> str:
    """How to get at the logits of a model that returns several things.

    >>> _unwrapped({"scores": 1, "loss": 2})
    ": wrap it, for instance in lambda x: model(x)['scores']"
    """
    several = isinstance(answer, tuple | list | Mapping) and len(answer) > 0
    first = next(iter(answer)) if isinstance(answer, Mapping) else 0
    return f": wrap it, for instance in lambda x: model(x)[{first!r}]" if several else ""


def out_of_memory(problem: BaseException) -> bool:
    """Whether this says that memory has run out: on a CPU, and where kernels or graphs are made, torch raises a plain
    RuntimeError that does so in words."""
    kinds, words = (torch.OutOfMemoryError, MemoryError), ("can't allocate memory", "out of memory")
    return isinstance(problem, kinds) or any(each in str(problem).lower() for each in words)


@contextmanager
def hookable() -> Iterator[None]:
    """Without the fused encoder layer of torch, which runs no hooks and treats padding in its own way: every measure
    runs like this, so that all of them measure the same function."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def unfused() -> Iterator[None]:
    """Attention in plain steps as well: fused attention has no rule for vmap."""
    with hookable(), sdpa_kernel(SDPBackend.MATH):
        yield


class Batches:
    """Rows in batches: of a given size, or of one that is found; halved where memory runs out.

    What is computed for a row does not depend on its batch, so neither does the answer. On a CPU the size grows for
    as long as that makes a row cheaper; on a GPU, where larger is faster until memory ends, it grows without looking
    at the clock, since that would mean to wait for the device.
    """

    LARGEST = 8192

    def __init__(self, size: int | str, device: torch.device | str = "cpu") -> None:
        if size != "auto" and (not isinstance(size, int) or size < 1):
            raise InputError(f"batch is 'auto' or a size of at least 1, got {size!r}")
        self.growing = size == "auto"
        self.timed = torch.device(device).type == "cpu"
        self.size = int(size) if size != "auto" else 64 if self.timed else 1024
        self.pace = float("inf")  # seconds a row, the best so far

    def run(self, start: int, stop: int, work: Callable[[int, int], None]) -> None:
        """work(a, b) for consecutive stretches that cover start .. stop."""
        while start < stop:
            end = min(start + self.size, stop)
            begin = time.perf_counter()
            try:
                work(start, end)
            except (RuntimeError, MemoryError) as problem:
                if not out_of_memory(problem):
                    raise
                if self.size == 1:
                    raise TooLarge("there is not enough memory for a batch of one input") from problem
                self.size, self.growing = self.size // 2, False
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                continue
            self._grow(end - start, time.perf_counter() - begin)
            start = end

    def _grow(self, rows: int, seconds: float) -> None:
        if not self.growing or rows < self.size:
            return
        pace = seconds / rows if self.timed else 0.0
        self.growing = self.size < self.LARGEST and (not self.timed or pace < 0.9 * self.pace)
        if self.growing:
            self.pace, self.size = pace, self.size * 2
