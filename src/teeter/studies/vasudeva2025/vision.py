"""What V's experiments on images share (section 5, 7.1, 7.2, appendices A and D): a model is trained and measured.

Pixels are scaled to -1..1, which is what the variances of the noise refer to: the text does not say it, the released
code does. Training is plain SGD (the text names neither momentum nor weight decay) on images as they are, since neither
text nor released code augments them. V gives no number of epochs, but says that accuracies on the training set are
comparable: comparisons are made at the end, as in V, and where all models have the same accuracy (`matching`).

A run gives rows about six things, told apart by their column `about`: "epoch" (accuracy, loss and sensitivity while it
is trained), of CIFAR-10 "meanwhile" (sensitivity to other noise, at the same epochs), "fate" (whether it came to its
end), and then "noise" (sensitivity by kind and variance of the noise), and of CIFAR-10 "weights" (sharpness, V 7.2) and
"corruption" (accuracy on corrupted test images, V 7.1). A run that diverges has no rows of the last three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from teeter import data
from teeter.data import LabelledImages
from teeter.errors import UnknownName
from teeter.models import MODELS
from teeter.perturb import Inputs, PatchNoise
from teeter.runs import Together
from teeter.studies.devices import device_here
from teeter.studies.vasudeva2025.looks import SEVERITIES, fit, look, noises, nudges, outputs, sharpnesses
from teeter.studies.vasudeva2025.matching import FAIR, at_level
from teeter.studies.vasudeva2025.settings import SETTINGS, enlarged, read, scaled
from teeter.train import Diverged, Recipe, SensitivityPenalty, add_noise, bar, shuffled, train
from teeter.train.state import own_randomness
from teeter.train.streams import Augment

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CORRUPTIONS",
    "DROPOUT",
    "FAMILIES",
    "RELEASED",
    "TOGETHER",
    "TOOK",
    "TRAINED",
    "Seen",
    "batch_of",
    "chosen",
    "ends",
    "finals",
    "has",
    "learners",
    "marks",
    "matched",
    "meanwhile",
    "model_of",
    "of",
    "run",
    "sees",
]


DROPOUT = 0.1  # of the released code
TOOK = "about 17 hours a setting on two A6000 GPUs"
FAMILIES = ("noise", "blur", "weather", "digital")  # of corruptions
CORRUPTIONS = [name for family in FAMILIES for name in data.FAMILIES[family]]
# The released code has Gaussian blur in the place of defocus blur, and loses Gaussian noise by a missing comma. It
# counts severities from 0: what it calls 1 is 2.
RELEASED = [name.replace("defocus", "gaussian") for name in CORRUPTIONS if name != "gaussian_noise"]
PENALTY, HALVING = 0.25, 8  # the strength (appendix D), and after how many epochs Adam's rate is halved (A.3)
# Images, at most: of the training set, on which accuracy and sensitivity are measured (a half where a run has but a
# part of the set), and of the test set.
TRAINED, TESTED = 10_000, 5_000
_EACH, _ROWS = 10, 8  # a row after each of the first epochs, and about so many more


@dataclass(frozen=True)
class Seen:
    """One run. `training` is "", one of V 7.1 ("penalty", "penalty as released", "noise") or "dropout"."""

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
    dropout = DROPOUT if spec.training == "dropout" else 0.0
    more = {"layers": spec.layers, "heads": spec.heads, "dropout": dropout, "embedding_dropout": dropout}
    own = {name: value for name, value in more.items() if value}
    with own_randomness(torch.device("cpu"), spec.seed):
        return MODELS[spec.model](**{**sizes, **own})


def chosen(spec: Seen, split: str) -> LabelledImages:
    """The images of a run: random ones, where there are more. Of fewer training images a sixth as many test it."""
    images = read(spec.data, split)
    return images.take(_which(spec, split, len(images)))


def _which(spec: Seen, split: str, there: int) -> Tensor:
    limit = spec.images or None if split == "train" else min(-(-spec.images // 6) or TESTED, TESTED)
    return data.subset(there, limit, seed=0)


def _augment(spec: Seen) -> Augment | None:
    """What happens to a batch before it is seen."""
    size, noise = SETTINGS[spec.data].size, spec.training == "noise"
    if not size:
        return add_noise if noise else None

    def augment(images: Tensor, index: Tensor, *, seed: int, epoch: int) -> Inputs:
        larger = enlarged(images, size)
        return add_noise(larger, index, seed=seed, epoch=epoch) if noise else larger

    return augment


def batch_of(spec: Seen) -> int:
    """V's, or a fifth of it where there are few images: their epochs would be too few steps to learn anything in."""
    return SETTINGS[spec.data].batch // (5 if spec.images else 1)


def _recipe(spec: Seen, epoch: int, device: torch.device) -> Recipe:
    rate = spec.rate * (1 - PENALTY) if spec.training == "penalty as released" else spec.rate
    return Recipe(
        steps=spec.epochs * epoch,
        batch=batch_of(spec),
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
    strengths = {"penalty": PENALTY, "penalty as released": PENALTY / (1 - PENALTY)}
    strengths |= dict.fromkeys(("", "noise", "dropout"), 0.0)
    if spec.training not in strengths:
        raise UnknownName("training", spec.training, strengths)
    strength, setting = strengths[spec.training], SETTINGS[spec.data]
    noise = PatchNoise(setting.patch, setting.sigma2)
    return SensitivityPenalty(noise, strength, seed=spec.seed, recorded=True) if strength else None


def marks(epochs: int) -> list[int]:
    """The epochs after which there is a row: the first ten, then about eight more."""
    first = min(epochs, _EACH)
    return sorted({*range(first + 1), *range(first, epochs + 1, max(-(-(epochs - first) // _ROWS), 1)), epochs})


def sees(spec: Seen, folder: Path | None) -> list[dict[str, Any]]:
    """Train and measure one model; a folder keeps what is under way."""
    device, setting = device_here(), SETTINGS[spec.data]
    if setting.corrupted:  # a corruption that cannot be made is an error before training, not after it
        for _ in _corrupted(spec, chosen(spec, "test").take(torch.arange(1))):
            pass
    (x, y), test = (scaled(chosen(spec, split), device) for split in ("train", "test"))
    model, penalty = model_of(spec).to(device), _penalty(spec)
    epoch = max(len(x) // batch_of(spec), 1)
    index = data.subset(len(x), -(-spec.images // 2) or TRAINED, seed=1).to(device)
    shown, unseen = enlarged(x[index], setting.size), (enlarged(test[0], setting.size), test[1])
    own = PatchNoise(setting.patch, setting.sigma2)
    every = nudges(shown, setting.patch, setting.sigma2, setting.levels, setting.whole, setting.replaced)
    others = [each for each in every if each.noise != own] if setting.along and not spec.training else []
    frequent = float(y.bincount().max()) / len(y)
    with bar() as progress:
        try:
            made = train(
                model,
                shuffled(x, y, batch_of(spec), spec.seed, augment=_augment(spec)),
                _recipe(spec, epoch, device),
                measures={"seen": look((shown, y[index]), unseen, own, others, setting.along)},
                every=[each * epoch for each in marks(spec.epochs)],
                folder=folder,
                keep=5 * epoch,
                penalty=penalty,
                progress=lambda step, steps, row: progress(step, steps, _short(row)),
                seed=spec.seed,
                compile=device.type == "cuda",
            )
        except Diverged as problem:
            return [*_epochs(problem.rows, epoch, frequent), {"about": "fate", "fate": "diverged"}]
    if made.stopped == "interrupted":
        raise KeyboardInterrupt
    rows = [*_epochs(made.rows, epoch, frequent), {"about": "fate", "fate": "done"}]
    rows += noises(model, shown, setting.sigma2, every)
    rows += sharpnesses(model, shown) if setting.weights else []
    rows += _corruptions(model, spec, device) if setting.corrupted else []
    return rows


def _epochs(rows: Sequence[Mapping[str, Any]], epoch: int, frequent: float) -> list[dict[str, Any]]:
    """Rows of training, without the rate, which is the spec's; `frequent` is how often one answer would be right. What
    a row says of other noise, which has a name of two words, has rows of its own, after all others."""
    found: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for row in rows:
        when, kept = {"epoch": row["step"] / epoch}, {name: value for name, value in row.items() if name != "rate"}
        found.append({"about": "epoch", **when, "frequent": frequent, **_short(kept)})
        for name in [name for name in kept if " " in name and not name.endswith(("_low", "_high"))]:
            kind, sigma2 = name.removeprefix("seen_").split(" ")
            ends = {f"sensitivity{end}": kept[f"{name}{end}"] for end in ("", "_low", "_high")}
            others.append({"about": "meanwhile", **when, "noise": kind, "sigma2": float(sigma2), **ends})
    return found + others


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of a model itself, which is also what a bar has room for."""
    return {name.removeprefix("seen_"): value for name, value in row.items() if " " not in name}


def _corrupted(spec: Seen, test: LabelledImages) -> Iterator[tuple[dict[str, Any], LabelledImages]]:
    """These test images under every corruption, of the text or of the released code: which it is, and the images."""
    family_of = {name: family for family, names in data.FAMILIES.items() for name in names}
    every = [(name, severity) for name in CORRUPTIONS for severity in SEVERITIES]
    released = [(name, severity + 1) for name in RELEASED for severity in SEVERITIES]
    for name, severity in dict.fromkeys([*every, *released]):
        found = data.cifar10_c(name, severity, test)
        if len(found) > len(test):  # official arrays are of all test images
            found = found.take(_which(spec, "test", len(found)))
        yield {"corruption": name, "family": family_of[name], "severity": severity}, found


def _corruptions(model: nn.Module, spec: Seen, device: torch.device) -> Iterator[dict[str, Any]]:
    """Accuracy on the test images of the run, corrupted."""
    for where, images in _corrupted(spec, chosen(spec, "test")):
        x, labels = scaled(images, device)
        yield {"about": "corruption", **where, "accuracy": fit("test", outputs(model, x), labels)["test_accuracy"]}


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


def finals(table: pd.DataFrame, noise: str = "patch") -> Any:
    """Of every run its sensitivity at the end, to noise of V's own variance: on a patch, or as the released code has
    it, "scattered"."""
    own = {name: each.sigma2 ** (2 if noise == "scattered" else 1) for name, each in SETTINGS.items()}
    rows = of(table, about="noise", noise=noise)
    return rows.loc[rows["sigma2"] == rows["data"].map(own)]


def learners(table: pd.DataFrame) -> Any:
    """The rows of runs that come to be right more often than one answer would be, by 0.05 on the training set."""
    best = of(table, about="epoch").groupby("run")[["train_accuracy", "frequent"]].max()
    return table.loc[table["run"].isin(best.index[best["train_accuracy"] >= best["frequent"] + FAIR])]


def matched(table: pd.DataFrame) -> Any:
    """Of every run that learns the row at which it is as accurate on its training set as all of them come to be."""
    return at_level(of(table, about="epoch"), "train_accuracy")


def meanwhile(table: pd.DataFrame) -> Any:
    """Of every run that learns, where it is as accurate as all of them come to be: its sensitivity to every kind of
    noise, V's own among them."""
    import pandas as pd

    same = matched(table)
    own = same.assign(noise="patch", sigma2=same["data"].map({name: each.sigma2 for name, each in SETTINGS.items()}))
    others = of(table, about="meanwhile").merge(same[["run", "epoch", "level"]], on=["run", "epoch"])
    return pd.concat([own, others], ignore_index=True)
