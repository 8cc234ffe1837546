"""Pictures of a token map: over the image, over the text, by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib import colormaps
from matplotlib.figure import Figure
from torch import Tensor

from teeter.errors import InputError
from teeter.measure import TokenMap

__all__ = ["heat_map", "position_profile", "token_text"]

_COLOURS = "YlOrRd"


def heat_map(result: TokenMap, images: Tensor, which: Sequence[int] | None = None) -> Figure:
    """Each image beside the rate at which a nudge of each of its patches changes the answer.

    `which` are the images shown, by default the eight with the highest mean.
    """
    tokens = result.mean.shape[1]
    height, width = images.shape[-2:]
    down = round((tokens * height / width) ** 0.5)
    if down * (tokens // max(down, 1)) != tokens:
        raise InputError(f"{tokens} tokens do not make a grid over images of {height} x {width}")
    if which is None:
        which = result.by_input().nan_to_num(-1).argsort(descending=True)[:8].tolist()
    drawing = Figure(figsize=(1.45 * len(which) + 0.9, 3.1), layout="constrained")
    axes = drawing.subplots(2, len(which), squeeze=False)
    top = float(result.mean[list(which)].nan_to_num(0).max()) or 1.0
    shown = None
    for column, index in enumerate(which):
        picture = images[index].detach().cpu().float()
        picture = (picture - picture.min()) / (picture.max() - picture.min()).clamp_min(1e-12)
        above, below = axes[0, column], axes[1, column]
        above.imshow(picture.movedim(0, -1).squeeze(-1).numpy(), cmap="gray")
        grid = result.mean[index].view(down, -1).numpy()
        shown = below.imshow(grid, cmap=_COLOURS, vmin=0, vmax=top)
        above.set_title(f"{index}: {float(result.by_input()[index]):.3f}", fontsize=9)
        for each in (above, below):
            each.set(xticks=[], yticks=[])
            each.grid(False)
    if shown is not None:
        drawing.colorbar(shown, ax=axes[1].tolist(), label="rate" if result.rate else "change", shrink=0.9)
    return drawing


def token_text(result: TokenMap, texts: Sequence[Sequence[str]]) -> Figure:
    """Each text with its tokens coloured by how often a nudge of them changes the answer."""
    if len(texts) > len(result.mean):
        raise InputError(f"the map has {len(result.mean)} inputs, got {len(texts)} texts")
    top = float(result.mean.nan_to_num(0).max()) or 1.0
    colours = colormaps[_COLOURS]
    width, line = 92, 0
    places: list[tuple[float, int, str, float]] = []
    for index, words in enumerate(texts):
        column = 0.0
        for word, rate in zip(words, result.mean[index].tolist(), strict=False):
            if column and column + len(word) > width:
                column, line = 0.0, line + 1
            places.append((column, line, word, rate))
            column += len(word) + 1.4
        line += 2
    drawing = Figure(figsize=(8.4, 0.26 * line + 0.5), layout="constrained")
    axes = drawing.subplots()
    for column, row, word, rate in places:
        absent = rate != rate  # NaN: padding or skipped, never nudged
        face = "none" if absent else colours(rate / top)
        dark = not absent and rate / top > 0.65
        axes.text(
            column,
            -row,
            word,
            family="monospace",
            fontsize=9,
            parse_math=False,  # a text may hold dollar signs
            color="0.6" if absent else "white" if dark else "black",
            bbox={"facecolor": face, "edgecolor": "none", "pad": 1.5},
        )
    axes.set(xlim=(-1, width + 8), ylim=(-line, 1.2))
    axes.axis("off")
    axes.set_title(f"palest 0, darkest {top:.2g}, grey never nudged", loc="left", fontsize=9)
    return drawing


def position_profile(result: TokenMap, align: Literal["left", "right"] = "left", **named: Any) -> Figure:
    """The mean at each position with its interval; aligned right, positions count back from the last token."""
    estimates = result.by_position(align, **named)
    start = 0 if align == "left" else -len(estimates)
    kept = [(start + i, e) for i, e in enumerate(estimates) if e is not None]
    if not kept:
        raise InputError("no position is reached by two inputs")
    at = [place for place, _ in kept]
    drawing = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = drawing.subplots()
    axes.fill_between(at, [e.low for _, e in kept], [e.high for _, e in kept], color="C0", alpha=0.25, linewidth=0)
    axes.plot(at, [e.value for _, e in kept], "o-", color="C0", markersize=3.5)
    axes.set_ylim(bottom=0)
    axes.set(
        xlabel="position" if align == "left" else "position from the end",
        ylabel="rate of change" if result.rate else "mean change",
    )
    axes.set_title(f"Band: {100 * kept[0][1].confidence:.3g} % interval over inputs", loc="left")
    return drawing
