"""How much of a batched program is computed at once: as much as a bounded memory has room for.

A batch of models times a batch of inputs can be of any size, and neither alone says how much it takes. What a program
makes of each input more is seen on a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from teeter.perturb.inputs import Inputs, count, device_of, take

__all__ = ["pairs_at_once"]

_ROOM = {"cpu": 1 << 24}  # bytes: what a processor holds near it; with 8 times as much it is up to twice as slow
_ELSEWHERE = 3 << 29
_ALIVE = 8  # times the largest tensor: what H's encoder holds at once is 6 to 7 times it


def pairs_at_once(program: Callable[[Inputs], Any], inputs: Inputs) -> int:
    """How many inputs a program of one model reads at once, and so how many pairs of models and inputs one of several.

    >>> layer = torch.nn.Linear(3, 1024)  # 16 MiB / (8 x 1024 numbers x 4 bytes)
    >>> pairs_at_once(layer, torch.ones(5, 3))
    512
    """
    few, more = (_sizes(program, take(inputs, torch.arange(rows) % count(inputs))) for rows in (2, 4))
    each = max([(later - sooner) // 2 for sooner, later in zip(few, more, strict=False)], default=0)
    return max(1, _ROOM.get(device_of(inputs).type, _ELSEWHERE) // (_ALIVE * max(each, 1)))


def _sizes(program: Callable[[Inputs], Any], inputs: Inputs) -> list[int]:
    with torch.no_grad(), _Sizes() as seen:
        program(inputs)
    return seen.bytes


class _Sizes(TorchFunctionMode):
    """Notes the size of every tensor that is made, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: list[int] = []

    def __torch_function__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        made = function(*given, **(named or {}))
        if isinstance(made, Tensor):
            self.bytes.append(made.numel() * made.element_size())
        return made
