"""Does sensitivity foretell grokking earlier than test accuracy does?

Beyond the paper, which calls sensitivity a progress measure (7.3): it falls from epoch 3,000 on, and test accuracy
rises at 9,800. To see a fall in hindsight is one thing, to be warned by it another. Here each curve may raise an alarm,
from what it has shown so far: where its last three rows have, by their median, come further from the highest that it
was (test accuracy: from the lowest) than the same curve ever did in runs with random labels. These have the same model,
pairs and weight decay, they memorise as well, and have nothing to grok. Runs are watched from twice the epoch on at
which they know 99 % of their training pairs, for sensitivity falls while they memorise.
So every curve is held to the same standard: no false alarm in n runs without grokking, that is, one in n + 1 on average
in further ones.

The lead of a curve is by how many epochs its alarm comes before that of test accuracy. Sensitivity needs no test pairs
at all, the test loss does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from teeter.measure import Estimate
from teeter.studies.over_runs import ANY, mean, share
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import grokking
from teeter.studies.vasudeva2025.adding import TOGETHER, VARIANTS, Adder, run
from teeter.studies.vasudeva2025.curves import first, largest_rise
from teeter.studies.vasudeva2025.grokking import HALF_MORE, LEAST, course_of, epoch_axis, knows_by_heart, least

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Warned", "departure", "thresholds", "warned", "watched_from"]

TEST = "test_accuracy"
SIGNALS = {  # and how they are called
    TEST: "test accuracy",
    "test_loss": "test loss",
    "sensitivity": "sensitivity",
    "sensitivity_relative": "sensitivity, relative",
    "sensitivity_unseen": "sensitivity, test",
    "norm": "norm",
}
V_LEAD, V_WAIT = 9_800 - 3_000, 9_800 - 500  # epochs from the first fall of sensitivity, and from memorization


def with_controls(runs: Sequence[Adder], controls: int) -> list[Adder]:
    """The runs, and for each variant so many with random labels, else like its first ones."""
    return [
        *runs,
        *(
            replace(each, labels="random")
            for variant in VARIANTS
            for each in [run for run in runs if run.variant == variant][:controls]
        ),
    ]


SMOKE = with_controls(grokking.SMOKE[:2], 1)
SMALL = with_controls([each for each in grokking.SMALL if each.variant == "released"], 3)
PAPER = with_controls(grokking.PAPER, 6)


@dataclass(frozen=True)
class Warned:
    """When a run that grokked raised which alarm; one that never did counts as raised at the end."""

    known: int  # the epoch at which it knew the training pairs by heart
    grokked: int
    alarms: Mapping[str, int]

    def lead(self, signal: str) -> int:
        return self.alarms[TEST] - self.alarms[signal]

    def share(self, signal: str) -> float:
        """The lead as a share of the wait from memorising to grokking."""
        return self.lead(signal) / (self.grokked - self.known) if self.grokked > self.known else 0.0


def watched_from(run: pd.DataFrame) -> int | None:
    """The row from which alarms count, or None."""
    known = knows_by_heart(run)
    return None if known is None else first(run.epoch >= 2 * run.epoch.iloc[known])


def departure(run: pd.DataFrame, signal: str) -> NDArray[np.float64]:
    """How far a curve has come at each row since it is watched: test accuracy up, by a difference, and the others down,
    by a share. Nothing later than a row counts for it."""
    start = watched_from(run)
    if start is None:
        return np.zeros(0)
    last = run[signal].iloc[start:].rolling(3, min_periods=1).median().to_numpy(float)
    if signal == TEST:
        return last - np.minimum.accumulate(last)
    last = np.maximum(last, LEAST)
    return 1 - last / np.maximum.accumulate(last)


def thresholds(table: pd.DataFrame) -> dict[str, float] | None:
    """The furthest that each curve came where there was nothing to grok; None where no such run was watched."""
    controls = [run for run in _runs(table, "random") if watched_from(run) is not None]
    if not controls:
        return None
    return {signal: max(float(departure(run, signal).max()) for run in controls) for signal in SIGNALS}


def warned(run: pd.DataFrame, limits: Mapping[str, float]) -> Warned | None:
    """The alarms of a run, or None where it has not grokked."""
    course, known, start = course_of(run), knows_by_heart(run), watched_from(run)
    if course is None or known is None or start is None:
        return None
    epoch, alarms = run.epoch.to_numpy(), {}
    for signal in SIGNALS:
        row = first(departure(run, signal) > limits[signal])
        alarms[signal] = int(epoch[-1] if row is None else epoch[start + row])
    return Warned(int(epoch[known]), course.grokked, alarms)


def _runs(table: pd.DataFrame, labels: str) -> list[pd.DataFrame]:
    return [run.sort_values("epoch") for _, run in table.loc[table.labels == labels].groupby("seed")]


def _warned(table: pd.DataFrame, variant: str) -> list[Warned] | None:
    """Of all runs that grokked; None where there are no runs of the variant."""
    here = table.loc[table.variant == variant]
    if here.empty:
        return None
    limits = thresholds(here)
    every = [] if limits is None else [warned(run, limits) for run in _runs(here, "sum")]
    return [each for each in every if each is not None]


def _measure(answer: Callable[[list[Warned]], Estimate], variant: str):
    def measure(table: pd.DataFrame) -> Estimate | None:
        found = _warned(table, variant)
        return None if found is None else answer(found)

    return measure


def _epochs(variant: str):
    """The mean lead of sensitivity in epochs, at V's own prime."""
    inside = _measure(lambda found: mean([each.lead("sensitivity") for each in found], ANY), variant)

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = table.loc[table.p == 113]
        return None if here.empty else inside(here)

    return measure


def _risen(variant: str):
    """The share of runs with random labels whose sensitivity rises by half once they are watched."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = table.loc[table.variant == variant]
        if here.empty:
            return None
        rises = []
        for control in _runs(here, "random"):
            start = watched_from(control)
            if start is not None:
                values = least(control.sensitivity)[start:]
                low, high = largest_rise(values)
                rises.append(bool(values[high] / values[low] >= HALF_MORE))
        return share(rises)

    return measure


def _claims(variant: str) -> list[Claim]:
    of = "" if variant == "text" else " (as released)"
    rule: dict[str, Any] = {"tolerance": 0.2, "resolution": 0.35}

    def sooner(signal: str) -> Callable[[list[Warned]], Estimate]:
        return lambda found: share([each.lead(signal) > 0 for each in found])

    return [
        Claim(
            f"share of runs that sensitivity warns of first{of}", 1, _measure(sooner("sensitivity"), variant), **rule
        ),
        Claim(
            f"noise relative to the embedding: share of runs that sensitivity warns of first{of}",
            1,
            _measure(sooner("sensitivity_relative"), variant),
            **rule,
        ),
        Claim(
            f"lead of sensitivity over the wait from memorising to grokking (V's epochs: 0.73){of}",
            V_LEAD / V_WAIT,
            _measure(lambda found: mean([each.share("sensitivity") for each in found], ANY), variant),
            tolerance=0.25,
            resolution=0.25,
        ),
        Claim(
            f"p = 113: lead of sensitivity, in epochs (V's: 9,800 - 3,000){of}",
            V_LEAD,
            _epochs(variant),
            tolerance=V_LEAD / 2,
            resolution=V_LEAD / 2,
        ),
        Claim(
            f"random labels: share of runs whose sensitivity rises by half after memorising (no circuit forms: 0){of}",
            0,
            _risen(variant),
            tolerance=0.5,  # in most of them it does not: none of six tells
            strict=True,
        ),
    ]


CLAIMS = [claim for variant in VARIANTS for claim in _claims(variant)]

DEPARTURES = [
    "Beyond the paper, which warns of nothing: rules, controls and what counts as an alarm are ours. The numbers "
    "compared with are what V's epochs come to, read as if its eye had raised the alarms at once.",
    "The runs are those of `grokking` (see its departures), and runs with random labels beside them. A label is drawn "
    "for a pair whatever its order, so that controls, too, know b + a from a + b.",
    "That runs are watched from twice an epoch on was settled after a look at single curves of the small tier, and "
    "before any lead was looked at; no rule was changed after.",
    "A threshold is the furthest of a few control runs, and so uncertain itself: intervals are over runs that grok "
    "alone.",
    "V's words on circuit formation (A.5: sensitivity goes up again) are held against runs in which no circuit can "
    "form: a claim that a rise there is absent is how we read them, not what V states. It is reproduced if in most "
    "controls there is none, which six without one would show; a narrower tolerance could not be met.",
]


def figure(table: pd.DataFrame) -> Figure:
    """Above: when which curve raised its alarm, a line a run. Below: the mean lead over test accuracy."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    found = {variant: warned for variant in VARIANTS if (warned := _warned(table, variant)) is not None}
    drawing = Figure(figsize=(6.4, 6.6), layout="constrained")
    panels = drawing.subplots(2, len(found), squeeze=False, sharex="row", sharey="row", height_ratios=[3, 2])
    shapes = dict(zip(SIGNALS, "sDo^vx", strict=True))
    for column, (variant, runs) in zip(panels.T, found.items(), strict=True):
        runs = sorted(runs, key=lambda each: each.grokked)
        for place, each in enumerate(runs):
            column[0].plot([each.known, each.grokked], [place, place], color="0.8", linewidth=4, zorder=1)
            for i, signal in enumerate(SIGNALS):
                column[0].plot(each.alarms[signal], place, shapes[signal], color=f"C{i}", markersize=5, alpha=0.85)
        for i, signal in enumerate(list(SIGNALS)[1:], 1):
            lead = mean([each.lead(signal) for each in runs], ANY)
            if len(runs) > 1:
                column[1].plot([lead.low, lead.high], [i, i], color=f"C{i}", linewidth=2)
                column[1].plot(lead.value, i, shapes[signal], color=f"C{i}", markersize=6)
        here = table.loc[(table.variant == variant) & (table.labels == "sum")]
        column[0].set_title(f"{variant}: {len(runs)} of {here.seed.nunique()} runs grok", loc="left", fontsize=9)
        column[0].set_xlabel("epoch, square-root scale\n(grey: from memorised to grokked)", fontsize=8)
        column[1].axvline(0, color="0.5", linewidth=0.8)
        column[1].set_xlabel("epochs before the alarm of test accuracy\n(mean, 95 % interval over runs)", fontsize=8)
        for axes in column:
            axes.tick_params(axis="x", labelsize=7)
    panels[0][0].set(ylabel="run, by when it grokked", yticks=[])
    epoch_axis(panels[0][0], int(table.epoch.max()))
    names = list(SIGNALS.values())[1:]
    panels[1][0].set_yticks(range(1, len(SIGNALS)), names, fontsize=8)
    panels[1][0].set_ylim(len(SIGNALS) - 0.4, 0.4)
    marks = [Line2D([], [], color=f"C{i}", marker=shapes[name], linestyle="") for i, name in enumerate(SIGNALS)]
    drawing.legend(marks, list(SIGNALS.values()), loc="outside lower center", ncols=3, fontsize=8)
    return drawing


STUDY = Study(
    name="vasudeva2025/early-warning",
    paper="vasudeva2025",
    where="Section 7.3 (beyond the paper)",
    title="Is grokking foretold by sensitivity?",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=TOGETHER,
    shares=grokking.STUDY,
    demo="smoke",
)
