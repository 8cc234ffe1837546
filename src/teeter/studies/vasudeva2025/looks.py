"""What is measured of V's vision models: while they are trained, and once they are.

In float32 (convolutions on a GPU in what torch computes them in, tf32), on images as they are: the clean outputs are
computed once, and are what accuracy, loss and all sensitivities start from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from teeter import data, measure
from teeter.measure import Estimate
from teeter.perturb import InputNoise, PatchNoise, PatchReplace, Perturbation
from teeter.studies.vasudeva2025.scattered import ScatteredNoise
from teeter.train import LOSSES, measures

__all__ = [
    "DRAWS",
    "LEVELS",
    "RHOS",
    "SEVERITIES",
    "Nudge",
    "at_once",
    "fit",
    "look",
    "noises",
    "nudges",
    "outputs",
    "sensitivity",
    "sharpnesses",
    "told",
]

LEVELS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # times the setting's own variance (Fig. 17)
RHOS, DRAWS = (0.005, 0.05), 5  # weight noise of 7.2, and of the released code
SEVERITIES = (1, 2)  # Fig. 21 and 20
NUDGED = 2_000  # images, at most, on which a model with other weights is asked; the draws of weights matter more
FINER = 5  # times as many triples at the end, under V's own noise
_BATCH = {"cpu": 1024, "cuda": 2048}
_NUMBERS = 1 << 26  # pixels of all channels in a forward, at most: a layer may make thirty times as many of them
_CHECKED = 32  # forwards that a look at given clean outputs takes


def told(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def at_once(x: Tensor) -> int:
    """How many of these images go through a model together."""
    return max(min(_BATCH[x.device.type], _NUMBERS // x[0].numel()), 1)


def outputs(model: Callable[[Any], Any], x: Tensor) -> Tensor:
    return measures.outputs_of(model, x, at_once(x))


def fit(name: str, clean: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy and loss of outputs."""
    right = (clean.argmax(1) == labels).double().mean()
    return {f"{name}_accuracy": float(right), f"{name}_loss": float(LOSSES["cross-entropy"](clean, labels))}


def sensitivity(model: Any, x: Tensor, clean: Tensor, noise: Perturbation, times: int = 1) -> Estimate:
    """From so many triples of each image, a token and a noise drawn at random."""
    budget = times * len(x) + min(_CHECKED, len(x))
    found = measure.sensitivity(model, x, noise, budget=budget, clean=clean, batch=at_once(x))
    if found.stopped == "interrupted":  # what there is by then is not what was asked for
        raise KeyboardInterrupt
    return found


@dataclass(frozen=True)
class Nudge:
    """A kind of noise and its variance; `name` is both, for a row that has several."""

    kind: str
    sigma2: float
    noise: Perturbation

    @property
    def name(self) -> str:
        return f"{self.kind} {self.sigma2!r}"


def look(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor] | None,
    noise: Perturbation,
    others: Sequence[Nudge] = (),
    few: int | None = None,
) -> Callable[[nn.Module], dict[str, float]]:
    """Of a row: the images of the training set are nudged once each, and `few` of them by the others, by name."""

    def of(model: nn.Module) -> dict[str, float]:
        (x, y), clean = train, outputs(model, train[0])
        found = told("sensitivity", sensitivity(model, x, clean, noise))
        for other in others:
            found |= told(other.name, sensitivity(model, x[:few], clean[:few], other.noise))
        return {
            **fit("train", clean, y),
            **(fit("test", outputs(model, test[0]), test[1]) if test is not None else {}),
            **found,
        }

    return of


def nudges(
    x: Tensor,
    patch: int,
    sigma2: float,
    levels: Sequence[float] = LEVELS,
    whole: float | None = None,
    replaced: bool = False,
) -> list[Nudge]:
    """Noise on a patch, at several variances, on the whole image where it has one, and as the released code has them:
    scattered for a patch, and either multiplied by the variance in place of its root. Where patches are `replaced`,
    also noise in place of a patch, and in place of it that of another image."""
    variances = [level * sigma2 for level in levels]
    found = [Nudge("patch", variance, PatchNoise(patch, variance)) for variance in variances]
    found.append(Nudge("scattered", sigma2**2, ScatteredNoise(patch, sigma2**2)))
    if whole is not None:
        found += [Nudge("whole", variance, InputNoise(variance)) for variance in (whole, whole**2)]
    if replaced:
        found.append(Nudge("replaced", sigma2, PatchReplace(patch, sigma2=sigma2)))
        found.append(Nudge("exchanged", 0.0, PatchReplace(patch, source=x)))
    return found


def noises(model: nn.Module, x: Tensor, sigma2: float, every: Sequence[Nudge]) -> Iterator[dict[str, Any]]:
    """A row for each, more closely looked at where it is V's own, noise of variance sigma2 on a patch."""
    clean = outputs(model, x)
    for each in every:
        times = FINER if (each.kind, each.sigma2) == ("patch", sigma2) else 1
        found = sensitivity(model, x, clean, each.noise, times)
        yield {"about": "noise", "noise": each.kind, "sigma2": each.sigma2, **told("sensitivity", found)}


def sharpnesses(model: nn.Module, x: Tensor) -> Iterator[dict[str, Any]]:
    """ShOp and ShPred under weight noise of either standard deviation."""
    some = x[data.subset(len(x), NUDGED, seed=2).to(x.device)]
    for rho in RHOS:
        how = dict(rho=rho, draws=DRAWS, batch=1024, together=False)  # convolutions of several models are slow
        shop, shpred = (measure.sharpness(model, some, kind, **how) for kind in ("output", "prediction"))  # pyright: ignore[reportArgumentType]
        yield {"about": "weights", "rho": rho, **told("shop", shop), **told("shpred", shpred)}
