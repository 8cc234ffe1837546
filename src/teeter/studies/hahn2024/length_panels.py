"""How `scaling` and `long` draw: a colour a function, a solid line for the text, a broken one for the released code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from teeter.studies.hahn2024.learning import FUNCTIONS
from teeter.studies.hahn2024.lengths import SHARPNESS, points

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["converged_shares", "count", "curves", "legend", "runs_and_spread", "titled"]

LINES = {"text": "-", "released": (0, (3, 1.5))}
WORDS = {"text": "text", "released": "released code"}
COLORS = {name: f"C{i}" for i, name in enumerate(FUNCTIONS)}  # the same in every figure


def curves(axes: Axes, table: pd.DataFrame, function: str, column: str | None = None) -> None:
    """The mean of a column over the runs that converged, at each length, with gaps where none did (a diamond is a
    length between gaps); without a column, sharpness."""
    for variant, line in LINES.items():
        x, y = points(table, function, variant, column or SHARPNESS[variant])
        at = _lengths(table, function, variant)
        means = np.array([y[x == n].mean() if (x == n).any() else np.nan for n in at])
        axes.plot(at, means, linestyle=line, color=COLORS[function], linewidth=1.5)
        there = np.pad(~np.isnan(means), 1)
        alone = there[1:-1] & ~there[:-2] & ~there[2:]
        axes.plot(at[alone], means[alone], "d", color=COLORS[function], markersize=4.5)


def _lengths(table: pd.DataFrame, function: str, variant: str) -> np.ndarray:
    """All that were run."""
    return np.unique(table.loc[(table["function"] == function) & (table["variant"] == variant), "n"])


def runs_and_spread(axes: Axes, table: pd.DataFrame, function: str) -> None:
    """Sharpness of every run, its mean, and twice the standard deviation about it as a shade (as in Figure 5)
    between lengths of two runs or more."""
    if not any(len(points(table, function, variant, "n")[0]) for variant in LINES):
        axes.text(0.5, 0.5, "no run converged", transform=axes.transAxes, ha="center", color="0.4")
        axes.set_yticks([])
    curves(axes, table, function)
    color = COLORS[function]
    for variant in LINES:
        x, y = points(table, function, variant, SHARPNESS[variant])
        at = _lengths(table, function, variant)
        several = [part if len(part) > 1 else np.full(2, np.nan) for part in (y[x == n] for n in at)]
        mean, wide = (np.array([each(part) for part in several]) for each in (np.mean, lambda part: 2 * np.std(part)))
        lowest = np.maximum(mean - wide, min(0, *y)) if len(y) else mean
        axes.fill_between(at, lowest, mean + wide, color=color, alpha=0.12, linewidth=0)
        inside = color if variant == "text" else "white"
        axes.plot(
            x, y, "o", color=color, markerfacecolor=inside, markersize=2.8, markeredgewidth=0.6, alpha=0.5, zorder=1.5
        )


def converged_shares(axes: Axes, table: pd.DataFrame, function: str) -> None:
    """How many of the runs of a length converged, in per cent."""
    for variant, line in LINES.items():
        rows = table.loc[(table["function"] == function) & (table["variant"] == variant)]
        share = 100 * rows.groupby("n")["converged"].mean()
        axes.plot(share.index, share, linestyle=line, color=COLORS[function], linewidth=1.5)


def count(table: pd.DataFrame, function: str) -> str:
    """How many runs of a function were discarded, for each variant that was run, and of how many.

    >>> import pandas as pd
    >>> count(pd.DataFrame({"function": ["mean"] * 3, "variant": "text", "converged": [True, False, True]}), "mean")
    'MEAN: discarded 1/3'
    """
    own = table.loc[table["function"] == function]
    each = [own.loc[own["variant"] == variant, "converged"].astype(bool) for variant in LINES]
    lost = ", released ".join(f"{int((~part).sum())}/{len(part)}" for part in each if len(part))
    return f"{function.upper()}: discarded {lost}"


def titled(axes: Axes, table: pd.DataFrame, function: str) -> None:
    axes.set_title(count(table, function), loc="left", color=COLORS[function], fontsize=8.5)


def legend(drawing: Figure, table: pd.DataFrame, functions: Sequence[str]) -> None:
    """Functions by colour and variants by line, below the panels; a variant that was not run is not named."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = [
        Line2D([], [], color=COLORS[name], linewidth=1.5, label=name.upper()) for name in functions
    ]
    for variant, line in LINES.items():
        if variant in set(table["variant"]):
            handles.append(Line2D([], [], color="0.3", linewidth=1.5, linestyle=line, label=WORDS[variant]))
    handles.append(Patch(color="0.3", alpha=0.2, linewidth=0, label="two standard deviations"))
    room = {"ncols": 4, "handlelength": 1.6, "columnspacing": 1.3, "fontsize": 8.5}
    drawing.legend(handles=handles, loc="outside lower center", **room)
