"""Random numbers that are a pure function of where they are used.

`bits(seed, a, b, ...)` hashes a seed and any number of integer counters (input index, token, draw) to
64 bits. Nothing is carried from one call to the next, so a value does not depend on batch size, order,
shard or number of workers. Each counter is that many steps of SplitMix64 (Steele, Lea & Flood 2014, Fast splittable
pseudorandom number generators) from a state that hashes the seed and the counters before it.

On a GPU the some fifty steps of a hash are one kernel: launched one by one they would take longer than small models do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

__all__ = ["bits", "integers", "normal", "states", "uniform"]


def _signed(word: int) -> int:
    """The 64-bit word as torch's int64 holds it."""
    return word - (1 << 64) if word >= 1 << 63 else word


_WORD = 0x9E3779B97F4A7C15
_STEP = _signed(_WORD)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def _shift(word: Tensor, by: int) -> Tensor:
    # torch shifts int64 arithmetically; the mask drops the copies of the sign bit.
    return (word >> by) & ((1 << (64 - by)) - 1)


def _mix(word: Tensor) -> Tensor:
    word = (word ^ _shift(word, 30)) * _FIRST
    word = (word ^ _shift(word, 27)) * _SECOND
    return word ^ _shift(word, 31)


def _mixed(word: int) -> int:
    """What `_mix` does, on an integer: a seed needs no trip to the device."""
    for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> by)) * factor % (1 << 64)
    return word ^ (word >> 31)


_KERNEL = """
template <typename T> T {name}({counters}, T state) {{
  unsigned long long word = state;
  T all[] = {{ {names} }};
  for (int i = 0; i < {number}; i++) {{
    word += ((unsigned long long)all[i] + 1) * 0x9E3779B97F4A7C15ULL;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
    word ^= word >> 31;
  }}
  {end}
}}
"""
_ENDS = {
    "words": "return (T)word;",
    "uniforms": "return (T)__double_as_longlong((double)(word >> 11) * (1.0 / 9007199254740992));",
    "normals": """
  double radius = sqrt(-2 * log(((double)(word >> 32) + 1) * (1.0 / 4294967296)));
  double angle = (double)(word & 0xFFFFFFFFULL) * (6.283185307179586 / 4294967296);
  return (T)__double_as_longlong(radius * cos(angle));""",
}


@cache
def _kernel(name: str, number: int, several: bool) -> Callable[..., Tensor]:
    """The hash of so many counters, from one state or several, as one kernel; a double leaves it as its 64 bits."""
    from torch.cuda import jiterator

    names = [f"c{i}" for i in range(number)]
    typed = ", ".join(f"T {each}" for each in names)
    code = _KERNEL.format(name=name, counters=typed, names=", ".join(names), number=number, end=_ENDS[name])
    return jiterator._create_jit_fn(code) if several else jiterator._create_jit_fn(code, state=0)


def states(seeds: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """What stands for several seeds at once, in place of one: the first counters of each follow from it.

    >>> several = states([3, 5]).unsqueeze(1)
    >>> torch.equal(bits(several, torch.tensor(7), torch.arange(4))[1], bits(5, 7, torch.arange(4)))
    True
    """
    return torch.tensor([_signed(_mixed((seed + 1) * _WORD % (1 << 64))) for seed in seeds], device=device)


def _places(seed: int | Tensor, counters: tuple[Tensor | int, ...]) -> tuple[int | Tensor, list[Tensor]]:
    """The hash of the seed and of those counters that are plain integers, and the others."""
    if isinstance(seed, Tensor):
        return seed, [torch.as_tensor(counter, device=seed.device).long() for counter in counters]
    word, tensors = _mixed((seed + 1) * _WORD % (1 << 64)), []
    for counter in counters:
        if isinstance(counter, Tensor):
            tensors.append(counter.long())
        else:
            assert not tensors, "plain integers come before tensors"
            word = _mixed((word + (counter + 1) * _WORD) % (1 << 64))
    return _signed(word), tensors


def _words(state: int | Tensor, counters: list[Tensor]) -> Tensor:
    word = state if counters else torch.as_tensor(state)
    for counter in counters:
        word = _mix((counter + 1) * _STEP + word)
    assert isinstance(word, Tensor)
    return word


def _uniforms(state: int | Tensor, counters: list[Tensor]) -> Tensor:
    return _shift(_words(state, counters), 11).double() * 2.0**-53


def _normals(state: int | Tensor, counters: list[Tensor]) -> Tensor:
    word = _words(state, counters)
    radius = torch.sqrt(-2 * torch.log((_shift(word, 32).double() + 1) * 2.0**-32))
    return radius * torch.cos((word & 0xFFFFFFFF).double() * (2 * math.pi * 2.0**-32))


_IN_STEPS = {"words": _words, "uniforms": _uniforms, "normals": _normals}


def _drawn(name: str, seed: int | Tensor, counters: tuple[Tensor | int, ...]) -> Tensor:
    state, tensors = _places(seed, counters)
    there = next((counter.device for counter in tensors if counter.is_cuda), None)
    if torch.version.hip is not None or there is None:
        return _IN_STEPS[name](state, tensors)
    tensors = [counter.to(there) if counter.ndim == 0 else counter for counter in tensors]  # as in steps, by torch
    if isinstance(state, Tensor):
        word = _kernel(name, len(tensors), True)(*tensors, state)
    else:
        word = _kernel(name, len(tensors), False)(*tensors, state=state)
    return word if name == "words" else word.view(torch.float64)


def bits(seed: int | Tensor, *counters: Tensor | int) -> Tensor:
    """64 random bits, as int64, for every (broadcast) tuple of counters; plain integers come before tensors. In place
    of a seed, here and below, there may be `states` of several.

    >>> index = torch.arange(4)
    >>> bool((bits(0, 7, index)[2] == bits(0, 7, torch.tensor(2))).all())
    True
    """
    return _drawn("words", seed, counters)


def uniform(seed: int | Tensor, *counters: Tensor | int) -> Tensor:
    """Uniform in [0, 1), float64, on a grid of 2^-53."""
    return _drawn("uniforms", seed, counters)


def integers(high: int, seed: int | Tensor, *counters: Tensor | int) -> Tensor:
    """Uniform on 0 .. high-1; the bias of the modulus is below high / 2^53."""
    return _shift(bits(seed, *counters), 11) % high


def normal(seed: int | Tensor, *counters: Tensor | int) -> Tensor:
    """Standard normal, float64, by Box and Muller from the two halves of one 64-bit hash; no value exceeds 6.7."""
    return _drawn("normals", seed, counters)
