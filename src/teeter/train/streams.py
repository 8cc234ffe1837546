"""Where batches come from: a stream is a pure function from the number of a step to (inputs, targets).

Nothing is carried from one step to the next, so a run that is resumed, or one model of many, sees the batches it would
have seen. All tensors stay on the device they are on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from teeter import counter
from teeter.data import labelled_bits
from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, count, device_of, take

__all__ = ["Augment", "Stream", "BitStream", "Counted", "Drawn", "counted", "shuffled", "whole"]

Stream: TypeAlias = Callable[[int], tuple[Inputs, Tensor]]
Augment: TypeAlias = Callable[..., Inputs]  # (inputs, index of each in the data set, seed=, epoch=) -> inputs


@dataclass(frozen=True)
class BitStream:
    """Uniform strings of n bits ±1, new ones at every step, with what a function on the cube says of them (H 7.1).

    >>> from teeter import cube
    >>> x, y = BitStream(cube.parity, 6, batch=4, seed=0)(17)
    >>> x.shape, torch.equal(y, x.prod(-1))
    (torch.Size([4, 6]), True)
    """

    f: Callable[[Tensor], Tensor]
    n: int
    batch: int
    seed: int
    device: torch.device | str = "cpu"
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if self.n < 1 or self.batch < 1:
            raise InputError(f"a batch has at least one string of at least one bit, got {self.batch} of {self.n}")

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        return labelled_bits(
            self.f, self.n, self.batch, seed=self.seed, step=step, device=self.device, dtype=self.dtype
        )


@dataclass(frozen=True, eq=False)
class Drawn:
    """Inputs of a set with their targets, each drawn at random and put back: batches may be larger than the set.

    >>> x, y = Drawn(torch.arange(3), 10 * torch.arange(3), batch=5, seed=0)(7)
    >>> x.shape, torch.equal(y, 10 * x)
    (torch.Size([5]), True)
    """

    inputs: Tensor
    targets: Tensor
    batch: int
    seed: int

    def __post_init__(self) -> None:
        _paired(self.inputs, self.targets)
        if self.batch < 1:
            raise InputError(f"a batch has at least one input, got {self.batch}")

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        index = self.index(step)
        return self.inputs[index], self.targets[index]

    def index(self, step: int) -> Tensor:
        """Which are drawn."""
        row = torch.arange(self.batch, device=self.inputs.device)
        return counter.integers(len(self.inputs), self.seed, step, row)


@dataclass(frozen=True, eq=False)
class Counted:
    """The batches of a `Drawn` with each input once, for the loss "shared-mse": targets are (target, share of the batch
    that is this input). What is learned is the same, from fewer rows: 736 for a batch of 1,024 from as many inputs.

    >>> drawn = Drawn(torch.arange(3), 10 * torch.arange(3), batch=4, seed=0)
    >>> drawn(0)[0]
    tensor([1, 2, 2, 2])
    >>> Counted(drawn)(0)
    (tensor([1, 2, 0]), tensor([[10.0000,  0.2500],
            [20.0000,  0.7500],
            [ 0.0000,  0.0000]], dtype=torch.float64))
    """

    drawn: Drawn

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        chosen, shares = counted(self.drawn.index(step), len(self.drawn.inputs))
        return self.drawn.inputs[chosen], torch.stack([self.drawn.targets[chosen].to(shares), shares], -1)


def counted(index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Of batches (..., batch) from a set of this size: those that were drawn, each once, and their shares. All have
    room for as many as may be drawn; what is left is filled with others, whose share is 0."""
    batch = index.shape[-1]
    counts = index.new_zeros(*index.shape[:-1], size).scatter_add_(-1, index, torch.ones_like(index))
    chosen = (counts == 0).byte().argsort(dim=-1, stable=True)[..., : _room(size, batch)]
    return chosen, counts.gather(-1, chosen).double() / batch


def _room(size: int, batch: int) -> int:
    """More than are drawn from a set of this size: eight standard deviations above the mean, in whole lines.

    >>> _room(1024, 1024), _room(128, 1024), _room(10**6, 8)
    (736, 128, 8)
    """
    spared, two = (1 - 1 / size) ** batch, (1 - 2 / size) ** batch if size > 1 else 0.0  # this one, these two
    variance = max(size * (size - 1) * two + size * spared - (size * spared) ** 2, 0.0)
    return min(size, batch, 32 * math.ceil((size * (1 - spared) + 8 * math.sqrt(variance)) / 32))


def shuffled(inputs: Inputs, targets: Tensor, batch: int, seed: int, augment: Augment | None = None) -> Stream:
    """All inputs once, in a random order, then all of them again in another: epochs without replacement.

    The order of an epoch is a pure function of (seed, epoch). Every batch is full: one that reaches the end of an epoch
    goes on with the first of the next. `augment(inputs, index, seed=, epoch=)` may change what a batch holds, as
    `teeter.data.crop_and_flip` does.

    >>> stream = shuffled(torch.arange(6), torch.arange(6), batch=4, seed=0)
    >>> torch.cat([stream(step)[0] for step in range(3)]).view(2, 6).sort().values
    tensor([[0, 1, 2, 3, 4, 5],
            [0, 1, 2, 3, 4, 5]])
    """
    size, place = _paired(inputs, targets), device_of(inputs)
    if batch < 1:
        raise InputError(f"a batch has at least one input, got {batch}")

    @lru_cache(maxsize=1)  # so that an epoch is sorted once, not at every step
    def order(epoch: int) -> Tensor:
        return counter.bits(seed, epoch, torch.arange(size, device=place)).argsort(stable=True)

    def part(epoch: int, first: int, last: int) -> tuple[Inputs, Tensor]:
        index = order(epoch)[first:last]
        chosen = take(inputs, index)
        return (chosen if augment is None else augment(chosen, index, seed=seed, epoch=epoch)), targets[index]

    def stream(step: int) -> tuple[Inputs, Tensor]:
        pieces = [part(*piece) for piece in _pieces(step * batch, (step + 1) * batch, size)]
        return pieces[0] if len(pieces) == 1 else _joined(pieces)

    return stream


def whole(inputs: Inputs, targets: Tensor) -> Stream:
    """The same batch at every step: all there is (V 7.3 trains on all pairs at once).

    >>> whole(torch.zeros(5, 2), torch.zeros(5))(3)[0].shape
    torch.Size([5, 2])
    """
    _paired(inputs, targets)
    return lambda step: (inputs, targets)


def _paired(inputs: Inputs, targets: Tensor) -> int:
    """How many inputs there are, each with a target beside it."""
    size = count(inputs)
    if targets.ndim < 1 or len(targets) != size or targets.device != device_of(inputs):
        raise InputError(
            f"{size} inputs on {device_of(inputs)} have as many targets there, "
            f"got {tuple(targets.shape)} on {targets.device}"
        )
    return size


def _pieces(start: int, stop: int, size: int) -> Iterator[tuple[int, int, int]]:
    """The stretch start .. stop of all epochs in a row as (epoch, first, last) within each."""
    while start < stop:
        epoch, first = divmod(start, size)
        last = min(size, first + stop - start)
        yield epoch, first, last
        start += last - first


def _joined(pieces: list[tuple[Any, Tensor]]) -> tuple[Inputs, Tensor]:
    inputs, targets = zip(*pieces, strict=True)
    if isinstance(inputs[0], Tensor):
        return torch.cat(inputs), torch.cat(targets)
    return {name: torch.cat([each[name] for each in inputs]) for name in inputs[0]}, torch.cat(targets)
