"""A training step that is compiled, or launched as one CUDA graph: its kernels are recorded once and then launched
together, since small models otherwise spend their time waiting for launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor

from teeter.errors import InputError

__all__ = ["Recorded", "room_to_compile"]

_BEFORE = 3  # steps that are done kernel by kernel, in which compilers and allocators settle


class Recorded:
    """What a function of tensors does on a GPU. The first calls are made as they are; the next is recorded, and from
    then on what is given is copied to where the recording reads it.

    All else that the function reads and writes has to stay where it is, and nothing in it may wait for the device.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.calls = device, 0
        self.given: list[Tensor] = []
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, work: Callable[..., None], *given: Tensor) -> None:
        """One call. The function comes with each: kept here, it would keep all that it belongs to."""
        if self.calls < _BEFORE:
            self._aside(work, given)
        else:
            if self.graph is None:
                self.graph = self._record(work, given)
            self._take(given)
            self.graph.replay()
        self.calls += 1

    def _aside(self, work: Callable[..., None], given: tuple[Tensor, ...]) -> None:
        """One call in a stream that is not the default one, where nothing could be recorded."""
        with torch.cuda.device(self.device):
            stream, here = _stream(self.device), torch.cuda.current_stream()
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                work(*given)
            here.wait_stream(stream)

    def _record(self, work: Callable[..., None], given: tuple[Tensor, ...]) -> torch.cuda.CUDAGraph:
        self.given, graph = [part.clone() for part in given], torch.cuda.CUDAGraph()
        with torch.cuda.device(self.device), torch.cuda.graph(graph):
            work(*self.given)
        return graph

    def _take(self, given: tuple[Tensor, ...]) -> None:
        for place, part in zip(self.given, given, strict=True):
            if place.shape != part.shape or place.dtype != part.dtype:
                raise InputError(
                    f"all batches of a recorded run are alike, got {part.dtype} {tuple(part.shape)} "
                    f"after {place.dtype} {tuple(place.shape)}"
                )
            place.copy_(part)


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One for all: each has a workspace of its own, which stays."""
    return torch.cuda.Stream(device)


@contextmanager
def room_to_compile(compile: bool) -> Iterator[None]:
    """Every run is compiled anew, though torch takes many programs of one function for a mistake and compiles no more
    after eight."""
    if not compile:
        yield
        return
    with torch._dynamo.config.patch(recompile_limit=1000, accumulated_recompile_limit=1000):
        yield
