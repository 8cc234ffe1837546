"""The figure of the language study: a column a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teeter.studies.vasudeva2025.language_rows import (
    ALL_TOKENS,
    GPT2,
    LSTM,
    NAMES,
    RELEASED,
    RELU,
    ROBERTA,
    WEAK,
    at_end,
    pick,
)
from teeter.studies.vasudeva2025.matching import matches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

COLOURS = {model: f"C{i}" for i, model in enumerate(NAMES)}
PLACES: dict[str, tuple[Any, str]] = {"after": ("-", "noise after LayerNorm"), "before": ("--", "before LayerNorm")}
BEFORE: dict[str, Any] = {"place": "before"}
# What an LSTM is compared with -> the two models and the noise of each.
COMPARED: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "RoBERTa": (LSTM, {}, ROBERTA, {}),
    "RoBERTa, both before": (LSTM, BEFORE, ROBERTA, BEFORE),
    "RoBERTa, as released": (LSTM, RELEASED[LSTM], ROBERTA, RELEASED[ROBERTA]),
    "RoBERTa-ReLU": (LSTM, {}, RELU, {}),
    "GPT-2": (LSTM, {}, GPT2, {}),
}
KINDS: dict[str, dict[str, Any]] = {
    "after LN": {},
    "before LN": BEFORE,
    "after LN, relative": {"relative": True},
    "before LN, relative": {**BEFORE, "relative": True},
    "variance 4": {"sigma2": WEAK},
    "validation set": {"split": "valid"},
    "all tokens at once": {"sigma2": ALL_TOKENS, "what": "whole"},
    "as released": {"variant": "released"},
}


def draw(table: Any) -> Figure:
    """Over training, where the match is, by position, and at the end: a column a data set."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    sets = [name for name in ("mrpc", "qqp", "made") if (table["data"] == name).any()]
    kinds = {**KINDS, **{f"{n} layers": {"layers": n} for n in sorted(table["layers"].unique())[1:]}}
    drawing = Figure(figsize=(6.4, 9.8), layout="constrained")
    panels = drawing.subplots(5, len(sets), squeeze=False, height_ratios=(1, 0.8, 1, 1, 1.5))
    for column, name in zip(panels.T, sets, strict=True):
        here = table.loc[table["data"] == name]
        column[0].set_title("made-up pairs" if name == "made" else name.upper(), loc="left")
        _over_training(column[0], here, "sensitivity", ("after", "before"))
        _over_training(column[1], here, "accuracy", ("after",))
        column[0].set_ylim(bottom=0)
        column[0].tick_params(labelbottom=False)
        column[1].set_xlabel("pairs trained on, thousands")
        _by_position(column[2], here)
        _matched(column[3], here, name == sets[0])
        _at_end(column[4], here, kinds, name == sets[0])
    for axes, words in zip(panels[:, 0], ("sensitivity", "training\naccuracy", "sensitivity"), strict=False):
        axes.set_ylabel(words)
    drawing.align_ylabels(panels[:3, 0])
    handles = [Line2D([], [], color=COLOURS[model], label=words) for model, words in NAMES.items()]
    handles += [Line2D([], [], color="0.4", linestyle=style, label=words) for style, words in PLACES.values()]
    drawing.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawing


def _over_training(axes: Axes, table: Any, column: str, places: tuple[str, ...]) -> None:
    """Means over seeds, shaded least to most."""
    for model in NAMES:
        for place in places:
            steps = pick(table, model, place).groupby("seen")[column]
            low, middle, high = steps.min(), steps.mean(), steps.max()
            axes.plot(middle.index, middle, PLACES[place][0], color=COLOURS[model], linewidth=1.2)
            if place == "after":
                axes.fill_between(middle.index, low, high, color=COLOURS[model], alpha=0.15, linewidth=0)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}")


def _by_position(axes: Axes, table: Any) -> None:
    for model in NAMES:
        rows = pick(table, model, what="position")
        line = rows.groupby("position")["sensitivity"].mean()
        axes.plot(-line.index, line, color=COLOURS[model], linewidth=1)
        start = at_end(table, model, what="start")
        edge = 1 - rows["position"].max() * 1.06  # beside the farthest token
        axes.plot([edge] * len(start), start, "o", color=COLOURS[model], markersize=4)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda x, _: f"{abs(x):.0f}")
    axes.set_xlabel("token, counted from the end\n(dots: <s>, a seed each)")


def _matched(axes: Axes, table: Any, named: bool) -> None:
    """A line a seed, and beside it the training accuracies at which its two models were compared."""
    for line, (first, one, second, other) in enumerate(COMPARED.values()):
        found = [each for each in matches(pick(table, first, **one), pick(table, second, **other)) if each.fair]
        for k, each in enumerate(found):
            place = line + 0.22 * (k - (len(found) - 1) / 2)
            axes.plot(each.values, [place, place], color="0.6", linewidth=0.8, zorder=1)
            for model, value in zip((first, second), each.values, strict=True):
                axes.plot(value, place, "o", color=COLOURS[model], markersize=4, clip_on=False, zorder=3)
        levels = [level for each in found for level in each.accuracies]
        words = f"{min(levels):.2f}–{max(levels):.2f}" if levels else "no match"
        axes.annotate(words, (1.02, line), xycoords=("axes fraction", "data"), va="center", fontsize=7.5)
    _lines(axes, list(COMPARED), named)
    axes.set_xlabel("LSTM against these at matched\ntraining accuracy (right)")


def _at_end(axes: Axes, table: Any, kinds: dict[str, dict[str, Any]], named: bool) -> None:
    """A dot a seed, a bar their mean."""
    for line, how in enumerate(kinds.values()):
        for i, model in enumerate(NAMES):
            values = at_end(table, model, **how)
            if values.empty:  # a line of no points would be in the corner of the figure
                continue
            place = line + 0.18 * (i - 1.5)
            axes.plot(values, [place] * len(values), "o", color=COLOURS[model], markersize=3, alpha=0.6, clip_on=False)
            axes.plot(values.mean(), place, "|", color=COLOURS[model], markersize=8, markeredgewidth=1.6)
    _lines(axes, list(kinds), named)
    axes.set_xlabel("sensitivity at the end")


def _lines(axes: Axes, words: list[str], named: bool) -> None:
    """A line for each of these, and sensitivities from 0 on: linear below 0.001 and logarithmic above."""
    axes.set_yticks(range(len(words)), words if named else [""] * len(words))
    axes.set_ylim(len(words) - 0.5, -0.5)
    axes.set_xscale("symlog", linthresh=1e-3)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="x", labelsize=8)
