"""The figure of the language study: training, positions and depths as small multiples, then a column a data set."""

from __future__ import annotations

from collections.abc import Sequence
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
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw"]

Noise = dict[str, Any]
COLOURS = {model: f"C{i}" for i, model in enumerate(NAMES)}
PLACES: dict[str, tuple[Any, str]] = {"after": ("-", "noise after LayerNorm"), "before": ("--", "before LayerNorm")}
DEPTHS: Sequence[Any] = ("-", "-.", ":")  # from the fewest layers on
BEFORE: Noise = {"place": "before"}
# A panel each, over training and by position.
CURVES: dict[str, Noise] = {"variance 15": {}, "variance 4": {"sigma2": WEAK}, "validation set": {"split": "valid"}}
MAPS: dict[str, Noise] = {"variance 15": {}, "variance 4": {"sigma2": WEAK}}
# What an LSTM is compared with -> the two models and the noise of each.
COMPARED: dict[str, tuple[str, Noise, str, Noise]] = {
    "RoBERTa": (LSTM, {}, ROBERTA, {}),
    "RoBERTa, both before": (LSTM, BEFORE, ROBERTA, BEFORE),
    "RoBERTa, as released": (LSTM, RELEASED[LSTM], ROBERTA, RELEASED[ROBERTA]),
    "RoBERTa-ReLU": (LSTM, {}, RELU, {}),
    "GPT-2": (LSTM, {}, GPT2, {}),
}
# A line each at the end -> the noise of each model that has it.
KINDS: dict[str, dict[str, Noise]] = {
    "after LN": dict.fromkeys(NAMES, {}),
    "before LN": dict.fromkeys(NAMES, BEFORE),
    "after LN, relative": dict.fromkeys(NAMES, {"relative": True}),
    "before LN, relative": dict.fromkeys(NAMES, {**BEFORE, "relative": True}),
    "variance 4": dict.fromkeys(NAMES, {"sigma2": WEAK}),
    "validation set": dict.fromkeys(NAMES, {"split": "valid"}),
    "all tokens at once": dict.fromkeys(NAMES, {"sigma2": ALL_TOKENS, "what": "whole"}),
    "as released": {model: {**noise, "what": "pooled"} for model, noise in RELEASED.items()},
}
WORDS, NUMBERS = 8, 7  # points


def draw(table: Any) -> Figure:
    """Over training, by position, over training at several depths, where the match is, and at the end."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    sets = [name for name in ("mrpc", "qqp", "made") if (table["data"] == name).any()]
    parts = {_title(name): table.loc[table["data"] == name] for name in sets}
    deep = [name for name, here in parts.items() if here["layers"].nunique() > 1]
    heights = [0.4 + 1.05 * len(sets), 1.4, *([1.4] if deep else []), 3.8]
    drawing = Figure(figsize=(6.4, sum(heights) + 0.3), layout="constrained")
    rooms: Any = drawing.subfigures(len(heights), 1, height_ratios=heights)
    _training(rooms[0], parts)
    _positions(rooms[1], parts)
    if deep:
        _depths(rooms[2], deep[0], parts[deep[0]])
    _lines(rooms[-1], parts, {_layers(n): dict.fromkeys(NAMES, {"layers": n}) for n in _depths_of(table)[1:]})
    for axes in drawing.axes:
        axes.tick_params(labelsize=NUMBERS)
    handles = [Line2D([], [], color=COLOURS[model], label=words) for model, words in NAMES.items()]
    handles += [Line2D([], [], color="0.4", linestyle=style, label=words) for style, words in PLACES.values()]
    drawing.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=NUMBERS, columnspacing=1.2)
    return drawing


def _title(data: str) -> str:
    return "made-up pairs" if data == "made" else data.upper()


def _depths_of(table: Any) -> list[int]:
    return sorted(map(int, table["layers"].unique()))


def _layers(n: int) -> str:
    return f"{n} layer{'s' * (n > 1)}"


def _training(part: SubFigure, parts: dict[str, Any]) -> None:
    """A row a data set: three sensitivities, and beside them the accuracy that they go with."""
    panels = part.subplots(len(parts), len(CURVES) + 1, squeeze=False, width_ratios=(1.25, 1, 1, 1))
    for row, (name, here) in zip(panels, parts.items(), strict=True):
        for axes, noise in zip(row, CURVES.values(), strict=False):
            for model in NAMES:
                _over_training(axes, pick(here, model, **noise), model)
            if axes is not row[0]:
                _alike(axes, row[0])
        for model in NAMES:
            _over_training(row[0], pick(here, model, "before"), model, style=PLACES["before"][0], shaded=False)
            _over_training(row[-1], pick(here, model), model, "accuracy")
        row[0].set_ylabel(f"{name}\nsensitivity", fontsize=WORDS)
        row[0].set_ylim(bottom=0)
    for axes, words in zip(panels[0], (*CURVES, "training accuracy"), strict=True):
        axes.set_title(words, loc="left", fontsize=WORDS)
    part.supxlabel("pairs trained on, thousands (means over seeds, shaded from the least to the most)", fontsize=WORDS)


def _over_training(
    axes: Axes, rows: Any, model: str, column: str = "sensitivity", style: str = "-", shaded: bool = True
) -> None:
    steps = rows.groupby("seen")[column]
    low, middle, high = steps.min(), steps.mean(), steps.max()
    axes.plot(middle.index, middle, style, color=COLOURS[model], linewidth=1.1)
    if shaded:
        axes.fill_between(middle.index, low, high, color=COLOURS[model], alpha=0.15, linewidth=0)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}")


def _alike(axes: Axes, first: Axes) -> None:
    """Sensitivities of one data set have one scale, whose numbers are beside the first."""
    axes.sharey(first)
    axes.tick_params(labelleft=False)


def _positions(part: SubFigure, parts: dict[str, Any]) -> None:
    panels = part.subplots(1, len(MAPS) * len(parts)).reshape(len(parts), len(MAPS))
    for row, (name, here) in zip(panels, parts.items(), strict=True):
        for axes, (words, noise) in zip(row, MAPS.items(), strict=True):
            _by_position(axes, here, noise)
            axes.set_title(f"{name}, {words}" if axes is row[0] else words, loc="left", fontsize=WORDS)
            if axes is not row[0]:
                _alike(axes, row[0])
        row[0].set_ylim(bottom=0)
    panels[0, 0].set_ylabel("sensitivity", fontsize=WORDS)
    part.supxlabel("token, counted from the end (means over seeds; dots: <s>, a seed each)", fontsize=WORDS)


def _by_position(axes: Axes, table: Any, noise: Noise) -> None:
    for model in NAMES:
        rows = pick(table, model, what="position", **noise)
        line = rows.groupby("position")["sensitivity"].mean()
        axes.plot(-line.index, line, color=COLOURS[model], linewidth=0.9)
        start = at_end(table, model, what="start", **noise)
        edge = 1 - rows["position"].max() * 1.08  # beside the farthest token
        axes.plot([edge] * len(start), start, "o", color=COLOURS[model], markersize=3)
    axes.xaxis.set_major_formatter(lambda x, _: f"{abs(x):.0f}")


def _depths(part: SubFigure, name: str, table: Any) -> None:
    """Figure 23: LSTM and RoBERTa of several depths, and the accuracies of both."""
    from matplotlib.lines import Line2D

    depths = dict(zip(_depths_of(table), DEPTHS, strict=False))
    left, right = part.subplots(1, 2)
    for axes, column in ((left, "sensitivity"), (right, "accuracy")):
        for model in (LSTM, ROBERTA):
            for n, style in depths.items():
                _over_training(axes, pick(table, model, layers=n), model, column, style, shaded=False)
    left.set_ylim(bottom=0)
    left.set_ylabel("sensitivity", fontsize=WORDS)
    left.set_title(f"{name}, LSTM and RoBERTa by depth", loc="left", fontsize=WORDS)
    right.set_title("training accuracy", loc="left", fontsize=WORDS)
    handles = [Line2D([], [], color="0.4", linestyle=style, label=_layers(n)) for n, style in depths.items()]
    right.legend(handles=handles, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=NUMBERS)
    part.supxlabel("pairs trained on, thousands (means over seeds)", fontsize=WORDS)


def _lines(part: SubFigure, parts: dict[str, Any], more: dict[str, dict[str, Noise]]) -> None:
    """A column a data set: above where the match is, below the end."""
    kinds = KINDS | more
    panels = part.subplots(2, len(parts), squeeze=False, height_ratios=(1, 1.8))
    for column, (name, here) in zip(panels.T, parts.items(), strict=True):
        column[0].set_title(name, loc="left", fontsize=WORDS)
        _matched(column[0], here)
        _at_end(column[1], here, kinds)
        for axes, lines in zip(column, (COMPARED, kinds), strict=True):
            axes.set_yticks(range(len(lines)), list(lines) if name == next(iter(parts)) else [""] * len(lines))
            axes.set_ylim(len(lines) - 0.5, -0.5)
            axes.set_xscale("symlog", linthresh=1e-3)  # linear below, so that there is room for 0
            axes.set_xlim(0, 1)
            axes.xaxis.set_major_formatter("{x:g}")


def _matched(axes: Axes, table: Any) -> None:
    """A line a seed, and beside it the training accuracies at which its two models were compared."""
    for line, (first, one, second, other) in enumerate(COMPARED.values()):
        found = [each for each in matches(pick(table, first, **one), pick(table, second, **other)) if each.fair]
        for k, each in enumerate(found):
            place = line + 0.22 * (k - (len(found) - 1) / 2)
            axes.plot(each.values, [place, place], color="0.6", linewidth=0.8, zorder=1)
            for model, value in zip((first, second), each.values, strict=True):
                axes.plot(value, place, "o", color=COLOURS[model], markersize=3.5, clip_on=False, zorder=3)
        levels = [level for each in found for level in each.accuracies]
        words = f"{min(levels):.2f}–{max(levels):.2f}" if levels else "no match"
        axes.annotate(words, (1.02, line), xycoords=("axes fraction", "data"), va="center", fontsize=NUMBERS)
    axes.set_xlabel("LSTM against these at matched\ntraining accuracy (right)", fontsize=WORDS)


def _at_end(axes: Axes, table: Any, kinds: dict[str, dict[str, Noise]]) -> None:
    """A dot a seed, a bar their mean."""
    for line, noises in enumerate(kinds.values()):
        for i, (model, noise) in enumerate(noises.items()):
            values = at_end(table, model, **noise)
            if values.empty:  # a line of no points would be in the corner of the figure
                continue
            place = line + 0.2 * (i - 1.5)
            axes.plot(
                values, [place] * len(values), "o", color=COLOURS[model], markersize=2.5, alpha=0.6, clip_on=False
            )
            axes.plot(values.mean(), place, "|", color=COLOURS[model], markersize=7, markeredgewidth=1.5)
    axes.set_xlabel("sensitivity at the end", fontsize=WORDS)
