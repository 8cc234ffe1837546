"""One look for every figure, and figures as SVG that is the same byte for byte each time."""

from __future__ import annotations

import io
import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure

from teeter.errors import InputError

__all__ = ["FORMATS", "LOOK", "drawable", "replace_file", "save", "svg"]

FORMATS = (".svg", ".png", ".pdf")

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
    place = drawable(place)
    kind = place.suffix.lower().lstrip(".")
    data = io.BytesIO()
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": place.name}):
        draw().savefig(data, format=kind, metadata={"Date": None} if kind == "svg" else None)
    place.parent.mkdir(parents=True, exist_ok=True)
    return replace_file(place, data.getvalue())


def drawable(place: Path | str) -> Path:
    """The place, if its ending names a format; asked before the work that leads to the picture."""
    if Path(place).suffix.lower() not in FORMATS:
        raise InputError(f"cannot draw to '{place}': the name must end in one of {', '.join(FORMATS)}")
    return Path(place)


def replace_file(place: Path, data: bytes) -> Path:
    """Put a file in its place in one step: a reader sees the old one or the new one, never half."""
    part = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(data)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    return place
