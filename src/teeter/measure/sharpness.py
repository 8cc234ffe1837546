"""How much does a network change when all of its weights are nudged?

H Eq. 15, the average direction sharpness: E_x E_Delta |T_{theta + Delta}(x) - T_theta(x)|^2 over Delta on a sphere of
radius rho, or, as H's experiments have it, Gaussian with standard deviation rho. V section 7.2: ShOp, the same with
the absolute difference, and ShPred, how often the answer changes. H's released code takes the rise of the squared
error, E_Delta MSE(theta + Delta) - MSE(theta), which is Eq. 15 where the fit is perfect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from teeter import counter
from teeter.errors import InputError
from teeter.measure.changes import label_flip
from teeter.measure.door import admit
from teeter.measure.estimate import Estimate
from teeter.measure.forward import Batches, outputs, unfused
from teeter.perturb import Inputs
from teeter.perturb.inputs import count, device_of, take

__all__ = ["parameter_norm", "sharpness"]

KINDS: dict[str, Callable[[Tensor, Tensor, Any], Tensor]] = {
    "direction": lambda clean, nudged, _: (clean - nudged).double().square().flatten(1).sum(-1),
    "output": lambda clean, nudged, _: (clean - nudged).double().abs().flatten(1).sum(-1),
    "prediction": lambda clean, nudged, _: label_flip(clean, nudged).double(),
    "rise": lambda clean, nudged, targets: _error(nudged, targets) - _error(clean, targets),
}

TOGETHER = 1 << 26  # numbers in the copies of a model that are held at once: 256 MiB of float32


@dataclass(frozen=True)
class Nudging:
    """How weights are nudged and what counts as a change, checked: all of `sharpness` but the running of models."""

    kind: str = "direction"
    rho: float = 0.02
    law: str = "gaussian"
    draws: int = 10
    skip: Sequence[str] = ()
    confidence: float = 0.95
    seed: int = 0
    targets: Tensor | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"the kind is {', '.join(KINDS)}, got '{self.kind}'")
        if (self.kind == "rise") != (self.targets is not None):
            raise InputError("the rise of the error is one from targets, and no other kind has them: targets=")
        if self.law not in ("gaussian", "sphere"):
            raise InputError(f"the law is 'gaussian' or 'sphere', got '{self.law}'")
        if not (self.rho >= 0 and math.isfinite(self.rho)) or self.draws < 2:
            raise InputError(f"rho is at least 0 and draws at least 2, got rho = {self.rho} and draws = {self.draws}")

    def noise(self, weights: Mapping[str, Tensor], draws: range) -> dict[str, Tensor]:
        """What moves in these draws, by name, and by how much: (draws, ...), made where the weights are. It is a pure
        function of (seed, draw, number of the parameter among those that move, place in it)."""
        moved = {name: weight.detach() for name, weight in weights.items() if not skipped(name, self.skip)}
        if not moved:
            raise InputError("no parameter is left to perturb")
        steps: Iterable[Tensor] = (
            counter.normal(
                self.seed,
                torch.arange(draws.start, draws.stop, device=weight.device).unsqueeze(1),
                torch.full((), number, device=weight.device),
                torch.arange(weight.numel(), device=weight.device),
            )
            for number, weight in enumerate(moved.values())
        )
        sizes: dict[torch.device, float | Tensor] = dict.fromkeys((part.device for part in moved.values()), self.rho)
        if self.law == "sphere":
            steps = list(steps)
            squares = [torch.stack([row.square().sum() for row in step]) for step in steps]
            length = cast(Tensor, sum(square.to(squares[0].device) for square in squares)).sqrt()
            sizes = {device: (torch.full_like(length, self.rho) / length).unsqueeze(1).to(device) for device in sizes}
        return {
            name: (sizes[weight.device] * step).to(weight.dtype).reshape(-1, *weight.shape)
            for (name, weight), step in zip(moved.items(), steps, strict=True)
        }

    def check_targets(self, clean: Tensor) -> None:
        """Raise unless there is a target for each of these outputs (inputs, numbers)."""
        if self.targets is None or self.targets.shape == clean.shape:
            return
        if self.targets.shape != clean.shape[:1] or clean.shape[1] != 1:
            told = f"outputs {tuple(clean.shape)} and targets {tuple(self.targets.shape)}"
            raise InputError(f"the rise of the error has a target for every output, got {told}")

    def changes(self, clean: Tensor, nudged: Tensor, rows: slice) -> Tensor:
        """One number a row, of outputs (rows, numbers) to these inputs, or of several copies' in turn."""
        if self.targets is None:
            return KINDS[self.kind](clean, nudged, None)
        own = self.targets[rows].reshape(rows.stop - rows.start, -1)
        return KINDS[self.kind](clean, nudged, own.repeat(len(clean) // len(own), 1))

    def estimates(self, changes: Tensor) -> list[Estimate]:
        """The means of changes (models, draws, inputs)."""
        _, draws, n = changes.shape
        least = -math.inf if self.kind == "rise" else 0.0
        most = 1.0 if self.kind == "prediction" else math.inf  # a share
        found = _crossed(changes, self.confidence, least, most)
        if self.kind != "prediction":
            return found
        # Where no answer changes, or all do, there is no spread to go by: the fewer of inputs and draws count.
        bound = -math.expm1(math.log((1 - self.confidence) / 2) / min(draws, n))
        ends = {0.0: (0.0, bound), 1.0: (1 - bound, 1.0)}
        return [Estimate(e.value, *ends[e.value], n, self.confidence) if e.value in ends else e for e in found]


def sharpness(
    model: nn.Module,
    inputs: Inputs,
    kind: Literal["direction", "output", "prediction", "rise"] = "direction",
    *,
    rho: float = 0.02,
    law: Literal["gaussian", "sphere"] = "gaussian",
    draws: int = 10,
    skip: Sequence[str] = (),
    targets: Tensor | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    batch: int | str = "auto",
    together: bool = True,
) -> Estimate:
    """Mean change over inputs and `draws` weight perturbations, each shared by all inputs.

    `law="gaussian"`: every weight moves by noise of standard deviation rho; `"sphere"`: the whole vector of weights
    moves by exactly rho. Parameters whose name contains one of `skip` (say, position encodings) stay. Several outputs
    are added up; `kind="rise"` is by how much their squared distance from `targets` grows. Perturbed copies run as one
    batched program where the model allows it and `together` is not False, and one by one otherwise, with the same
    answer. Inputs and draws are both random, and the interval allows for both; with few draws of a skewed
    change it may be too low (docs/measure.md).

    >>> _ = torch.manual_seed(0)
    >>> line = nn.Linear(3, 1, bias=False)  # T changes by Delta x, so its mean square is rho^2 |x|^2
    >>> estimate = sharpness(line, torch.eye(3).repeat(50, 1), rho=0.1, draws=100)
    >>> estimate.low < 0.01 < estimate.high
    True
    """
    how = Nudging(kind, rho, law, draws, skip, confidence, seed, targets)
    if not isinstance(model, nn.Module):
        raise InputError(f"sharpness needs a torch module, got {type(model).__name__}")
    inputs = admit(model, inputs, draws=draws, seed=seed)
    n = enough(inputs)
    changes = torch.empty(draws, n, dtype=torch.float64)
    weights = dict(model.named_parameters())
    size = sum(weight.numel() for weight in weights.values())
    group = max(min(draws, TOGETHER // max(size, 1)), 2)  # copies held at once
    stacked: bool | None = None
    clean: Tensor | None = None
    batches = Batches(batch, device_of(inputs))
    for first in range(0, draws, group):
        noise = how.noise(weights, range(first, min(first + group, draws)))
        stack = {name: part.add_(weights[name].detach()) for name, part in noise.items()}
        copies = [dict(zip(stack, parts, strict=True)) for parts in zip(*stack.values(), strict=True)]
        if stacked is None:
            stacked = together and allows_vmap(model, copies[:2], take(inputs, torch.arange(1)))

        def work(
            start: int, stop: int, first: int = first, copies: Any = copies, stack: Any = stack if stacked else None
        ) -> None:
            nonlocal clean
            here = take(inputs, torch.arange(start, stop))
            rows = stop - start
            with torch.no_grad(), unfused():
                if first == 0:
                    answer = outputs(model(here), rows).reshape(rows, -1)
                    clean = answer.new_empty(n, answer.shape[1]) if clean is None else clean
                    clean[start:stop] = answer
                if stack is not None:
                    nudged = [outputs(one, rows) for one in _together(model, stack, here)]
                else:
                    nudged = [outputs(functional_call(model, weights, (here,)), rows) for weights in copies]
            assert clean is not None
            how.check_targets(clean)
            for draw, answer in enumerate(nudged):
                changed = how.changes(clean[start:stop], answer.reshape(rows, -1), slice(start, stop))
                changes[first + draw, start:stop] = changed.cpu()

        batches.run(0, n, work)
    return how.estimates(changes.unsqueeze(0))[0]


def parameter_norm(model: nn.Module, skip: Sequence[str] = ()) -> float:
    """The Euclidean norm of all parameters, without those whose name contains one of `skip` (H section 7.1)."""
    kept = [weight.detach().double() for name, weight in model.named_parameters() if not skipped(name, skip)]
    squares = [weight.square().sum().to(kept[0].device) for weight in kept]
    return float(torch.stack(squares).sum().sqrt()) if kept else 0.0


def skipped(name: str, skip: Sequence[str]) -> bool:
    """Whether a parameter stays as it is."""
    return any(part in name for part in skip)


def enough(inputs: Inputs) -> int:
    """How many inputs there are: two at least."""
    n = count(inputs)
    if n < 2:
        raise InputError("an interval needs at least two inputs")
    return n


def _together(model: nn.Module, stack: dict[str, Tensor], here: Inputs) -> Tensor:
    return vmap(lambda weights: functional_call(model, weights, (here,)))(stack)


def allows_vmap(model: nn.Module, copies: list[dict[str, Tensor]], one: Inputs) -> bool:
    """Whether the model runs under vmap and then says the same, tried on one input and a few copies."""
    try:
        with torch.no_grad(), unfused():
            stack = {name: torch.stack([copy[name] for copy in copies]) for name in copies[0]}
            many = _together(model, stack, one)
            alone = torch.stack([functional_call(model, copy, (one,)) for copy in copies])
        return bool(torch.allclose(many, alone, rtol=1e-4, atol=1e-5))
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return False  # no rule for one of its operations, or outputs that are not plain tensors


def _error(answers: Tensor, targets: Tensor) -> Tensor:
    return (answers - targets).double().square().flatten(1).sum(-1)


def _crossed(changes: Tensor, confidence: float, least: float, most: float) -> list[Estimate]:
    """The mean of draws x inputs, both random: Var = Var(mean of a draw) / draws + Var(mean of an input) / inputs."""
    from scipy.special import stdtrit

    _, draws, n = changes.shape
    width = -float(stdtrit(min(draws, n) - 1, (1 - confidence) / 2))
    halves = width * (changes.mean(2).var(1) / draws + changes.mean(1).var(1) / n).sqrt()
    both = zip(changes.mean((1, 2)).tolist(), halves.tolist(), strict=True)
    return [Estimate(m, max(least, m - half), min(most, m + half), n, confidence) for m, half in both]
