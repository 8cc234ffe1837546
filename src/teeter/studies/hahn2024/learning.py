"""What H's experiments share (H 7.1, E.1): models that learn a function of bits from fresh strings, and are measured.

Targets are 0 and 1, as H's implementation has them, and MSE is in these units. Sharpness is rescaled to ±1, four times
what it is for 0 and 1. Position vectors are neither nudged for sharpness nor counted in norms (H sections 5 and 7.1).

"text" is the model of the paper's words: token and position vectors are added. "released" is that of the released code,
which joins two halves. What the released code measures differently has columns of its own, whatever the variant:
`sharpness_released` is the rise of the error rather than Eq. 15, and `blowup_released` has the unbiased variance, no
epsilon, and in the last layer only the last position.
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
from teeter.train import BitStream, Job, Recipe, Stream, Trained, measures, train_many
from teeter.train.measures import Measure
from teeter.train.stack import Stacked
from teeter.train.state import own_randomness

__all__ = [
    "ARITHMETIC",
    "CONVERGED",
    "FUNCTIONS",
    "POSITIONS",
    "VARIANTS",
    "Learner",
    "device_here",
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
ARITHMETIC = {"cuda": "tf32", "cpu": "float32"}
CONVERGED = 1e-3  # the largest evaluation MSE of a run that counts (H 7.1)
POSITIONS = ("embedding.position",)  # weights that H leaves out of theta
_STRINGS, _SHARP = 4096, 1024  # on which loss and sharpness are measured, or all there are; the paper has no number
_SCALED = ("sharpness", "sharpness_released")  # by 4, to ±1
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


def device_here() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


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
    only: Collection[str] | None = None,
) -> list[Trained]:
    """Train them, those of one shape together, and measure the usual at every row: by default at the start and end.

    `only` are the names of those of the usual measures that are wanted; sharpness costs most.
    """
    device = device_here()
    usual: dict[Any, Mapping[str, Measure]] = {}
    jobs = []
    for spec in specs:
        key = spec.function, spec.n, spec.model
        if key not in usual:
            usual[key] = _wanted(_measures(spec, device), only)
        recipe = Recipe(
            spec.steps, spec.batch, rate=spec.rate, weight_decay=spec.weight_decay, arithmetic=ARITHMETIC[device.type]
        )
        jobs.append(Job(model(spec).to(device), stream(spec, device), recipe, {**usual[key], **extra(spec)}))
    steps = max(spec.steps for spec in specs)
    compile = worth_compiling(device, sum(spec.steps * spec.n * spec.dim for spec in specs))
    made = train_many(jobs, every=every or steps, folder=folder, keep=max(steps // 4, 1), compile=compile)
    for each in made:
        for row in each.rows:
            row |= {
                name: 4 * value
                for name, value in row.items()
                if name.removesuffix("_low").removesuffix("_high") in _SCALED
            }
    return made


def _wanted(found: Mapping[str, Measure], only: Collection[str] | None) -> Mapping[str, Measure]:
    for name in only or ():
        if name not in found:
            raise UnknownName("measure", name, found)
    return found if only is None else {name: each for name, each in found.items() if name in only}


def _measures(spec: Learner, device: torch.device) -> dict[str, Measure]:
    if 2**spec.n <= _SHARP:
        x = cube.points(spec.n, dtype=torch.float32, device=device)
    else:
        x = bit_strings(spec.n, _STRINGS, seed=_SEED, device=device)
    y, few = zero_one(spec.function)(x), x[:_SHARP]
    found: dict[str, Measure] = {
        "mse": measures.loss(x, y),
        "sharpness": measures.sharpness(few, skip=POSITIONS),
        "sharpness_released": measures.sharpness(few, "rise", targets=y[:_SHARP], skip=POSITIONS),
        "norm": measures.parameter_norm(skip=POSITIONS),
    }
    if spec.model in ("encoder", "decoder"):
        found |= {"blowup": measures.blowup(few), "blowup_released": ReleasedBlowup(few)}
    return found


@dataclass(frozen=True, eq=False)
class ReleasedBlowup:
    """The mean logarithm of the blow-up as the released code computes it."""

    inputs: Tensor
    batch: int = 1024

    def __call__(self, model: nn.Module) -> float:
        each = [measure.blowup(model, self.inputs, positions=name, batch=self.batch) for name in ("all", "last")]
        return self._mean(model, *each)

    def of_stack(self, stack: Stacked) -> list[float]:
        room: dict[str, Any] = {"batch": self.batch, "pairs": stack.pairs(self.inputs, plain=True)}
        every, last = (
            stacked_blowup(stack.shape, stack.weights, self.inputs, positions=name, **room) for name in ("all", "last")
        )
        return [self._mean(stack.shape, *each) for each in zip(every, last, strict=True)]

    def _mean(self, model: nn.Module, every: Blowup, last: Blowup) -> float:
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
        return float(total.mean())


def kind_of(spec: Learner) -> tuple[Any, ...]:
    """What specs have in common that are trained as one program."""
    return spec.variant, spec.model, spec.n, spec.dim, spec.batch, spec.steps


def together(rows: Callable[[Learner, Trained], list[dict[str, Any]]], most: int, **how: Any) -> Together:
    """How a study of learners runs many at once: `rows` are those of a run, `how` are arguments of `learn`."""

    def run(specs: Sequence[Learner], folder: Path | None) -> list[list[dict[str, Any]]]:
        made = learn(specs, folder, **how)
        return [rows(spec, each) for spec, each in zip(specs, made, strict=True)]

    return Together(key=kind_of, run=run, most=most)
