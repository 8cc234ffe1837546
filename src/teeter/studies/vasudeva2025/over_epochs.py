"""How V's studies of images are judged and drawn: models at the end and at equal accuracy, and their curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from teeter.measure import Estimate
from teeter.studies.log_axis import logarithmic
from teeter.studies.over_runs import POSITIVE, mean
from teeter.studies.study import Claim
from teeter.studies.vasudeva2025.vision import ends, finals, has, learners, matched, of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "NAMES",
    "Measured",
    "above",
    "at_the_end_in_words",
    "alike",
    "at_the_end",
    "beside",
    "by_model",
    "curves",
    "logs",
    "printed",
    "seeds_and_mean",
    "told",
    "variance_axis",
    "within",
]

Measured: TypeAlias = "Callable[[pd.DataFrame], Estimate | None]"
NAMES = {
    "densenet121": "DenseNet-121",
    "resnet18": "ResNet-18",
    "convmixer": "ConvMixer",
    "mlp-leaky-relu": "MLP, LeakyReLU",
    "mlp-mnist": "MLP",
    "mlp-sigmoid": "MLP, sigmoid",
    "cnn": "CNN",
    "vit-small": "ViT-small",
    "vit-simple": "ViT-simple",
    "vit-small-fashion-mnist": "ViT-small",
    "vit-small-mnist": "ViT-small",
    "vit-small-svhn": "ViT-small",
}
LEAST = 1e-4  # one change in the 10,000 triples of a row: sensitivities below are taken for this


def logs(values: Any) -> Any:
    """log10 of sensitivities, of which the smallest are taken for 1e-4."""
    return np.log10(values.clip(lower=LEAST))


def variance_axis(axes: Axes, variances: Sequence[float], label: str = "variance of the noise") -> None:
    """From left to right, with a tick for each."""
    from matplotlib.ticker import NullLocator

    axes.set(xscale="log", xlabel=label)
    axes.set_xticks(variances, [f"{each:g}" for each in variances])
    axes.xaxis.set_minor_locator(NullLocator())


def at_the_end(data: str, noise: str = "patch", **these: Any) -> Measured:
    """Mean sensitivity of such runs at the end of training; None where no run is on those images."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        found = of(finals(learners(table), noise), data=data, **these)
        return mean(found["sensitivity"], POSITIVE) if has(table, data) else None

    return measure


def beside(one: dict[str, Any], other: dict[str, Any], data: str | None = None) -> Measured:
    """log10 of one kind's sensitivity over another's, seed by seed, at equal accuracy on the training set; on those
    images alone where they are named."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        rows = table if data is None else of(table, data=data)
        if rows.empty:
            return None
        rows = matched(rows)
        above, below = (logs(of(rows, **kind).set_index("seed")["sensitivity"]) for kind in (one, other))
        return mean((above - below).dropna(), (-4.0, 4.0))

    return measure


def told(words: str, published: float, measure: Measured) -> Claim:
    """A sensitivity that V prints, of one run without an error: within a half of it is as it is printed."""
    return Claim(
        f"{words} (rule: within a half)", published, measure, tolerance=published / 2, resolution=published / 2
    )


def within(words: str, published: float, measure: Measured) -> Claim:
    """A ratio that V's numbers give, as a logarithm: a factor of three either way is the same."""
    said = f"{words}: log10 of the ratio (rule: within a factor of 3)"
    return Claim(said, math.log10(published), measure, tolerance=0.5, resolution=0.5)


def printed(data: str, published: dict[str, float]) -> list[Claim]:
    """The sensitivities at the end that V prints for these models, under noise as the text and as the code has it."""
    ways = {"patch": "at the end of training", "scattered": "at the end, noise as in the released code"}
    return [
        told(f"{NAMES[model]}: sensitivity {words}", value, at_the_end(data, noise, model=model))
        for noise, words in ways.items()
        for model, value in published.items()
    ]


def above(words: str, least: float, most: float, measure: Measured) -> Claim:
    """What V says in words alone: all of the number's interval is to lie between these, of which one is as far as it
    can go."""
    return Claim(f"{words} (rule: {least:g} to {most:g})", None, measure, allows=(least, most))


def alike(same: pd.DataFrame) -> str:
    """How accurate the runs are that are compared, in words."""
    if same.empty:
        return "no run has learned"
    found = same["train_accuracy"]
    return f"where accuracies on the training set are alike: {found.min():.3f} to {found.max():.3f}"


def at_the_end_in_words(table: pd.DataFrame, models: Sequence[str]) -> str:
    """How accurate models are once they are trained, diverged runs aside."""
    final = ends(table)
    means = ((NAMES[model], of(final, model=model)["train_accuracy"].mean()) for model in models)
    return f"accuracy on the training set at the end: {', '.join(f'{name} {value:.3f}' for name, value in means)}"


def by_model(table: pd.DataFrame, published: tuple[str, dict[str, float]] | None = None) -> Figure:
    """`curves`, a line a model; what is published of those images is drawn beside."""
    there = [model for model in NAMES if model in set(table["model"])]
    values = published[1] if published is not None and has(table, published[0]) else {}
    return curves(table, [(NAMES[model], {"model": model}) for model in there], [values.get(model) for model in there])


def seeds_and_mean(axes: Axes, rows: Any, column: str, colour: str, label: str) -> None:
    """A column over epochs: a thin line a run, and their mean."""
    for _, own in rows.groupby("run"):
        axes.plot(own["epoch"], own[column], color=colour, linewidth=0.6, alpha=0.5)
    middle = rows.groupby("epoch")[column].mean()
    axes.plot(middle.index, middle, color=colour, linewidth=1.5, label=label)


def curves(
    table: pd.DataFrame, kinds: Sequence[tuple[str, dict[str, Any]]], published: Sequence[float | None] = ()
) -> Figure:
    """Accuracies, loss and sensitivity over epochs: a line a kind, its seeds thin, and a dot where accuracies match.
    A sensitivity that is published of a kind is a dotted line."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 5.6), layout="constrained")
    panels = drawing.subplots(2, 2, sharex=True)
    columns = ("train_accuracy", "test_accuracy", "train_loss", "sensitivity")
    words = ("accuracy, training set", "accuracy, test set", "loss (dashed: test set)", "sensitivity, training set")
    rows, same = of(table, about="epoch"), matched(table)
    for axes, column, label in zip(panels.flat, columns, words, strict=True):
        for i, (name, kind) in enumerate(kinds):
            seeds_and_mean(axes, of(rows, **kind), column, f"C{i}", name)
            if column == "train_loss":
                unseen = of(rows, **kind).groupby("epoch")["test_loss"].mean()
                axes.plot(unseen.index, unseen, "--", color=f"C{i}", linewidth=0.9)
            dots = of(same, **kind)
            axes.plot(dots["epoch"], dots[column], "o", color=f"C{i}", markersize=4)
        axes.set_ylabel(label)
    for i, value in enumerate(published):
        if value is not None:
            panels[1, 1].axhline(value, color=f"C{i}", linestyle=":", linewidth=1)
    logarithmic(panels[1, 1], rows["sensitivity"])
    for axes in panels[1]:
        axes.set_xlabel("epoch")
    drawing.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(len(kinds), 3))
    said = [f"dots: at equal accuracy on the training set, {same['level'].iloc[0]:.3f}"] if len(same) else []
    said += ["dotted: V, at the end"] if any(published) else []
    drawing.suptitle("; ".join(said), fontsize=9)
    return drawing
