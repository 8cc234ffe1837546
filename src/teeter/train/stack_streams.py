"""Batches for a stack: a function from the number of a step to (inputs, targets), each with a row for every model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError
from teeter.train.streams import BitStream, Counted, Drawn, Stream, counted

__all__ = ["StackStream", "bit_streams", "together"]

StackStream: TypeAlias = Callable[[int], tuple[Tensor, Tensor]]
Function: TypeAlias = Callable[[Tensor], Tensor]


def together(streams: Sequence[Stream]) -> StackStream:
    """The batches of several streams, model k's own in row k; those of bits, and those of sets of one size, are
    drawn at once.

    >>> from teeter import cube
    >>> from teeter.train import BitStream
    >>> x, y = together([BitStream(cube.parity, 6, batch=4, seed=seed) for seed in range(3)])(0)
    >>> x.shape, y.shape
    (torch.Size([3, 4, 6]), torch.Size([3, 4]))
    """
    if not streams:
        raise InputError("a stack has a stream for every model, got none")
    first = streams[0]
    if isinstance(first, BitStream) and all(_alike(first, each) for each in streams):
        bits = [each for each in streams if isinstance(each, BitStream)]
        seeds, functions = [each.seed for each in bits], [each.f for each in bits]
        return bit_streams(functions, first.n, first.batch, seeds, first.device, first.dtype)
    drawn = [each for each in streams if isinstance(each, Drawn)]
    counts = [each.drawn for each in streams if isinstance(each, Counted)]
    for sets in (drawn, counts):
        if len(sets) == len(streams) and len({_sizes(each) for each in sets}) == 1:
            return _drawn(sets, once=sets is counts)

    def stream(step: int) -> tuple[Tensor, Tensor]:
        inputs, targets = zip(*(each(step) for each in streams), strict=True)
        if not all(isinstance(part, Tensor) for part in inputs):
            raise InputError("a stack reads tensors, and this stream gives several by name: train the models alone")
        return torch.stack(inputs), torch.stack(targets)

    return stream


def _alike(one: BitStream, other: Stream) -> bool:
    return isinstance(other, BitStream) and replace(other, f=one.f, seed=one.seed) == one


def _sizes(one: Drawn) -> tuple[object, ...]:
    parts = (one.inputs, one.targets)
    return one.batch, *((part.shape, part.dtype, part.device) for part in parts)


def _drawn(sets: Sequence[Drawn], once: bool) -> StackStream:
    """Each model's from its own set, in batches of a `Drawn`, or `once` in those of a `Counted`."""
    inputs, targets = torch.stack([each.inputs for each in sets]), torch.stack([each.targets for each in sets])
    device, size = inputs.device, inputs.shape[1]
    states = counter.states([each.seed for each in sets], device).unsqueeze(1)
    row, model = torch.arange(sets[0].batch, device=device), torch.arange(len(sets), device=device).unsqueeze(1)

    def stream(step: int) -> tuple[Tensor, Tensor]:
        index = counter.integers(size, states, torch.full((), step, device=device), row)
        if not once:
            return inputs[model, index], targets[model, index]
        chosen, shares = counted(index, size)
        return inputs[model, chosen], torch.stack([targets[model, chosen].to(shares), shares], -1)

    return stream


def bit_streams(
    functions: Function | Sequence[Function],
    n: int,
    batch: int,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> StackStream:
    """What `together` gives of a `BitStream` for each seed, with one function for all or one each, drawn at once.

    >>> from teeter import cube
    >>> x, y = bit_streams([cube.parity, cube.first], 6, batch=4, seeds=[0, 7])(17)
    >>> torch.equal(y[0], x[0].prod(-1)), torch.equal(y[1], x[1, :, 0])
    (True, True)
    """
    each = [functions] * len(seeds) if callable(functions) else list(functions)
    if len(each) != len(seeds) or n < 1 or batch < 1:
        raise InputError(
            f"{len(seeds)} seeds have one function or as many, for at least one string of at least one bit; "
            f"got {len(each)} functions, {batch} strings of {n}"
        )
    states = counter.states(seeds, device).view(-1, 1, 1)
    row, word = torch.arange(batch, device=device).unsqueeze(-1), torch.arange((n + 63) // 64, device=device)
    place = torch.arange(min(n, 64), device=device)
    groups: dict[int, list[int]] = {}  # by identity: functions that are equal are still called apart
    for k, f in enumerate(each):
        groups.setdefault(id(f), []).append(k)
    members = [torch.tensor(group, device=device) for group in groups.values()]
    order = torch.cat(members).argsort()

    def stream(step: int) -> tuple[Tensor, Tensor]:
        words = counter.bits(states, torch.full((), step, device=device), row, word)
        ones = (words.unsqueeze(-1) >> place) & 1
        x = (1 - 2 * ones.flatten(2)[:, :, :n]).to(dtype)
        if len(members) == 1:
            return x, each[0](x.flatten(0, 1)).view(x.shape[:2])
        values = [
            each[k](x[some].flatten(0, 1)).view(-1, batch)
            for (k, *_), some in zip(groups.values(), members, strict=True)
        ]
        return x, torch.cat(values)[order]

    return stream
