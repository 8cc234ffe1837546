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
    picture = _numbered(text.getvalue())
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
    made = data.getvalue()
    place.parent.mkdir(parents=True, exist_ok=True)
    return replace_file(place, _numbered(made.decode()).encode() if kind == "svg" else made)


def _numbered(picture: str) -> str:
    """An SVG whose clip paths are named in their order. matplotlib names them by where they lie, to the last bit, and
    by that a layout may differ from one drawing to the next.

    >>> _numbered('<g clip-path="url(#p0123456789)"/><clipPath id="p0123456789">')
    '<g clip-path="url(#clip1)"/><clipPath id="clip1">'
    """
    found = dict.fromkeys(re.findall(r'<clipPath id="(p[0-9a-f]{10})"', picture))
    names = {name: f"clip{number}" for number, name in enumerate(found, 1)}
    return re.sub(r"\bp[0-9a-f]{10}\b", lambda match: names.get(match[0], match[0]), picture)


def drawable(place: Path | str) -> Path:
    """The place, if its ending names a format and it can be written; asked before the work that leads to the picture.

    Nothing is written: folders that are missing are made with the picture.
    """
    path = Path(place)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"cannot draw to '{place}': the name must end in one of {', '.join(FORMATS)}")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not above.is_dir():
        raise InputError(f"cannot draw to '{place}': {'it is a folder' if path.is_dir() else f'{above} is no folder'}")
    if not os.access(above, os.W_OK):
        raise InputError(f"cannot draw to '{place}': {above} may not be written to")
    return path


def replace_file(place: Path, data: bytes) -> Path:
    """Put a file in its place in one step: a reader sees the old one or the new one, never half."""
    part = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(data)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    return place
