"""At equal clean accuracy, does the penalty on sensitivity beat noise on the images, and weight decay?

Beyond the paper, which trains ViT-small with the penalty at one strength, and with noise of one variance, finds both
more robust than training with neither (7.1) and, with the penalty, in a flatter minimum (7.2). A method that costs
accuracy on clean images, or gains some, is robust for that reason too; and any regulariser may do as well as another.

Here each method is run at several strengths, which makes a path: accuracy on clean test images against what is
compared. Paths of two methods are compared seed by seed where both have the same clean accuracy, at `LEVELS` of them
spread evenly over all that both reach and that are at most `LOSS` below that of the run without any method. Between two
strengths a path is a straight line; where it has a clean accuracy at several strengths, the strongest counts, so that
nothing is chosen by its outcome. The mean difference over the levels is a seed's number, and intervals are over seeds.
A seed in which two paths share no clean accuracy says nothing about what is better; how many do share one is told too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from teeter import data, measure
from teeter.data import LabelledImages
from teeter.errors import UnknownName
from teeter.measure import Estimate
from teeter.models import MODELS
from teeter.perturb import InputNoise, PatchNoise
from teeter.studies.devices import device_here
from teeter.studies.over_runs import mean, share
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025.over_epochs import Measured, above, logs
from teeter.studies.vasudeva2025.vision import DRAWS, FAMILIES, RHO, SETTINGS, SEVERITIES, TINY, ends, of, scaled
from teeter.train import Recipe, SensitivityPenalty, add_noise, bar, measures, shuffled, train
from teeter.train.state import own_randomness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Regularised", "differences", "framed", "levels", "on_path", "outcomes", "unframed"]

METHODS = {"none": "nothing", "penalty": "penalty", "noise": "noise on images", "decay": "weight decay"}
LEVELS, LOSS = 9, 0.05
SHARED = 10_000  # at most so many training images and triples of image, patch and noise are measured on


@dataclass(frozen=True)
class Regularised:
    """One run. The strength is the penalty's, the variance of the noise, or the weight decay."""

    method: str
    strength: float
    seed: int
    epochs: int
    images: int  # of the training set
    tests: int  # of the test set
    data: str = "fashion-mnist"
    patch: int = 4  # V's model; with patches of 7 it is a tiny one
    batch: int = 100
    rate: float = 0.1


def grid(strengths: Mapping[str, Sequence[float]], seeds: int, **more: Any) -> list[Regularised]:
    kinds = [("none", 0.0), *((method, each) for method, several in strengths.items() for each in several)]
    return [Regularised(method, each, seed, **more) for seed in range(seeds) for method, each in kinds]


SMOKE = grid({"penalty": [0.25, 1], "noise": [0.1, 0.4], "decay": [1e-3]}, 1, epochs=1, images=100, tests=50, data="digits", batch=20)
SMALL = grid(
    {"penalty": [0.25, 1, 4], "noise": [0.025, 0.1, 0.4], "decay": [0.002, 0.008, 0.032]},
    3,
    epochs=10,
    images=900,
    tests=600,
    patch=7,
    batch=20,
)
PAPER = grid(
    {"penalty": [0.0625, 0.25, 1, 4], "noise": [0.025, 0.1, 0.4, 1.6], "decay": [5e-4, 2e-3, 8e-3, 3.2e-2]},
    4,
    epochs=20,
    images=12_000,
    tests=10_000,
)


def model_of(spec: Regularised) -> nn.Module:
    """With its first weights, which depend on the seed alone."""
    with own_randomness(torch.device("cpu"), spec.seed):
        if spec.data == "digits":
            return MODELS["vit-small"](**TINY["vit-small"], channels=1)
        if spec.patch == 7:
            return MODELS["vit-small"](**{**TINY["vit-small"], "image_size": 28, "patch": 7}, channels=1)
        return MODELS["vit-small-fashion-mnist"]()


@lru_cache(maxsize=2)
def _images(name: str, split: str, limit: int) -> LabelledImages:
    every = SETTINGS[name].read(split)
    return every.take(data.subset(len(every), limit, seed=0))


def framed(images: LabelledImages) -> LabelledImages:
    """Grey images of 28 x 28 as corruptions ask for them: of 32 x 32, with black around, and in three equal colours."""
    pixels = nn.functional.pad(images.images, (2, 2, 2, 2)).expand(-1, 3, -1, -1).contiguous()
    return LabelledImages(pixels, images.labels, images.classes)


def unframed(images: LabelledImages) -> LabelledImages:
    """The green of what `framed` has put a frame around: the mean of three colours would have less noise."""
    return LabelledImages(images.images[:, 1:2, 2:-2, 2:-2].contiguous(), images.labels, images.classes)


@lru_cache(maxsize=60)
def _corrupted(name: str, limit: int, corruption: str, severity: int) -> LabelledImages:
    clean = framed(_images(name, "test", limit))
    return unframed(data.cifar10_c(corruption, severity, clean, source="generated"))


def run(spec: Regularised) -> list[dict[str, Any]]:
    if spec.method not in METHODS:
        raise UnknownName("method", spec.method, METHODS)
    device, setting = device_here(), SETTINGS[spec.data]
    x, y = scaled(_images(spec.data, "train", spec.images), device)
    test, labels = scaled(_images(spec.data, "test", spec.tests), device)
    epoch, noise = len(x) // spec.batch, PatchNoise(spec.patch, setting.sigma2)
    known, known_labels = x[:SHARED], y[:SHARED]
    what: dict[str, measures.Measure] = {
        "train_accuracy": measures.accuracy(known, known_labels),
        "train_loss": measures.loss(known, known_labels, "cross-entropy"),
        "test_accuracy": measures.accuracy(test, labels),
        "test_loss": measures.loss(test, labels, "cross-entropy"),
        "sensitivity": measures.sensitivity(known, noise, budget=2 * len(known)),  # an image as it is, and nudged
    }
    recipe = Recipe(
        steps=spec.epochs * epoch,
        batch=spec.batch,
        optimizer="sgd",
        rate=spec.rate,
        weight_decay=spec.strength if spec.method == "decay" else 0.0,
        schedule="linear",
        loss="cross-entropy",
        arithmetic="bf16" if device.type == "cuda" else None,
    )
    noisy = partial(add_noise, perturbation=InputNoise(spec.strength)) if spec.method == "noise" else None
    penalty = SensitivityPenalty(noise, spec.strength, seed=spec.seed) if spec.method == "penalty" else None
    with bar() as progress:
        made = train(
            model_of(spec).to(device),
            shuffled(x, y, spec.batch, spec.seed, augment=noisy),
            recipe,
            measures=what,
            every=[each * epoch for each in range(0, spec.epochs, max(spec.epochs // 4, 1))],
            penalty=penalty,
            progress=progress,
            seed=spec.seed,
            compile=device.type == "cuda",
        )
    if made.stopped == "interrupted":
        raise KeyboardInterrupt
    kept = [{name: value for name, value in row.items() if name != "rate"} for row in made.rows]  # the spec's own
    rows = [{"about": "epoch", "epoch": row["step"] / epoch, **row} for row in kept]
    rows += [{"about": "weights", **_sharpness(made.model, known)}]
    if spec.data == "digits":  # too small to be corrupted
        return rows
    for family in FAMILIES:
        for name in data.FAMILIES[family]:
            for severity in SEVERITIES:
                images, _ = scaled(_corrupted(spec.data, spec.tests, name, severity), device)
                found = measures.accuracy(images, labels)(made.model)
                assert isinstance(found, Estimate)
                where = {"corruption": name, "family": family, "severity": severity}
                rows.append({"about": "corruption", **where, **_told("accuracy", found)})
    return rows


def _told(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _sharpness(model: nn.Module, x: torch.Tensor) -> dict[str, float]:
    shop, shpred = (
        measure.sharpness(model, x, kind, rho=RHO, draws=DRAWS, batch=1024) for kind in ("output", "prediction")
    )
    return {**_told("shop", shop), **_told("shpred", shpred)}


def outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """A line a run: what is compared, by its column. Logarithms are to base 10."""
    found = ends(table).set_index("run")[["method", "strength", "seed", "test_accuracy"]]
    found["sensitivity"] = logs(ends(table).set_index("run")["sensitivity"])
    found["shop"] = logs(of(table, about="weights").set_index("run")["shop"])
    if "corruption" in table:
        rows = of(table, about="corruption")
        for severity in SEVERITIES:
            here = of(rows, severity=severity)
            found[f"severity {severity}"] = here.groupby("run")["accuracy"].mean()
            for family in FAMILIES:
                found[f"{family} {severity}"] = of(here, family=family).groupby("run")["accuracy"].mean()
            found[f"unlike {severity}"] = here[here["family"] != "noise"].groupby("run")["accuracy"].mean()
    return found.sort_values(["seed", "method", "strength"])


def levels(one: Any, other: Any, plain: float) -> Any:
    """The clean accuracies at which two methods are compared, of what each has at its strengths and that without any;
    none where they share none."""
    low, high = max(min(one), min(other), plain - LOSS), min(max(one), max(other))
    return np.linspace(low, high, LEVELS) if low <= high else np.zeros(0)


def on_path(clean: Any, value: Any, level: float) -> float:
    """The value where the path last has that clean accuracy. It has it somewhere.

    >>> on_path([0.8, 0.9, 0.7], [1.0, 2.0, 4.0], 0.8)
    3.0
    """
    points = list(zip(clean, value, strict=True))
    for (x, y), (before, then) in zip(points[:0:-1], points[-2::-1], strict=True):
        if min(x, before) <= level <= max(x, before):
            return float(y if x == before else y + (then - y) * (level - x) / (before - x))
    return float(points[0][1])


def differences(found: pd.DataFrame, other: str, column: str) -> list[float]:
    """Of every seed in which they share a clean accuracy: by how much the penalty has more of it than the other."""
    each = []
    for _, runs in found.groupby("seed"):
        (plain,) = of(runs, method="none")["test_accuracy"]
        paths = [of(runs, method=method) for method in ("penalty", other)]
        (ours, theirs), (a, b) = ([path[name].tolist() for path in paths] for name in ("test_accuracy", column))
        places = levels(ours, theirs, plain)
        if len(places):
            each.append(float(np.mean([on_path(ours, a, at) - on_path(theirs, b, at) for at in places])))
    return each


COMPARED = {
    "severity 1": "accuracy, severity 1",
    "severity 2": "accuracy, severity 2",
    "unlike 2": "accuracy, severity 2 without the family of noise",
    "sensitivity": "log10 of sensitivity",
    "shop": "log10 of ShOp",
}


def _compared(other: str, column: str) -> Measured:
    """How much better the penalty is: more accurate, or less sensitive and flatter."""
    accuracy = column not in ("sensitivity", "shop")

    def measured(table: pd.DataFrame) -> Estimate | None:
        found = outcomes(table)
        if column not in found:
            return None
        each = differences(found, other, column)
        return mean(each, (-1.0, 1.0)) if accuracy else mean([-value for value in each], (-5.0, 5.0))

    return measured


def _sharing(other: str) -> Measured:
    def measured(table: pd.DataFrame) -> Estimate:
        found = outcomes(table)
        seeds = found["seed"].nunique()
        shared = len(differences(found, other, "sensitivity"))
        return share([True] * shared + [False] * (seeds - shared))

    return measured


def _claims(other: str) -> list[Claim]:
    name = METHODS[other]
    better = [
        above(f"penalty above {name} at equal clean accuracy: {COMPARED[column]}", 0.01, 0.3, _compared(other, column))
        for column in ("severity 1", "severity 2", "unlike 2")
    ]
    lower = [
        above(f"penalty below {name} at equal clean accuracy: {COMPARED[column]}", 0.05, 1.5, _compared(other, column))
        for column in ("sensitivity", "shop")
    ]
    words = f"share of seeds in which penalty and {name} reach the same clean accuracy"
    return [*better, *lower, Claim(words, 1, _sharing(other), tolerance=0.2, resolution=0.4)]


CLAIMS = [claim for other in ("noise", "decay", "none") for claim in _claims(other)]

DEPARTURES = []
