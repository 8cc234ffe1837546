"""The picture of one function on the cube."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from teeter.cube import Analysis

__all__ = ["cube_figure"]


def cube_figure(result: Analysis, title: str) -> Figure:
    """Left: the weight at each degree. Right: how many inputs have which sensitivity. The mean is marked."""
    drawing = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = drawing.subplots(1, 2)
    profile = result.profile.tolist()
    left.bar(range(len(profile)), profile, color="C0", width=0.8)
    left.set(xlabel="degree $k$", ylabel="weight $W_k$", title="Degree profile")

    values = result.local.double().cpu()
    if result.signed:
        counts = values.long().bincount(minlength=result.n + 1).double() / values.numel()
        right.bar(range(result.n + 1), counts.tolist(), color="C2", width=0.8)
        right.set_xlabel("flips that change the answer, $s(x, f)$")
    elif float(values.max()) - float(values.min()) <= 1e-9 * float(values.max()):
        value = result.average_sensitivity
        right.bar([value], [1.0], color="C2", width=0.1 * (value or 1))
        right.set(xlabel="sensitivity $s(x, f)$, the same at every input", xlim=(0, 2 * value or 1))
    else:
        edges = torch.linspace(float(values.min()), float(values.max()), 41, dtype=torch.float64)
        counts = torch.histc(values, bins=40, min=float(edges[0]), max=float(edges[-1])) / values.numel()
        right.stairs(counts.numpy(), edges.numpy(), fill=True, color="C2")
        right.set_xlabel("sensitivity $s(x, f)$")
    left_end, right_end = right.get_xlim()
    beyond = result.average_sensitivity > (left_end + right_end) / 2  # then its label has room on the left only
    right.set_ylim(0, 1.15 * right.get_ylim()[1])
    right.axvline(result.average_sensitivity, color="C1", linewidth=1.5, linestyle="--")
    right.annotate(
        f"mean {result.average_sensitivity:.4g}",
        (result.average_sensitivity, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if beyond else 4, -10),
        textcoords="offset points",
        ha="right" if beyond else "left",
        color="C1",
    )
    right.set(ylabel="share of inputs", title="Sensitivity at every input")
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=axes is left or result.signed)
        axes.grid(axis="x", visible=False)
    drawing.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return drawing
