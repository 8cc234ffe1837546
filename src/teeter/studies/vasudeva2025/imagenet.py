"""Are pretrained transformers less sensitive than pretrained convolutions?

V section 5 and appendix D, ImageNet-1k: a patch of 20,000 training images gets Gaussian noise of variance 15, for a
ConvNeXtV2-Tiny and a ViT-L/16 that others have trained. Neither is in any package: the paper tier runs where the user's
own files are (docs/data.md), and no other tier says anything of V's numbers. There, EfficientNet-Lite0, which a package
has, stands in for the ConvNeXt and a small ViT trained here for the ViT-L/16, on small images that are enlarged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn

from teeter.data import class_folders, imagenet_folder, subset
from teeter.data.imagenet import own_imagenet
from teeter.data.own import absent, owned
from teeter.errors import InputError
from teeter.integrations import ImageFormat, efficientnet_lite0, fit_probe, load_model, read_images
from teeter.measure import Estimate
from teeter.models import EfficientNetLite
from teeter.perturb import PatchNoise
from teeter.runs import Together
from teeter.studies.devices import device_here
from teeter.studies.log_axis import logarithmic
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import looks
from teeter.studies.vasudeva2025.over_epochs import LEAST, Measured, told, variance_axis
from teeter.studies.vasudeva2025.settings import SETTINGS, Setting, enlarged, scaled
from teeter.studies.vasudeva2025.vision import TOOK, TRAINED, Seen, chosen, finals, model_of, of, sees
from teeter.train import measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["NAMES", "PRETRAINED", "STUDY", "Features", "figure", "run", "runs"]

PUBLISHED = {"convnextv2-tiny": 0.0342, "vit-large-patch16": 0.0191}
Labelled: TypeAlias = tuple[Tensor, Tensor]
ACCURACY, IMAGES = 0.85, 20_000
PRETRAINED = "pretrained"
NAMES = {
    ("convnextv2-tiny", PRETRAINED): "ConvNeXtV2-Tiny",
    ("vit-large-patch16", PRETRAINED): "ViT-L/16",
    ("efficientnet-lite0", PRETRAINED): "EfficientNet-Lite0, pretrained",
    ("efficientnet-lite0", ""): "EfficientNet-Lite0, trained here",
    ("vit-simple", ""): "ViT-simple, trained here",
}


def _given(data: str, images: int, model: str = "efficientnet-lite0") -> Seen:
    """A model that others have trained; what it says is measured as it is."""
    return Seen(data, model, 0, rate=0.0, epochs=0, training=PRETRAINED, images=images)


SMOKE = [
    _given("digits-32", 120),
    Seen("digits-32", "efficientnet-lite0", 0, 0.003, epochs=2, optimizer="adam", images=120),
    Seen("digits-32", "vit-simple", 0, 0.003, epochs=2, optimizer="adam", images=120),
]
SMALL = [
    _given("cifar10-96", 400),
    *(Seen("cifar10-96", "vit-simple", seed, 0.001, epochs=40, optimizer="adam", images=400) for seed in range(3)),
]
PAPER = [_given("imagenet", IMAGES, model) for model in PUBLISHED]


class Features(nn.Module):
    """What EfficientNet-Lite makes of an image before its head; an image that is too small is enlarged."""

    def __init__(self, body: EfficientNetLite, size: int) -> None:
        super().__init__()
        self.body, self.size = body, size

    def forward(self, images: Tensor) -> Tensor:
        return self.body.features(enlarged(images, self.size))


class FromPixels(nn.Module):
    """A model that takes pixels from -1 to 1, whatever form it wants them in."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: Any, form: ImageFormat) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor(form.mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(form.std).view(-1, 1, 1))

    def pixels(self, images: Tensor) -> Tensor:
        """From the model's own form."""
        return 2 * (images * self.std + self.mean) - 1

    def forward(self, pixels: Tensor) -> Tensor:
        return self.model(((pixels + 1) / 2 - self.mean) / self.std)


def _fitted(spec: Seen) -> list[dict[str, Any]]:
    """EfficientNet-Lite0 as it was trained on ImageNet, with a head for these images; of digits, which it cannot read,
    a small one with random weights, for the smoke tier's sake."""
    device, setting = device_here(), SETTINGS[spec.data]
    (x, y), (unseen, theirs) = (scaled(chosen(spec, split), device) for split in ("train", "test"))
    body = model_of(spec) if spec.data.startswith("digits") else efficientnet_lite0()
    assert isinstance(body, EfficientNetLite)
    model = fit_probe(Features(body.to(device).eval(), setting.size), x, y).eval()
    index = subset(len(x), -(-spec.images // 2) or TRAINED, seed=1).to(device)
    shown = enlarged(x[index], setting.size)
    return list(_looked_at(model, setting, (shown, y[index]), (enlarged(unseen, setting.size), theirs)))


def _looked_at(model: Any, setting: Setting, train: Labelled, test: Labelled | None) -> Iterator[dict[str, Any]]:
    """The rows of a model that is not trained: there is one alone, so that accuracies have intervals over images."""
    row = looks.look(train, test, PatchNoise(setting.patch, setting.sigma2))(model)
    for name, images in (("train_accuracy", train), ("test_accuracy", test)):
        if images is not None:
            found = measures.accuracy(*images)(model)
            assert isinstance(found, Estimate)
            row |= looks.told(name, found)
    frequent = float(train[1].bincount().max()) / len(train[1])  # how often one answer would be right
    yield {"about": "epoch", "epoch": 0.0, "step": 0, "frequent": frequent, **row}
    yield {"about": "fate", "fate": "done"}
    every = looks.nudges(train[0], setting.patch, setting.sigma2, setting.levels)
    yield from looks.noises(model, train[0], setting.sigma2, every)


def _read(split: str, limit: int, form: ImageFormat) -> tuple[Tensor, Tensor, int]:
    """So many photographs in a model's own form, their labels, and how many classes there are."""
    known = class_folders(imagenet_folder(split))
    index = subset(len(known), limit, seed=0)
    images = read_images([known.places[i] for i in index.tolist()], form)
    return images, known.labels[index], len(known.classes)


def _pretrained(spec: Seen) -> list[dict[str, Any]]:
    """A model directory of the user's, on the user's photographs."""
    folder = f"imagenet-models/{spec.model}"
    place = owned([folder])
    if place is None:
        raise absent(f"a pretrained {spec.model}", "config.json and model.safetensors", folder)
    imagenet_folder("train")  # an error before the model is read
    device, setting = device_here(), SETTINGS["imagenet"]
    model: Any = load_model(str(place))
    form = getattr(model, "image_format", None) or ImageFormat.of(place)
    x, y, classes = _read("train", spec.images, form)
    model = model.to(device)
    with torch.no_grad():
        said = model(x[:1].to(device)).shape[-1]
    if said != classes:
        raise InputError(
            f"{place} tells {said} classes, and {imagenet_folder('train')} has {classes}: give all of them"
        )
    train = x.to(device), y.to(device)
    test = None
    if own_imagenet("val") is not None:
        seen, labels, _ = _read("val", -(-spec.images // 6), form)
        test = seen.to(device), labels.to(device)
    return [*_looked_at(model, setting, train, test), *_other_readings(model, form, train[0])]


def _other_readings(model: nn.Module, form: ImageFormat, x: Tensor) -> Iterator[dict[str, Any]]:
    """The same variance on patches of 4 pixels, and on pixels from -1 to 1."""
    setting, inside = SETTINGS["imagenet"], FromPixels(model, form).to(x.device).eval()
    large, small = (PatchNoise(patch, setting.sigma2) for patch in (setting.patch, 4))
    for kind, network, images, noise in (
        ("patch of 4", model, x, small),
        ("patch, in pixels", inside, inside.pixels(x), large),
    ):
        found = looks.sensitivity(network, images, looks.outputs(network, images), noise)
        yield {"about": "noise", "noise": kind, "sigma2": setting.sigma2, **looks.told("sensitivity", found)}


def runs(spec: Seen, folder: Path | None) -> list[dict[str, Any]]:
    """What is trained here keeps in the folder what is under way."""
    if spec.training != PRETRAINED:
        return sees(spec, folder)
    return _pretrained(spec) if spec.data == "imagenet" else _fitted(spec)


def run(spec: Seen) -> list[dict[str, Any]]:
    return runs(spec, None)


def _alone(specs: Sequence[Seen], folder: Path | None) -> list[list[dict[str, Any]]]:
    return [runs(spec, folder) for spec in specs]


def _estimate(rows: Any, column: str) -> Estimate | None:
    """What a row says, with its own interval: its unit is the image, since there is one model alone."""
    if rows.empty or column not in rows or rows[column].isna().any():
        return None
    [row] = rows.to_dict("records")
    return Estimate(row[column], row[f"{column}_low"], row[f"{column}_high"], n=int(row["images"]))


def sensitivity_of(model: str) -> Measured:
    return lambda table: _estimate(of(finals(table), data="imagenet", model=model), "sensitivity")


def accuracy_of(model: str, split: str) -> Measured:
    return lambda table: _estimate(of(table, about="epoch", data="imagenet", model=model), f"{split}_accuracy")


def ratio(table: pd.DataFrame) -> Estimate | None:
    """log10 of ConvNeXt's sensitivity over the ViT's, as far apart and as close as their intervals allow."""
    above, below = (sensitivity_of(model)(table) for model in PUBLISHED)
    if above is None or below is None:
        return None
    low, value, high = (
        math.log10(max(one, LEAST) / max(other, LEAST))
        for one, other in ((above.low, below.high), (above.value, below.value), (above.high, below.low))
    )
    return Estimate(value, low, high, n=above.n)


CLAIMS = [
    *(
        told(f"{NAMES[model, PRETRAINED]}: sensitivity on training images", value, sensitivity_of(model))
        for model, value in PUBLISHED.items()
    ),
    Claim(
        "ConvNeXtV2-Tiny over ViT-L/16: log10 of the ratio of sensitivities (rule: within a factor of 1.5)",
        round(math.log10(PUBLISHED["convnextv2-tiny"] / PUBLISHED["vit-large-patch16"]), 4),
        ratio,
        tolerance=0.176,
        resolution=0.076,  # an interval that reaches from the tolerance to 0, where both are alike, would be wider
    ),
    *(
        Claim(
            f"{NAMES[model, PRETRAINED]}: accuracy on {words} images",
            ACCURACY,
            accuracy_of(model, split),
            tolerance=0.005,
            resolution=0.02,
        )
        for model in PUBLISHED
        for split, words in (("train", "training"), ("test", "validation"))
    ),
]

DEPARTURES = [
    "V's models and images are in no package registry. Below the paper tier others stand in for them, and V's claims "
    "are then not run: EfficientNet-Lite0, trained on ImageNet by others, whose head is fitted here to ten classes by "
    "logistic regression, and a small ViT trained here with Adam. They differ in training as well as in architecture.",
    "The stand-ins see CIFAR-10 (at the smoke tier scikit-learn's digits, and a small network with random weights for "
    "EfficientNet-Lite0), enlarged bilinearly: the small tier has 400 images of 96 x 96 pixels. Such images are "
    "blurred, and a patch of 16 pixels covers 5 x 5 of theirs.",
    "V names no checkpoints, of which both architectures have several. They are the user's to choose; V says that both "
    "have an accuracy of 85 % on training and validation images, which is therefore a claim.",
    "V has patches of 4 pixels for all images but MNIST's, while a ViT-L/16 reads patches of 16: noise is on patches "
    "of 16. The paper tier also measures it on patches of 4.",
    "V does not say what the variance refers to. Here it is images as each model wants them, standardised in its own "
    "way; models may differ in this, so the paper tier also measures noise of the same variance on pixels from -1 to "
    "1.",
    "Sensitivity is estimated from (image, patch, noise) triples drawn at random, five of each image at V's "
    "variance, where V takes every patch of 20,000 images. Intervals are over images: there is one model of each kind.",
]

COLOURS = {kind: f"C{i}" for i, kind in enumerate(NAMES)}


def figure(table: pd.DataFrame) -> Figure:
    """Sensitivity against accuracy, through training where that was done here, and against the variance."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    rows, noise = of(table, about="epoch"), of(table, about="noise", noise="patch")
    for (model, training), name in NAMES.items():
        here, there = (of(each, model=model, training=training) for each in (rows, noise))
        if here.empty:
            continue
        look = {"color": COLOURS[model, training], "marker": "*" if training else ".", "linewidth": 0.8}
        for _, own in here.groupby("run"):
            own = own.sort_values("epoch")
            left.plot(own["train_accuracy"], own["sensitivity"], markersize=10 if training else 4, **look)
        for number, (_, own) in enumerate(there.groupby("run")):
            own = own.sort_values("sigma2")
            label = "_" if number else name  # matplotlib leaves out what begins so
            right.plot(own["sigma2"], own["sensitivity"], markersize=8 if training else 4, label=label, **look)
            if training:  # one model alone: what is not known of it are its intervals
                colour = look["color"]
                right.fill_between(
                    own["sigma2"], own["sensitivity_low"], own["sensitivity_high"], color=colour, alpha=0.2
                )
    logarithmic(left, rows["sensitivity"])
    left.set(xlabel="accuracy, training images", ylabel="sensitivity, training images")
    variance_axis(right, sorted(noise["sigma2"].unique()))
    drawing.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


STUDY = Study(
    name="vasudeva2025/imagenet",
    paper="vasudeva2025",
    where="Section 5, appendix D",
    title="Sensitivity of pretrained models",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=Together(key=lambda spec: spec, run=_alone, most=1),
    demo="smoke",
    took=TOOK,
)
