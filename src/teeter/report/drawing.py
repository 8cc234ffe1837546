"""One look for every figure, and figures as SVG that is the same byte for byte each time."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure

from teeter.errors import InputError

__all__ = ["LOOK", "save", "svg"]

LOOK: dict[Any, Any] = {
    # Okabe & Ito's palette: told apart by readers with any colour vision, and in print.
    "axes.prop_cycle": cycler(color=["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "font.size": 9.5,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
}


def svg(draw: Callable[[], Figure], name: str) -> str:
    """The figure as an <svg> element; `name` keeps its ids apart from those of other figures on a page."""
    text = io.StringIO()
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": name}):
        draw().savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    picture = text.getvalue()
    picture = picture[picture.index("<svg") :]
    prefix = re.sub(r"\W+", "-", name)
    picture = re.sub(r'(\bid=")', rf"\1{prefix}-", picture)
    return re.sub(r'(url\(#|href="#)', rf"\1{prefix}-", picture)


def save(draw: Callable[[], Figure], place: Path | str) -> Path:
    """The figure in a file, in the format its ending names."""
    place = Path(place)
    known = sorted(Figure().canvas.get_supported_filetypes())
    if place.suffix.lstrip(".").lower() not in known:
        raise InputError(f"cannot draw to '{place}': the name must end in one of .{', .'.join(known)}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": place.name}):
        drawing = draw()
        metadata = {"Date": None} if place.suffix == ".svg" else None
        drawing.savefig(place, metadata=metadata)
    return place
