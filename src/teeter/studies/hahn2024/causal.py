"""Is the picture the same for decoders?

Beyond the paper, whose third limitation leaves open whether causal masking changes what it shows for encoders. This is
Figure 5 again, for encoders and for decoders that are alike but for the mask: PARITY, MAJORITY, FIRST and MEAN,
sharpness against the input length. Both are read at the last position, which sees all of the input in either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from teeter.measure import Estimate
from teeter.studies.hahn2024.learning import FUNCTIONS, Learner, together
from teeter.studies.hahn2024.lengths import final_row
from teeter.studies.over_runs import line, ratio, share, slope
from teeter.studies.study import Claim, Study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

KINDS = ("encoder", "decoder")


def grid(lengths: list[int], seeds: int, **more: Any) -> list[Learner]:
    return [
        Learner(name, n, seed, model=kind, **more)
        for n in lengths
        for kind in KINDS
        for name in FUNCTIONS
        for seed in range(seeds)
    ]


SMOKE = grid([2], 1, dim=4, batch=32, steps=20, rate=1e-2)
SMALL = grid([4, 6, 8], 4, dim=64, batch=128, steps=3000, rate=5e-4)
PAPER = grid([5, 10, 15, 20, 25], 3)


TOGETHER = together(final_row, most=64)


def run(spec: Learner) -> list[dict[str, Any]]:
    return list(TOGETHER.run([spec], None)[0])


def _converged(table: pd.DataFrame, name: str, kind: str) -> pd.DataFrame:
    return table.loc[(table["function"] == name) & (table["model"] == kind) & table["converged"]]


def steepness(name: str, kind: str) -> Callable[[pd.DataFrame], Estimate]:
    """The slope of sharpness in n, over converged runs."""

    def measure(table: pd.DataFrame) -> Estimate:
        here = _converged(table, name, kind)
        return slope(here["n"], here["sharpness"])

    return measure


def beside(one: tuple[str, str], other: tuple[str, str], most: float) -> Callable[[pd.DataFrame], Estimate]:
    """One slope over another, each of a (function, model)."""

    def measure(table: pd.DataFrame) -> Estimate:
        upper, lower = (_converged(table, *each) for each in (one, other))
        return ratio(line(upper["n"], upper["sharpness"]), line(lower["n"], lower["sharpness"]), (-most, most))

    return measure


def fitted(name: str, kind: str) -> Callable[[pd.DataFrame], Estimate]:
    """The share of runs that converge."""

    def measure(table: pd.DataFrame) -> Estimate:
        here = table.loc[(table["function"] == name) & (table["model"] == kind)]
        return share(here["converged"].to_numpy(dtype=bool))

    return measure


CLAIMS = [
    Claim(
        "PARITY: the decoders' slope over the encoders' (our hypothesis: the same, within a half)",
        1,
        beside(("parity", "decoder"), ("parity", "encoder"), 10),
        tolerance=0.5,
        strict=True,
    ),
    Claim(
        "PARITY, decoders: slope of sharpness in n (yardstick: the encoders' 0.05 of Table 2, within a half)",
        0.05,
        steepness("parity", "decoder"),
        tolerance=0.025,
        strict=True,
    ),
    *[
        Claim(
            f"{name.upper()}, decoders: slope over PARITY's (our hypothesis: at most a tenth, as for encoders)",
            0,
            beside((name, "decoder"), ("parity", "decoder"), 1),
            tolerance=0.1,
            strict=True,
        )
        for name in ("majority", "first", "mean")
    ],
    *[
        Claim(
            f"PARITY, {kind}s: share of runs that converge (no prediction; yardstick: all)",
            1,
            fitted("parity", kind),
            tolerance=0.1,
            resolution=0.2,
        )
        for kind in KINDS
    ],
]

DEPARTURES = [
    "Beyond the paper: its third limitation says that decoders are open. Hypotheses and rules are ours; that slopes of "
    "sharpness are those of Table 2 is a yardstick, not a claim of the paper.",
    "The encoders here are controls: the same lengths, seeds and budget as the decoders, fewer of each than Figure 5.",
    "The proof of Theorem 6 averages each attention weight over inputs of equal length; under a mask, early positions "
    "see few bits and their attention is not spread out. So the theorem does not carry over as it stands.",
    "Training on a GPU is in tf32, of which the paper does not speak; all is measured in float32.",
]


def figure(table: pd.DataFrame) -> Figure:
    """Sharpness over n, a panel a function; a dot a converged run, a line through the medians."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 5.4), layout="constrained")
    panels = drawing.subplots(2, 2, sharex=True)
    for axes, name in zip(panels.flat, FUNCTIONS, strict=True):
        counts = []
        for i, kind in enumerate(KINDS):
            here = _converged(table, name, kind)
            every = table.loc[(table["function"] == name) & (table["model"] == kind)]
            counts.append(f"{len(here)}/{len(every)}")
            aside = (2 * i - 1) * 0.012 * table["n"].max()  # so that both are seen
            axes.plot(here["n"] + aside, here["sharpness"], "os"[i], color=f"C{i}", markersize=3.5, alpha=0.6)
            middle = here.groupby("n")["sharpness"].median()
            axes.plot(middle.index + aside, middle, color=f"C{i}", linewidth=1.3, label=f"{kind}s")
        axes.set_title(f"{name.upper()}: {' and '.join(counts)} converged", loc="left", fontsize=8.5)
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted(table["n"].unique()))
    for axes in panels[:, 0]:
        axes.set_ylabel("sharpness")
    for axes in panels[1]:
        axes.set_xlabel("input length $n$")
    panels[0, 0].legend(fontsize=8.5)
    return drawing


STUDY = Study(
    name="hahn2024/causal",
    paper="hahn2024",
    where="Limitations (beyond the paper)",
    title="Sharpness against the input length, for decoders",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=TOGETHER,
    demo="smoke",
)
