"""How a model is trained, in ten scalars, and the learning rate of every step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from teeter.errors import InputError, UnknownName
from teeter.measure.arithmetic import ARITHMETICS
from teeter.train.losses import LOSSES
from teeter.train.optimizers import OPTIMIZERS

__all__ = ["SCHEDULES", "Recipe", "rate_at", "stackable"]

# What share of the rate is left once this share of the steps after the warmup is over.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda over: 1.0,
    "linear": lambda over: 1 - over,
    "cosine": lambda over: (1 + math.cos(math.pi * over)) / 2,
}
_HALVING = "step:"


@dataclass(frozen=True)
class Recipe:
    """What a run is trained with; the defaults are H's (Table 1 in E.1: AdamW, constant rate, MSE on ±1).

    `batch` is what the stream has to give, None whatever it gives (the whole of a small data set). `schedule` is
    "constant", "linear" or "cosine" (both down to 0 at the end), or "step:N", which halves the rate every N steps (V
    A.3 halves Adam's every 8 epochs); it begins after `warmup` steps, over which the rate rises linearly. `clip` is the
    largest Euclidean norm of all gradients together, `arithmetic` that of `teeter.measure.arithmetic`.

    Weight decay means what it means in torch: a part of the gradient for "sgd" and "adam", apart from it for "adamw".
    V trains its vision models with plain SGD, without a word on momentum, so there is none.

    >>> Recipe(steps=500, rate=1e-3, schedule="cosine", warmup=50).optimizer
    'adamw'
    """

    steps: int = 10_000
    batch: int | None = 1024
    optimizer: str = "adamw"
    rate: float = 3e-4
    weight_decay: float = 0.1
    schedule: str = "constant"
    warmup: int = 0
    loss: str = "mse"
    clip: float | None = None
    arithmetic: str | None = None

    def __post_init__(self) -> None:
        for kind, name, known in (("optimizer", self.optimizer, OPTIMIZERS), ("loss", self.loss, LOSSES)):
            if name not in known:
                raise UnknownName(kind, name, known)
        if _period(self.schedule) is None and self.schedule not in SCHEDULES:
            raise UnknownName("schedule", self.schedule, [*SCHEDULES, "step:N (halved every N steps)"])
        if self.steps < 1 or (self.batch is not None and self.batch < 1):
            raise InputError(f"a run has at least one step and one input a batch, got {self.steps} and {self.batch}")
        if not (self.rate > 0 and math.isfinite(self.rate)):
            raise InputError(f"the rate is a positive number, got {self.rate}")
        if not (self.weight_decay >= 0 and math.isfinite(self.weight_decay)):
            raise InputError(f"the weight decay is 0 or more, got {self.weight_decay}")
        if not 0 <= self.warmup < self.steps:
            raise InputError(f"the warmup ends before the {self.steps} steps do, got {self.warmup}")
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"gradients are clipped to a positive norm, or None leaves them, got {self.clip}")
        if self.arithmetic is not None and self.arithmetic not in ARITHMETICS:
            raise InputError(f"the arithmetic is {', '.join(ARITHMETICS)} or None, got '{self.arithmetic}'")


def stackable(recipe: Recipe) -> Recipe:
    """What recipes of one stack have in common: all but rate, schedule, warmup and weight decay."""
    return replace(recipe, rate=1.0, weight_decay=0.0, schedule="constant", warmup=0)


def rate_at(recipe: Recipe, step: int) -> float:
    """The learning rate of a step, counted from 0: a pure function of it, so that a resumed run has the same.

    >>> recipe = Recipe(steps=300, rate=0.1, schedule="step:100", warmup=4)
    >>> [rate_at(recipe, step) for step in (0, 1, 3, 4, 103, 104, 204)]
    [0.025, 0.05, 0.1, 0.1, 0.1, 0.05, 0.025]
    """
    if step < recipe.warmup:
        return recipe.rate * (step + 1) / recipe.warmup
    since = step - recipe.warmup
    period = _period(recipe.schedule)
    if period is not None:
        return recipe.rate * 0.5 ** (since // period)
    return recipe.rate * SCHEDULES[recipe.schedule](since / (recipe.steps - recipe.warmup))


def _period(schedule: str) -> int | None:
    """The N of "step:N", or None for anything else."""
    number = schedule.removeprefix(_HALVING)
    return int(number) if schedule.startswith(_HALVING) and number.isdecimal() and int(number) > 0 else None
