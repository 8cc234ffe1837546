"""Every corruption at every severity, in one picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from teeter.data import CORRUPTIONS, corrupted
from teeter.errors import InputError

__all__ = ["contact_sheet"]

_GAP = 2  # white pixels between two images


def contact_sheet(images: Tensor, corruptions: Sequence[str] | None = None, *, seed: int = 0) -> Figure:
    """Images as they are (above), then corrupted, one row a corruption, severities 1 to 5 from left to right.

    `images` are bytes of shape (5, 3, 32, 32), one for each severity, or a single one, (3, 32, 32), shown at all of
    them. `corruptions` are all 19 unless given.

    >>> sheet = contact_sheet(torch.zeros(3, 32, 32, dtype=torch.uint8), ["fog", "contrast"])
    >>> [axes.get_ylabel() for axes in sheet.axes if axes.get_ylabel()]
    ['clean', 'fog', 'contrast']
    """
    images = images.cpu()  # where the drawing is done
    if images.ndim == 3:
        images = images.expand(5, *images.shape)
    if len(images) != 5:
        raise InputError(f"a contact sheet shows one image, or five for the five severities, got {len(images)}")
    names = list(CORRUPTIONS) if corruptions is None else list(corruptions)
    number = torch.arange(1)
    rows = {"clean": images} | {
        name: torch.cat([corrupted(images[s - 1 : s], name, s, seed, index=number) for s in range(1, 6)])
        for name in names
    }
    down = -(-len(rows) // 2) if len(rows) > 6 else len(rows)
    across = -(-len(rows) // down)
    drawing = Figure(figsize=(3.7 * across, 0.6 * down + 0.4), layout="constrained")
    axes = drawing.subplots(down, across, squeeze=False)
    for place, cell in enumerate(axes.T.flat):
        cell.grid(False)
        cell.spines[:].set_visible(False)
        cell.set(xticks=[], yticks=[])
        if place >= len(rows):
            continue
        name, shown = list(rows.items())[place]
        cell.imshow(_strip(shown), interpolation="nearest")
        cell.set_ylabel(name.replace("_", "\n"), rotation=0, ha="right", va="center")
        if place % down == 0:
            middles = [15.5 + i * (32 + _GAP) for i in range(5)]
            cell.set_xticks(middles, [str(s) for s in range(1, 6)])
            cell.tick_params(length=0, labeltop=True, labelbottom=False)
            cell.set_title("severity", fontsize=9)
    return drawing


def _strip(images: Tensor) -> np.ndarray:
    """Images side by side, (32, width, 3)."""
    white = np.full((images.shape[-2], _GAP, 3), 255, dtype=np.uint8)
    pieces = [piece for image in images for piece in (image.movedim(0, -1).numpy(), white)]
    return np.concatenate(pieces[:-1], axis=1)
