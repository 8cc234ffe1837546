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


def heat_map(
    result: TokenMap,
    images: Tensor,
    which: Sequence[int] | None = None,
    *,
    numbers: Sequence[int] | None = None,
    total: int | None = None,
) -> Figure:
    """Each image beside the rate at which a nudge of each of its patches changes the answer.

    `which` are the images shown, by default the eight with the highest mean. Where the map is of some inputs of many,
    `numbers` are theirs among the `total`.
    """
    if len(images) != len(result.mean):
        raise InputError(f"the map has {len(result.mean)} inputs, got {len(images)} images")
    tokens = result.mean.shape[1]
    height, width = images.shape[-2:]
    down = round((tokens * height / width) ** 0.5)
    if down * (tokens // max(down, 1)) != tokens:
        raise InputError(f"{tokens} tokens do not make a grid over images of {height} x {width}")
    chosen = "the {} most sensitive" if which is None else "{}"
    if which is None:
        which = _highest(result, 8)
    drawing = Figure(figsize=(1.45 * len(which) + 0.9, 3.5), layout="constrained")
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
        name = index if numbers is None else numbers[index]
        above.set_title(f"{name}: {float(result.by_input()[index]):.3f}", fontsize=9)
        for each in (above, below):
            each.set(xticks=[], yticks=[])
            each.grid(False)
            each.spines[:].set_visible(False)
    if shown is not None:
        drawing.colorbar(shown, ax=axes.ravel().tolist(), label="rate" if result.rate else "change", shrink=0.9)
    shown_of = f"{chosen.format(len(which))} of {_inputs(result, total)}"
    caption = f"{shown_of}\nabove each, the number of the input: {_told(result)}, mean over its patches"
    drawing.suptitle(caption, x=0.01, ha="left", fontsize=9, wrap=True)
    return drawing


def token_text(
    result: TokenMap, texts: Sequence[Sequence[str]], *, most: int | None = None, total: int | None = None
) -> Figure:
    """Each text with its tokens coloured by how often a nudge of them changes the answer.

    With `most`, only so many texts, those with the highest mean. Where the map is of some inputs of many, `total` is
    how many.
    """
    if len(texts) > len(result.mean):
        raise InputError(f"the map has {len(result.mean)} inputs, got {len(texts)} texts")
    rows = range(len(texts))
    if most is not None:
        rows = [row for row in _highest(result, len(result.mean)) if row in rows][:most]
    top = float(result.mean[list(rows)].nan_to_num(0).max()) or 1.0
    colours = colormaps[_COLOURS]
    width, line = 92, 0
    places: list[tuple[float, int, str, float]] = []
    for index in rows:
        column = 0.0
        for word, rate in zip(texts[index], result.mean[index].tolist(), strict=False):
            if column and column + len(word) > width:
                column, line = 0.0, line + 1
            places.append((column, line, word, rate))
            column += len(word) + 1.4
        line += 2
    drawing = Figure(figsize=(8.4, 0.26 * line + 0.65), layout="constrained")
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
    shown_of = f"{len(rows) if most is None else f'the {len(rows)} most sensitive'} of {_inputs(result, total)}"
    scale = f"{_told(result)}, at each token: palest 0, darkest {top:.2g}, grey never nudged"
    axes.set_title(f"{shown_of}\n{scale}", loc="left", fontsize=9)
    return drawing


def position_profile(
    result: TokenMap, align: Literal["left", "right"] = "left", *, total: int | None = None, **named: Any
) -> Figure:
    """The mean at each position with its interval; aligned right, positions count back from the last token.

    Where the map is of some inputs of many, `total` is how many.
    """
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
    band = f"{100 * kept[0][1].confidence:.3g} % interval"
    axes.set_title(f"Mean over {_inputs(result, total)}; band: {band}", loc="left")
    return drawing


def _highest(result: TokenMap, most: int) -> list[int]:
    return result.by_input().nan_to_num(-1).argsort(descending=True)[:most].tolist()


def _inputs(result: TokenMap, total: int | None) -> str:
    seen = len(result.mean)
    return f"{seen:,} inputs" if total in (None, seen) else f"{seen:,} inputs, drawn at random from {total:,}"


def _told(result: TokenMap) -> str:
    return "share of nudges that change the answer" if result.rate else "mean change"
