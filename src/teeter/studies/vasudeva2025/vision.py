"""What V's experiments on images share (section 5, 7.1, 7.2, appendices A and D): a model is trained and measured.

Pixels are scaled to -1..1, which is what the variances of the noise refer to: the text does not say it, the released
code does. Training is plain SGD (the text names neither momentum nor weight decay) on images as they are, since neither
text nor released code augments them. V gives no number of epochs, but says that accuracies on the training set are
comparable: comparisons are made at the end, as in V, and where all models have the same accuracy (`matched`).

A run gives rows about four things, told apart by their column `about`: "epoch" (accuracy, loss and sensitivity while it
is trained), and at the end "noise" (sensitivity by kind and variance of the noise), "weights" (sharpness, V 7.2) and
"corruption" (accuracy on corrupted test images, V 7.1; of CIFAR-10 alone).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from teeter import data, measure
from teeter.data import LabelledImages
from teeter.errors import UnknownName
from teeter.measure import Estimate
from teeter.models import MODELS
from teeter.perturb import InputNoise, Inputs, PatchNoise
from teeter.runs import Together
from teeter.studies.devices import device_here
from teeter.train import Recipe, SensitivityPenalty, add_noise, bar, measures, shuffled, train
from teeter.train.state import own_randomness
from teeter.train.streams import Augment

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FAMILIES",
    "SETTINGS",
    "TOGETHER",
    "Seen",
    "Setting",
    "chosen",
    "ends",
    "enlarged",
    "finals",
    "has",
    "marks",
    "matched",
    "model_of",
    "noises",
    "of",
    "run",
    "scaled",
    "sees",
    "triples",
    "watched",
]


@dataclass(frozen=True)
class Setting:
    """A data set as V uses it."""

    read: Callable[[str], LabelledImages]
    patch: int
    sigma2: float
    batch: int = 100
    whole: float = 0.025  # the variance of noise on all pixels (A.2)
    size: int = 0  # pixels that an image is enlarged to; 0: as it is
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of models, where they are not V's own


# Of every kind of model one that scikit-learn's digits (8 x 8) can be learned with in seconds.
TINY: dict[str, dict[str, Any]] = {
    "cnn": dict(image_size=8, dim=8, width=32),
    "convmixer": dict(patch=4, dim=32, layers=2),
    "densenet121": dict(blocks=(2, 2), growth=8, dim=16),
    "mlp-leaky-relu": dict(image_size=8, widths=(64, 32)),
    "mlp-sigmoid": dict(image_size=8, widths=(64, 32)),
    "resnet18": dict(blocks=(1, 1), dim=16),
    "vit-simple": dict(image_size=8, patch=4, dim=32, layers=2, heads=2, dim_head=16, width=64),
    "vit-small": dict(image_size=8, patch=4, dim=32, layers=2, heads=2, dim_head=16, width=64),
}
SETTINGS = {
    "mnist": Setting(data.below_5, patch=7, sigma2=1.0, batch=50),
    "fashion-mnist": Setting(data.fashion_mnist, patch=4, sigma2=5.0),
    "cifar10": Setting(data.cifar10, patch=4, sigma2=1.0),
    "svhn": Setting(data.svhn, patch=4, sigma2=1.0),
    "digits": Setting(
        data.digits,
        patch=4,
        sigma2=1.0,
        batch=20,
        sizes={name: dict(own, channels=1) for name, own in TINY.items()},
    ),
    # V's variance for ImageNet, of which the first is; the others are smaller images, enlarged.
    "imagenet": Setting(data.imagenet, patch=16, sigma2=15.0),
    "cifar10-224": Setting(
        data.cifar10,
        patch=16,
        sigma2=15.0,
        size=224,
        sizes={"efficientnet-lite0": dict(classes=10), "vit-simple": dict(image_size=224, patch=16)},
    ),
    "cifar10-96": Setting(
        data.cifar10,
        patch=16,
        sigma2=15.0,
        batch=20,
        size=96,
        sizes={
            "efficientnet-lite0": dict(classes=10),
            "vit-simple": dict(image_size=96, patch=16, layers=3, heads=4, dim_head=16, width=128),
        },
    ),
    "digits-32": Setting(
        data.digits,
        patch=8,
        sigma2=15.0,
        batch=20,
        size=32,
        sizes={
            "efficientnet-lite0": dict(
                channels=1, classes=10, dim=8, width=32, stages=((1, 3, 1, 1, 8), (1, 3, 2, 2, 16))
            ),
            "vit-simple": dict(TINY["vit-simple"], image_size=32, patch=8, channels=1),
        },
    ),
}
FAMILIES = ("noise", "blur", "weather", "digital")  # of corruptions
LEVELS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # times the setting's own variance (Fig. 17)
SEVERITIES = (1, 2)  # Fig. 21 and 20
PENALTY, HALVING = 0.25, 8  # the strength (appendix D), and after how many epochs Adam's rate is halved (A.3)
SHARED, RHO, DRAWS = 0.3, 0.005, 5  # of the training set that sensitivity is measured on; weight noise of 7.2
_ROWS = 10  # after the first ten epochs, about so many more rows are made
# For a row: images of the training set for its accuracy, and triples of image, patch and noise for sensitivity, five
# times as many of them at the end. Of fewer than 30,000 images, a third.
_SOME = 10_000


@dataclass(frozen=True)
class Seen:
    """One run. `training` is "" or one of V 7.1: "penalty", "penalty as released", "noise"."""

    data: str
    model: str
    seed: int
    rate: float
    epochs: int
    optimizer: str = "sgd"
    training: str = ""
    images: int = 0  # of the training set; 0: all
    layers: int = 0  # 0: as many as the model of that name has
    heads: int = 0


def model_of(spec: Seen) -> nn.Module:
    """The model with its first weights, which depend on the seed alone."""
    if spec.model not in MODELS:
        raise UnknownName("model", spec.model, MODELS)
    sizes = SETTINGS[spec.data].sizes.get(spec.model, {})
    own = {name: value for name, value in (("layers", spec.layers), ("heads", spec.heads)) if value}
    with own_randomness(torch.device("cpu"), spec.seed):
        return MODELS[spec.model](**{**sizes, **own})


@lru_cache(maxsize=4)
def _read(name: str, split: str) -> LabelledImages:
    return SETTINGS[name].read(split)


def scaled(images: LabelledImages, device: torch.device) -> tuple[Tensor, Tensor]:
    """Pixels from -1 to 1, and labels."""
    there = images.to(device)
    return there.standardised(0.5, 0.5), there.labels


def enlarged(images: Tensor, size: int) -> Tensor:
    """The same with so many pixels, bilinear between those there are; as they are where size is 0 or theirs already."""
    if size in (0, images.shape[-1]):
        return images
    larger = images.new_empty(*images.shape[:2], size, size)
    for here, some in zip(larger.split(1000), images.split(1000), strict=True):  # all at once would take twice the room
        here.copy_(nn.functional.interpolate(some, (size, size), mode="bilinear"))
    return larger


def _augment(spec: Seen) -> Augment | None:
    """What happens to a batch before it is seen."""
    size, noise = SETTINGS[spec.data].size, spec.training == "noise"
    if not size:
        return add_noise if noise else None

    def augment(images: Tensor, index: Tensor, *, seed: int, epoch: int) -> Inputs:
        larger = enlarged(images, size)
        return add_noise(larger, index, seed=seed, epoch=epoch) if noise else larger

    return augment


def chosen(spec: Seen, split: str) -> LabelledImages:
    """The images of a run: a random part of the set where it has fewer (of the test set a sixth as many)."""
    images = _read(spec.data, split)
    limit = spec.images if split == "train" else -(-spec.images // 6)
    return images.take(data.subset(len(images), limit, seed=0)) if spec.images else images


def _recipe(spec: Seen, epoch: int, device: torch.device) -> Recipe:
    rate = spec.rate * (1 - PENALTY) if spec.training == "penalty as released" else spec.rate
    return Recipe(
        steps=spec.epochs * epoch,
        batch=SETTINGS[spec.data].batch,
        optimizer=spec.optimizer,
        rate=rate,
        weight_decay=0.0,
        schedule=f"step:{HALVING * epoch}" if spec.optimizer == "adam" else "constant",
        loss="cross-entropy",
        arithmetic="bf16" if device.type == "cuda" else None,
    )


def _penalty(spec: Seen) -> SensitivityPenalty | None:
    """As released, (1 - p) * loss + p * distance is (1 - p) times loss + p / (1 - p) * distance: for plain SGD a rate
    of (1 - p) as much and that strength."""
    strengths = {"": 0.0, "noise": 0.0, "penalty": PENALTY, "penalty as released": PENALTY / (1 - PENALTY)}
    if spec.training not in strengths:
        raise UnknownName("training", spec.training, strengths)
    strength, setting = strengths[spec.training], SETTINGS[spec.data]
    return SensitivityPenalty(PatchNoise(setting.patch, setting.sigma2), strength, seed=spec.seed) if strength else None


def marks(epochs: int) -> list[int]:
    """The epochs after which there is a row: the first ten, then about ten more."""
    return sorted({*range(min(epochs, 10) + 1), *range(10, epochs + 1, max(epochs // _ROWS, 1)), epochs})


def triples(images: int) -> int:
    """How many triples of image, patch and noise a row rests on, with so many images to learn from."""
    return min(images // 3, _SOME)


def watched(
    name: str, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor] | None, share: float = SHARED
) -> tuple[Tensor, dict[str, measures.Measure]]:
    """The images that sensitivity is measured on, and what is measured of a model at each row."""
    (x, y), setting, some = train, SETTINGS[name], triples(len(train[0]))
    index = data.subset(len(x), max(int(share * len(x)), min(len(x), 500)), seed=1).to(x.device)
    shown = data.subset(len(x), some, seed=2).to(x.device)
    part, seen = (enlarged(x[these], setting.size) for these in (index, shown))
    what: dict[str, measures.Measure] = {
        "train_accuracy": measures.accuracy(seen, y[shown]),
        "train_loss": measures.loss(seen, y[shown], "cross-entropy"),
    }
    if test is not None:
        unseen = enlarged(test[0], setting.size)
        what["test_accuracy"] = measures.accuracy(unseen, test[1])
        what["test_loss"] = measures.loss(unseen, test[1], "cross-entropy")
    noise = PatchNoise(setting.patch, setting.sigma2)
    what["sensitivity"] = measures.sensitivity(part, noise, budget=2 * some)  # an image as it is, and nudged
    return part, what


def sees(spec: Seen, folder: Path | None) -> list[dict[str, Any]]:
    """Train and measure one model; a folder keeps what is under way."""
    device, setting = device_here(), SETTINGS[spec.data]
    (x, y), (test, labels) = (scaled(chosen(spec, split), device) for split in ("train", "test"))
    model, penalty = model_of(spec).to(device), _penalty(spec)
    epoch = max(len(x) // setting.batch, 1)
    recipe = _recipe(spec, epoch, device)
    part, what = watched(spec.data, (x, y), (test, labels))
    with bar() as progress:
        made = train(
            model,
            shuffled(x, y, setting.batch, spec.seed, augment=_augment(spec)),
            recipe,
            measures=what,
            every=[each * epoch for each in marks(spec.epochs)],
            folder=folder,
            keep=10 * epoch,
            penalty=penalty,
            progress=progress,
            seed=spec.seed,
            compile=device.type == "cuda",
        )
    if made.stopped == "interrupted":
        raise KeyboardInterrupt
    kept = [{name: value for name, value in row.items() if name != "rate"} for row in made.rows]  # the spec's own
    rows = [{"about": "epoch", "epoch": row["step"] / epoch, **row} for row in kept]
    rows += noises(model, part, setting, triples(len(x)))
    rows += _weights(model, part[: triples(len(x))])
    rows += _corruptions(model, spec, device) if spec.data == "cifar10" else []
    return rows


def _told(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def noises(model: nn.Module, x: Tensor, setting: Setting, triples: int) -> Iterator[dict[str, Any]]:
    """Noise on a patch, at several variances, and on the whole image."""
    variances = [level * setting.sigma2 for level in LEVELS]
    kinds = [("patch", variance, PatchNoise(setting.patch, variance)) for variance in variances]
    for kind, variance, noise in [*kinds, ("whole", setting.whole, InputNoise(setting.whole))]:
        times = 5 if (kind, variance) == ("patch", setting.sigma2) else 1
        found = measure.sensitivity(model, x, noise, budget=2 * times * triples, batch=1024)
        yield {"about": "noise", "noise": kind, "sigma2": variance, **_told("sensitivity", found)}


def _weights(model: nn.Module, x: Tensor) -> list[dict[str, Any]]:
    shop = measure.sharpness(model, x, "output", rho=RHO, draws=DRAWS, batch=1024)
    shpred = measure.sharpness(model, x, "prediction", rho=RHO, draws=DRAWS, batch=1024)
    return [{"about": "weights", **_told("shop", shop), **_told("shpred", shpred)}]


def _corruptions(model: nn.Module, spec: Seen, device: torch.device) -> Iterator[dict[str, Any]]:
    test = chosen(spec, "test")
    for family in FAMILIES:
        for name in data.FAMILIES[family]:
            for severity in SEVERITIES:
                x, labels = scaled(data.cifar10_c(name, severity, test if spec.images else None), device)
                found = measures.accuracy(x, labels)(model)
                assert isinstance(found, Estimate)
                where = {"corruption": name, "family": family, "severity": severity}
                yield {"about": "corruption", **where, **_told("accuracy", found)}


def run(spec: Seen) -> list[dict[str, Any]]:
    return sees(spec, None)


def _alone(specs: Sequence[Seen], folder: Path | None) -> list[list[dict[str, Any]]]:
    return [sees(spec, folder) for spec in specs]


TOGETHER = Together(key=lambda spec: spec, run=_alone, most=1)  # one at a time, for the folder's sake


def has(table: pd.DataFrame, data: str) -> bool:
    """Whether any run was on those images."""
    return data in set(table["data"])


def of(table: Any, **these: Any) -> Any:
    """The rows with these values."""
    for name, value in these.items():
        table = table.loc[table[name] == value]
    return table


def ends(table: pd.DataFrame) -> Any:
    """The last epoch of every run."""
    rows = of(table, about="epoch")
    return rows.loc[rows.groupby("run")["epoch"].idxmax()]


def finals(table: pd.DataFrame) -> Any:
    """Of every run its sensitivity at the end, from the most triples: to noise on a patch of V's own variance."""
    rows = of(table, about="noise", noise="patch")
    return rows.loc[rows["sigma2"] == rows["data"].map(lambda name: SETTINGS[name].sigma2)]


def matched(table: pd.DataFrame) -> Any:
    """Of every run the first row at which it is as accurate on its training set as the least accurate run ever gets."""
    rows = of(table, about="epoch").sort_values("epoch")
    level = rows.groupby("run")["train_accuracy"].max().min()
    return rows.loc[rows["train_accuracy"] >= level].groupby("run", as_index=False).first()
