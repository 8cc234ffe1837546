"""Does an LSTM learn PARITY, and how sharp is it?

Beyond the paper, which says in section 1 that recurrent networks easily fit PARITY and generalise over lengths
(Bhattamishra et al. 2020), and whose theory is of transformers alone. An LSTM of the encoder's size learns PARITY,
MAJORITY, FIRST and MEAN, and its sharpness is measured as that of transformers is.

In those reports recurrent networks see strings of many lengths. "mixed" has a length from 1 to n for each batch;
"fixed" has n alone, as 7.1 has it for transformers. All are measured at n, and asked about 2n as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from teeter import counter
from teeter.measure import Estimate
from teeter.measure.arithmetic import computing_in
from teeter.models import MODELS
from teeter.runs.execute import Rows
from teeter.studies.devices import device_here
from teeter.studies.hahn2024.learning import CONVERGED, FUNCTIONS, Learner, stream_of, together
from teeter.studies.hahn2024.length_generalization import AtLengths
from teeter.studies.hahn2024.lengths import Measured, final_row
from teeter.studies.log_axis import logarithmic
from teeter.studies.over_runs import mean, share, slope
from teeter.studies.study import Claim, Study
from teeter.train import Stream, Trained
from teeter.train.measures import Measure
from teeter.train.state import own_randomness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY", "mixed_or_fixed", "model_of"]

MIXED, FIXED = "mixed", "fixed"
_LENGTH = 4_000_000  # a seed for lengths


def grid(lengths: list[int], seeds: int, fixed: int, **more: Any) -> list[Learner]:
    """All functions with mixed lengths, and PARITY with one length below 30, twice the seeds, for `fixed` steps."""
    made = [
        Learner(name, n, seed, MIXED, "lstm", **more) for n in lengths for name in FUNCTIONS for seed in range(seeds)
    ]
    alone = [Learner("parity", n, seed, FIXED, "lstm", **more) for n in lengths if n < 30 for seed in range(2 * seeds)]
    return made + [replace(each, steps=fixed) for each in alone]


SMOKE = grid([3], 1, fixed=20, dim=4, batch=16, steps=20, rate=1e-2)
SMALL = grid([4, 8, 16, 32], 4, fixed=3000, dim=32, batch=64, steps=800, rate=5e-3)
# Of one length and from 10 bits on, 12 runs: if all of them converge, the share is at least 0.74.
PAPER = grid([5, 10, 20, 30], 3, fixed=10_000, steps=2_000, rate=1e-3)


def model_of(spec: Learner) -> nn.Module:
    with own_randomness(torch.device("cpu"), spec.seed):
        return MODELS[spec.model](dim=spec.dim)


def mixed_or_fixed(spec: Learner, device: torch.device) -> Stream:
    """Batches of strings: each of a length from 1 to n, drawn by the step, or all of n."""
    if spec.variant == FIXED:
        return stream_of(spec, device)
    each = [stream_of(replace(spec, n=n), device) for n in range(1, spec.n + 1)]
    return lambda step: each[int(counter.integers(spec.n, _LENGTH + spec.seed, torch.tensor(step)))](step)


@cache
def _right(function: str, n: int) -> Measure:
    return AtLengths(function, (n, 2 * n), device_here())


def rows(spec: Learner, made: Trained) -> list[dict[str, Any]]:
    (end,) = final_row(spec, made)
    right, twice = (end.pop(f"right_{n}", None) for n in (spec.n, 2 * spec.n))
    return [{**end, "right": right, "right_twice": twice}]


_LEARNING = together(
    rows,
    most=6,  # one after the other: a group is what is lost with a kill
    extra=lambda spec: {"right": _right(spec.function, spec.n)},
    model=model_of,
    stream=mixed_or_fixed,
)


def run_together(specs: Sequence[Learner], folder: Path | None) -> list[Rows]:
    # Training says itself what it computes in; without a word, cuDNN's LSTM would be measured in tf32.
    with computing_in("float32", device_here()):
        return list(_LEARNING.run(specs, folder))  # pyright: ignore[reportArgumentType]


TOGETHER = replace(_LEARNING, run=run_together)


def run(spec: Learner) -> list[dict[str, Any]]:
    return list(run_together([spec], None)[0])


def _runs(table: pd.DataFrame, name: str, variant: str) -> pd.DataFrame:
    return table.loc[(table["function"] == name) & (table["variant"] == variant)]


def fitted(name: str, variant: str, least: int = 0) -> Measured:
    """The share of runs that converge, from a length on."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = _runs(table, name, variant)
        kept = here.loc[here["n"] >= least, "converged"].to_numpy(dtype=bool)
        return share(kept) if len(kept) else None

    return measure


def steepness(name: str) -> Callable[[pd.DataFrame], Estimate]:
    """The slope of sharpness in n, over converged runs with mixed lengths."""

    def measure(table: pd.DataFrame) -> Estimate:
        here = _runs(table, name, MIXED)
        here = here.loc[here["converged"]]
        return slope(here["n"], here["sharpness"])

    return measure


def average(name: str, column: str, limits: tuple[float, float], longest: bool) -> Callable[[pd.DataFrame], Estimate]:
    """The mean of a column over converged runs with mixed lengths, of all n or of the largest."""

    def measure(table: pd.DataFrame) -> Estimate:
        here = _runs(table, name, MIXED)
        here = here.loc[here["converged"] & ((here["n"] == here["n"].max()) | (not longest))]
        return mean(here[column], limits)

    return measure


CLAIMS = [
    Claim(
        "PARITY, mixed lengths: share of runs that converge (section 1: easily fit)",
        1,
        fitted("parity", MIXED),
        tolerance=0.1,
        resolution=0.2,
    ),
    Claim(
        "PARITY, mixed lengths: right at 2n (section 1: correct length generalization; rule: 0.95 or more)",
        1,
        average("parity", "right_twice", (0.0, 1.0), longest=False),
        tolerance=0.05,
        resolution=0.05,
    ),
    Claim(
        "PARITY, n alone, n of 10 and more: share of runs that converge (no prediction; yardstick: all)",
        1,
        fitted("parity", FIXED, 10),
        tolerance=0.1,
        resolution=0.2,
    ),
    Claim(
        "PARITY: slope of sharpness in n (no prediction; yardstick: 0.05 of transformers, Table 2, within a half)",
        0.05,
        steepness("parity"),
        tolerance=0.025,
        resolution=0.02,
    ),
    Claim(
        "PARITY: sharpness at the largest n (no prediction; yardstick: 1 of transformers, Figure 5, within a half)",
        1,
        average("parity", "sharpness", (0.0, 2.0), longest=True),
        tolerance=0.5,
        resolution=0.25,
    ),
    *[
        Claim(
            f"{name.upper()}, mixed lengths: share of runs that converge (no prediction; yardstick: all)",
            1,
            fitted(name, MIXED),
            tolerance=0.1,
            resolution=0.2,
        )
        for name in ("majority", "first", "mean")
    ],
]

DEPARTURES = [
    "Beyond the paper: it names recurrent networks as a contrast and trains none. Sizes are the encoder's (dimension "
    "128, 2 layers); the rate is 1e-3 and there are 2,000 steps, but 10,000 for PARITY at one length.",
    "That recurrent networks learn PARITY easily was reported for strings of many lengths. H trains transformers at "
    "one length only; an LSTM under that protocol is the variant `fixed`.",
    "Sharpness nudges every weight by the same noise, as for transformers. An LSTM of the same dimension has other "
    "weights and more of them, so absolute values are to be compared with care; how they grow with n is not.",
    "MAJORITY, FIRST and MEAN are trained with mixed lengths only.",
    "Training on a GPU is in tf32, of which the paper does not speak; all is measured in float32.",
]


def figure(table: pd.DataFrame) -> Figure:
    """Sharpness over n of converged runs, and the final error of all runs."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 3.9), layout="constrained")
    left, right = drawing.subplots(1, 2)
    series = [(name, MIXED, f"C{i}", "o-") for i, name in enumerate(FUNCTIONS)] + [("parity", FIXED, "C6", "s--")]
    lengths = sorted(table["n"].unique())
    for i, (name, variant, colour, style) in enumerate(series):
        every = _runs(table, name, variant)
        here = every.loc[every["converged"]]
        words = name.upper() + (", one length" if variant == FIXED else "")
        aside = 1 + 0.025 * (i - 2)  # so that all are seen
        for axes, rows, column in ((left, every, "mse"), (right, here, "sharpness")):
            rows = rows.astype({column: float})  # a column of nothing but None has no type
            axes.plot(rows["n"] * aside, rows[column], style[0], color=colour, markersize=3.5, alpha=0.6)
            middle = rows.groupby("n")[column].median()
            label = f"{words}: {len(here)} of {len(every)}" if axes is left else None
            axes.plot(middle.index * aside, middle, style, color=colour, markersize=0, linewidth=1.2, label=label)
    left.axhline(CONVERGED, color="0.4", linewidth=0.8, linestyle=":")
    logarithmic(right, table.loc[table["converged"], "sharpness"].astype(float))
    left.set(yscale="log", ylabel="final MSE (dotted: converged below)")
    right.set(ylabel="sharpness of converged runs")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="input length $n$")
        axes.set_xticks(lengths, [str(n) for n in lengths])
        axes.set_xticks([], minor=True)
    drawing.legend(loc="outside lower center", ncols=2, fontsize=8.5, title="converged runs of an LSTM")
    return drawing


STUDY = Study(
    name="hahn2024/recurrent",
    paper="hahn2024",
    where="Section 1 (beyond the paper)",
    title="An LSTM on the same four functions",
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
