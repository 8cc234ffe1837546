"""A training step that is compiled, or launched as one CUDA graph: its kernels are recorded once and then launched
together, since small models otherwise spend their time waiting for launches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.measure.forward import out_of_memory

__all__ = ["Recorded", "room_to_compile"]

_REHEARSALS = 3  # in which compilers and allocators settle


class Recorded:
    """What a function of tensors does on a GPU: recorded at the first call, and launched at every one, with what is
    given copied to where the recording reads it.

    All that the function changes has to stay where it is, and nothing in it may wait for the device.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.given: list[Tensor] = []
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, work: Callable[..., None], state: Callable[[], Iterable[Tensor]], *given: Tensor) -> None:
        """One call. `state` gives the tensors that the function changes: rehearsals leave no trace in them. Both come
        with every call: kept here, they would keep all that they belong to."""
        if self.graph is None:
            self.given = [part.clone() for part in given]
            self.graph = self._record(work, state)
        self._take(given)
        self.graph.replay()

    def _record(self, work: Callable[..., None], state: Callable[[], Iterable[Tensor]]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        before = {id(each): (each, each.detach().clone()) for each in state()}
        random = torch.cuda.get_rng_state(self.device)
        try:
            with torch.cuda.device(self.device), _in_one_order():
                stream, here = _stream(self.device), torch.cuda.current_stream()
                stream.wait_stream(here)
                with torch.cuda.stream(stream):  # in the default one nothing can be recorded
                    for _ in range(_REHEARSALS):
                        work(*self.given)
                here.wait_stream(stream)
                self._capture(graph, stream, work)
        finally:
            with torch.no_grad():
                for each in state():
                    if id(each) in before:
                        each.copy_(before[id(each)][1])
                    else:  # what an optimizer makes at its first step is 0 before it
                        each.zero_()
            torch.cuda.set_rng_state(random, self.device)
        return graph

    def _capture(self, graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, work: Callable[..., None]) -> None:
        try:
            with torch.cuda.graph(graph, stream=stream):  # torch's own choice of a stream may be on another device
                work(*self.given)
        except RuntimeError as problem:
            if out_of_memory(problem):
                raise
            raise InputError(
                f"a step cannot be recorded ({str(problem).splitlines()[0]}): nothing in it may wait for the device, "
                'as .item() and printing do; compile="default" does not record'
            ) from problem

    def _take(self, given: tuple[Tensor, ...]) -> None:
        for place, part in zip(self.given, given, strict=True):
            if place.shape != part.shape or place.dtype != part.dtype:
                raise InputError(
                    f"all batches of a recorded run are alike, got {part.dtype} {tuple(part.shape)} "
                    f"after {place.dtype} {tuple(place.shape)}"
                )
            place.copy_(part)


@contextmanager
def _in_one_order() -> Iterator[None]:
    """What is compiled and recorded here adds up in the same order every time. Compilers otherwise let the gradients of
    an embedding come in as they come, and a run that is resumed differs in its last digits."""
    memory: Any = torch.utils.deterministic  # its one setting is unknown to type checkers
    before, filled = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*use_deterministic_algorithms")  # of kernels without such a twin
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)
            memory.fill_uninitialized_memory = False  # which costs time, and mends nothing
            yield
        finally:
            torch.set_deterministic_debug_mode(before)
            memory.fill_uninitialized_memory = filled


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
