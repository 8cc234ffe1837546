"""Logarithmic axes with labels that are read at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["logarithmic"]


def logarithmic(axes: Axes, values: Any, which: Literal["x", "y"] = "y") -> None:
    """An axis of positive numbers: those that are 0 are left out, and where all are, it stays as it is."""
    from matplotlib.ticker import LogLocator

    some = values[values > 0]
    if not len(some):
        return
    axis, scale = (axes.yaxis, axes.set_yscale) if which == "y" else (axes.xaxis, axes.set_xscale)
    scale("log", nonpositive="mask")
    axis.set_major_formatter("{x:g}")
    if some.max() < 100 * some.min():  # a power of ten may be all that is labelled else
        axis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.set_minor_formatter("{x:g}")
        axis.set_tick_params(which="both", length=3.5, pad=3.5)
