"""What H's experiments share (H 7.1, E.1): models that learn a function of bits from fresh strings, and are measured.

Targets are 0 and 1, as H's implementation has them, and MSE is in these units. Sharpness is rescaled to ±1, four times
what it is for 0 and 1. Position vectors are neither nudged for sharpness nor counted in norms (H sections 5 and 7.1).

"text" is the model of the paper's words: token and position vectors are added. "released" is that of the released code,
which joins two halves. What the released code measures differently has columns of its own, whatever the variant:
`sharpness_released` is the rise of the error rather than Eq. 15, and `blowup_released` is the logarithm of the mean
rather than the mean of the logarithm, and of other factors (see `Blowups`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from teeter import cube, measure
from teeter.data import bit_strings
from teeter.errors import UnknownName
from teeter.measure import Blowup
from teeter.measure.stacked import stacked_blowup
from teeter.models import MODELS
from teeter.runs import Together
from teeter.studies.devices import ARITHMETIC, device_here
from teeter.train import BitStream, Job, Recipe, Stream, Trained, measures, train_many
from teeter.train.measures import Measure
from teeter.train.stack import Stacked
from teeter.train.state import own_randomness

__all__ = [
    "CONVERGED",
    "FUNCTIONS",
    "POSITIONS",
    "VARIANTS",
    "Learner",
    "at_the_end",
    "few_strings",
    "kind_of",
    "learn",
    "model_of",
    "stream_of",
    "worth_compiling",
    "together",
    "zero_one",
]

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "parity": cube.parity,
    "majority": cube.majority,
    "first": cube.first,
    "mean": cube.mean,
}
VARIANTS = {"text": "sum", "released": "concatenate"}  # and how positions come in
CONVERGED = 1e-3  # the largest evaluation MSE of a run that counts (H 7.1)
POSITIONS = ("embedding.position",)  # weights that H leaves out of theta
_MANY, _SOME, _FEW = 65_536, 4096, 1024  # strings for the loss at the end and along the way, and for all else
_SEED = 1_000_000  # of those strings: no run's own


@dataclass(frozen=True)
class Learner:
    """One run; the defaults are those of Table 1."""

    function: str
    n: int
    seed: int
    variant: str = "text"
    model: str = "encoder"
    dim: int = 128
    batch: int = 1024
    steps: int = 10_000
    rate: float = 3e-4
    weight_decay: float = 0.1


def zero_one(name: str) -> Callable[[Tensor], Tensor]:
    """A function with values 0 and 1 in place of ±1; the same object for the same name.

    >>> zero_one("parity")(torch.tensor([[1.0, -1.0], [1.0, 1.0]]))
    tensor([0., 1.])
    """
    if name not in FUNCTIONS:
        raise UnknownName("function", name, FUNCTIONS)
    return _zero_one(name)


@cache
def _zero_one(name: str) -> Callable[[Tensor], Tensor]:
    return lambda x: (1 + FUNCTIONS[name](x)) / 2


def model_of(spec: Learner) -> nn.Module:
    """The model with its first weights, which are those of the seed whatever else is drawn."""
    if spec.variant not in VARIANTS:
        raise UnknownName("variant", spec.variant, VARIANTS)
    sizes: dict[str, Any] = {"dim": spec.dim}
    if spec.model in ("encoder", "decoder"):
        sizes |= {"length": spec.n, "positions": VARIANTS[spec.variant]}
    with own_randomness(torch.device("cpu"), spec.seed):
        return MODELS[spec.model](**sizes)


def stream_of(spec: Learner, device: torch.device) -> Stream:
    """Fresh strings of n bits at every step."""
    return BitStream(zero_one(spec.function), spec.n, spec.batch, spec.seed, device)


def worth_compiling(device: torch.device, work: float) -> bool:
    """Whether so many steps x bits x dimension of all models together take a GPU longer than to compile does, a dozen
    seconds."""
    return device.type == "cuda" and work > 128e6


def learn(
    specs: Sequence[Learner],
    folder: Path | None,
    every: int | Collection[int] | None = None,
    extra: Callable[[Learner], Mapping[str, Measure]] = lambda spec: {},
    model: Callable[[Learner], nn.Module] = model_of,
    stream: Callable[[Learner, torch.device], Stream] = stream_of,
    draws: int = 10,
) -> list[Trained]:
    """Train them, those of one shape together, and measure the usual at every row.

    By default there are rows at the start and the end alone, and they take their time: the loss is that on 65,536
    strings, and `sharpness_100` has a hundred draws. `draws` are those of the other sharpnesses.
    """
    device = device_here()
    usual, jobs = _usual(device, draws, at_leisure=every is None), []
    for spec in specs:
        recipe = Recipe(
            spec.steps, spec.batch, rate=spec.rate, weight_decay=spec.weight_decay, arithmetic=ARITHMETIC[device.type]
        )
        jobs.append(Job(model(spec).to(device), stream(spec, device), recipe, {**usual(spec), **extra(spec)}))
    steps = max(spec.steps for spec in specs)
    compile = worth_compiling(device, sum(spec.steps * spec.n * spec.dim for spec in specs))
    made = train_many(jobs, every=every or steps, folder=folder, keep=max(steps // 4, 1), compile=compile)
    for each in made:
        each.rows[:] = [{_named(name): _scaled(name, value) for name, value in row.items()} for row in each.rows]
    return made


def at_the_end(made: Trained) -> dict[str, float | None]:
    """What was measured last, to six digits, without the loop's own columns; None for all of it where a run diverged,
    whose last row is from before."""
    own = {name: value for name, value in made.rows[-1].items() if name not in ("step", "loss", "rate")}
    return {name: None if made.stopped == "diverged" else float(f"{value:.6g}") for name, value in own.items()}


def _named(column: str) -> str:
    """Blow-up is the mean of its logarithm unless it is said otherwise."""
    return "blowup" if column == "blowup_log" else column


def _scaled(column: str, value: Any) -> Any:
    """Sharpness is in the units of ±1."""
    return 4 * value if column.startswith("sharpness") else value


def _usual(device: torch.device, draws: int, at_leisure: bool) -> Callable[[Learner], dict[str, Measure]]:
    """The usual measures of a run. What is the same for several runs is one object, so that a stack is measured as
    one."""

    @cache
    def whatever_the_function(n: int, normalised: bool) -> dict[str, Measure]:
        few = few_strings(n, device)
        found: dict[str, Measure] = {
            "sharpness": measures.sharpness(few, skip=POSITIONS, draws=draws),
            "norm": measures.parameter_norm(skip=POSITIONS),
        }
        if at_leisure:
            found["sharpness_100"] = measures.sharpness(few, skip=POSITIONS, draws=100)
        if normalised:
            found["blowup"] = Blowups(few)
        return found

    @cache
    def of_the_function(name: str, n: int) -> dict[str, Measure]:
        few, x = few_strings(n, device), _strings(n, _MANY if at_leisure else _SOME, device)
        y = zero_one(name)
        rise = measures.sharpness(few, "rise", targets=y(few), skip=POSITIONS, draws=draws)
        return {"mse": measures.loss(x, y(x)), "sharpness_released": rise}

    def usual(spec: Learner) -> dict[str, Measure]:
        normalised = spec.model in ("encoder", "decoder")
        return {**of_the_function(spec.function, spec.n), **whatever_the_function(spec.n, normalised)}

    return usual


def few_strings(n: int, device: torch.device) -> Tensor:
    """Those on which all but the loss is measured."""
    return _strings(n, _FEW, device)


def _strings(n: int, count: int, device: torch.device) -> Tensor:
    """All strings of n bits where there are no more than so many, else so many random ones."""
    if 2**n <= count:
        return cube.points(n, dtype=torch.float32, device=device)
    return bit_strings(n, count, seed=_SEED, device=device)


@dataclass(frozen=True, eq=False)
class Blowups:
    """The logarithm of the blow-up in the ways it can be averaged over strings.

    `log`: the mean of its logarithm, with the factors of Eq. 5. `mean` and `square`: the logarithms of its mean and of
    the root of its mean square (Corollary 5 is about the square). `released`: the logarithm of the mean of what the
    released code computes, `released_log` the mean of that logarithm.
    """

    inputs: Tensor
    batch: int = 1024

    def __call__(self, model: nn.Module) -> dict[str, float]:
        every, last = (measure.blowup(model, self.inputs, positions=name, batch=self.batch) for name in ("all", "last"))
        return self._said(model, every, last)

    def of_stack(self, stack: Stacked) -> list[dict[str, float]]:
        room: dict[str, Any] = {"batch": self.batch, "pairs": stack.pairs(self.inputs, plain=True)}
        every, last = (
            stacked_blowup(stack.shape, stack.weights, self.inputs, positions=name, **room) for name in ("all", "last")
        )
        return [self._said(stack.shape, *each) for each in zip(every, last, strict=True)]

    def _said(self, model: nn.Module, every: Blowup, last: Blowup) -> dict[str, float]:
        logs, released = every.factors.log().sum(-1), self._released(model, every, last)
        count = math.log(len(logs))
        return {
            "log": float(logs.mean()),
            "mean": float(logs.logsumexp(0)) - count,
            "square": (float((2 * logs).logsumexp(0)) - count) / 2,
            "released": float(released.logsumexp(0)) - count,
            "released_log": float(released.mean()),
        }

    def _released(self, model: nn.Module, every: Blowup, last: Blowup) -> Tensor:
        """The logarithm on every string, of factors with the unbiased variance, no epsilon, and in the last layer only
        the last position."""
        norms = dict(model.named_modules())
        final = every.layers[-1].rpartition(".")[0]  # the last layer's norms are named alike, where none comes after
        assert final, "for models whose layers normalise last"
        total = torch.zeros(len(self.inputs), dtype=torch.float64)
        for i, name in enumerate(every.layers):
            norm = norms[name]
            assert isinstance(norm, nn.LayerNorm)
            width = math.prod(norm.normalized_shape)
            factor = (last if name.rpartition(".")[0] == final else every).factors[:, i]
            variance = (factor**-2 - norm.eps).clamp(min=0) * width / (width - 1)
            total += -0.5 * variance.log()
        return total


def kind_of(spec: Learner) -> tuple[Any, ...]:
    """What specs have in common that are trained as one program."""
    return spec.variant, spec.model, spec.n, spec.dim, spec.batch, spec.steps


def together(rows: Callable[[Learner, Trained], list[dict[str, Any]]], most: int, **how: Any) -> Together:
    """How a study of learners runs many at once: `rows` are those of a run, `how` are arguments of `learn`."""

    def run(specs: Sequence[Learner], folder: Path | None) -> list[list[dict[str, Any]]]:
        made = learn(specs, folder, **how)
        return [rows(spec, each) for spec, each in zip(specs, made, strict=True)]

    return Together(key=kind_of, run=run, most=most)
