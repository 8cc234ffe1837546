"""Does sensitivity tell the stages of grokking?

Sections 7.3 and A.5 of Vasudeva et al.: a one-layer transformer learns a + b mod 113 from 30 % of all pairs. It soon
knows these by heart, and the others only thousands of epochs later. V sees four phases: memorization (sensitivity
falls), circuit formation (it rises, while the norm falls), clean-up (it falls, while test accuracy and norm stay flat)
and, once it has grokked, noise reduction (it rises and falls once more). V draws their borders by hand, at epochs 500,
3,000 and 9,800. Here they are found (`course_of`), in every run alike:

- circuit formation begins and ends where sensitivity rises most, of all pairs of rows from the one that knows 99 % of
  the training pairs to that of grokking; there is none where it rises by less than half, and clean-up then begins with
  the first of these rows;
- a run has grokked where it is right on half of the new pairs, those of which it saw neither (a, b) nor (b, a).

New pairs rather than all, for a model that has only memorised knows b + a wherever it was shown a + b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from teeter.measure import Estimate
from teeter.studies.over_runs import POSITIVE, mean, share
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025.adding import TOGETHER, VARIANTS, Adder, run
from teeter.studies.vasudeva2025.curves import first, largest_rise, smooth

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Course", "course_of", "epoch_axis", "knows_by_heart", "least"]

KNOWN, BEGUN, GROKKED = 0.99, 0.1, 0.5  # of the training pairs, and of the new ones
HALF_MORE, A_TENTH, A_QUARTER = 1.5, 0.1, 0.25  # what counts as a rise and as a fall
LEAST = 1e-3  # a sensitivity that counts as none
PHASES = ("memorization", "circuit formation", "clean-up", "noise reduction")
BORDERS = {"memorised": 500, "formed": 3_000, "grokked": 9_800}  # V's, in epochs, for p = 113


def grid(seeds: int, **more: Any) -> list[Adder]:
    return [Adder(seed, variant, **more) for variant in VARIANTS for seed in range(seeds)]


SMOKE = grid(1, p=113, dim=8, width=8, share=0.02, epochs=4) + grid(1, p=7, dim=8, width=8, share=0.5, epochs=5)
SMALL = grid(4, p=31, dim=64, width=128, share=0.6, rate=5e-3, weight_decay=2.0, epochs=1_200)
PAPER = grid(6)


@dataclass(frozen=True)
class Course:
    """What a run that grokked came to. Its phases end at these epochs; the last one, where the run does.

    Curves of sensitivity are smoothed; a fall is a share of what it falls from.
    """

    memorised: int
    formed: int
    grokked: int
    drop: float  # the fall of sensitivity from its highest to its value at the end of memorization
    rise: float  # how many times over it rises most from knowing the training pairs to grokking
    norm_fall: float  # of the norm, meanwhile
    hidden_fall: float  # of sensitivity, from then until a tenth of the new pairs is right
    hidden_norm_fall: float  # of the norm, meanwhile
    bump: float  # how many times over sensitivity rises after grokking
    settling: float  # its fall from there to the end


def knows_by_heart(run: pd.DataFrame) -> int | None:
    """The first row at which the training pairs are known, or None."""
    return first(run.train_accuracy >= KNOWN)


def course_of(run: pd.DataFrame, column: str = "sensitivity") -> Course | None:
    """From the rows of a run, or None where it has not grokked."""
    run = run.sort_values("epoch")
    known = knows_by_heart(run)
    grokked = None if known is None else first(run.new_accuracy >= GROKKED, known)
    if known is None or grokked is None:
        return None
    begun = first(run.new_accuracy >= BEGUN, known)
    assert begun is not None
    epoch, norm = run.epoch.to_numpy(), run.norm.to_numpy()
    sensitivity = least(run[column])
    low, high = (known + row for row in largest_rise(sensitivity[known : grokked + 1]))
    rise = float(sensitivity[high] / sensitivity[low])
    if rise < HALF_MORE:
        low = high = known
    foot, peak = (grokked + row for row in largest_rise(sensitivity[grokked:]))
    still = max(begun, high)  # the circuit may be complete only when new pairs are right already
    return Course(
        memorised=int(epoch[low]),
        formed=int(epoch[high]),
        grokked=int(epoch[grokked]),
        drop=_fall(sensitivity[: low + 1].max(), sensitivity[low]),
        rise=rise,
        norm_fall=_fall(norm[low], norm[high]),
        hidden_fall=_fall(sensitivity[high], sensitivity[still]),
        hidden_norm_fall=_fall(norm[high], norm[still]),
        bump=float(sensitivity[peak] / sensitivity[foot]),
        settling=_fall(sensitivity[peak], sensitivity[-1]),
    )


def least(values: Any) -> np.ndarray:
    """Smoothed, and nowhere so small that a ratio would mean nothing."""
    return np.maximum(smooth(values), LEAST)


def _fall(before: float, after: float) -> float:
    return float(1 - after / before)


def _of(table: pd.DataFrame, variant: str) -> list[pd.DataFrame]:
    return [run for _, run in table.loc[table.variant == variant].groupby(["p", "seed"])]


def _grokked(variant: str) -> Callable[[pd.DataFrame], Estimate]:
    return lambda table: share([course_of(run) is not None for run in _of(table, variant)])


def _courses(table: pd.DataFrame, variant: str, column: str = "sensitivity") -> list[Course]:
    every = (course_of(run, column) for run in _of(table, variant))
    return [each for each in every if each is not None]


def _how_many(test: Callable[[Course], bool], variant: str, column: str = "sensitivity"):
    """The share, of the runs that grokked, of which something is true."""
    return lambda table: share([test(each) for each in _courses(table, variant, column)])


def _border(name: str, variant: str):
    """The mean epoch over runs at V's own prime, of those that have both phases; None where there are no such runs."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = table.loc[table.p == 113]
        found = [each for each in _courses(here, variant) if name == "grokked" or each.rise >= HALF_MORE]
        return None if here.empty else mean([getattr(each, name) for each in found], POSITIVE)

    return measure


def _claims(variant: str) -> list[Claim]:
    of = "" if variant == "text" else " (as released)"
    rule: dict[str, Any] = {"tolerance": 0.2, "resolution": 0.35}

    def one(words: str, test: Callable[[Course], bool], column: str = "sensitivity") -> Claim:
        return Claim(f"{words}{of}", 1, _how_many(test, variant, column), **rule)

    return [
        Claim(f"share of runs that grok{of}", 1, _grokked(variant), **rule),
        one("memorization: share of runs whose sensitivity falls by half", lambda run: run.drop >= 0.5),
        one("circuit formation: share whose sensitivity rises by half", lambda run: run.rise >= HALF_MORE),
        one(
            "circuit formation: share in which the norm then falls, by a tenth",
            lambda run: run.rise >= HALF_MORE and run.norm_fall >= A_TENTH,
        ),
        one(
            "clean-up: share whose sensitivity falls by a tenth before a tenth of the new pairs is right",
            lambda run: run.hidden_fall >= A_TENTH,
        ),
        Claim(
            f"clean-up: fall of the norm meanwhile, as a share of it (flat: a tenth at most){of}",
            0,
            lambda table: mean([each.hidden_norm_fall for each in _courses(table, variant)], (-1, 1)),
            tolerance=0.1,
            strict=True,
        ),
        one(
            "noise reduction: share whose sensitivity rises by half, then falls by a quarter",
            lambda run: run.bump >= HALF_MORE and run.settling >= A_QUARTER,
        ),
        one(
            "circuit formation, noise relative to the embedding: share whose sensitivity rises by half",
            lambda run: run.rise >= HALF_MORE,
            "sensitivity_relative",
        ),
        *[
            Claim(
                f"p = 113: mean epoch at which {phase} ends{of}",
                BORDERS[name],
                _border(name, variant),
                tolerance=BORDERS[name] / 2,
                resolution=BORDERS[name] / 2,
            )
            for name, phase in zip(BORDERS, PHASES, strict=False)
        ],
    ]


CLAIMS = [claim for variant in VARIANTS for claim in _claims(variant)]

DEPARTURES = [
    "V gives no sizes, optimizer, share of pairs, or number of epochs; these are the released code's (AdamW at rate "
    "0.001, weight decay 1, 30 % of the pairs, all at once), and 25,000 epochs are ours. A one-layer transformer is, "
    "by the text, taken to have skip connections (that of Nanda et al., whose phases A.5 takes up); the released model "
    "has none. Neither has LayerNorm, nor a logit for '=', which both programs have and which is never the answer.",
    "V shows a single run and reads the phases off by eye; here are several seeds, each with pairs and first weights "
    "of its own. How the phases are found, and what counts as a rise, a fall or flat, are our rules: V prints no "
    "number but the epochs. A run's epochs are compared with V's within a factor of one half to three halves.",
    "That there is no circuit formation without a rise by half was settled after a look at the small tier, and moved "
    "three of its verdicts: they are no test of that rule.",
    "The last rise by half is looked for with noise relative to each number's vector, sigma half its root mean square. "
    "V has no such measurement; the claim is V's reading of the rise (something forms), against the other (the vectors "
    "shrink, by weight decay, below a noise that stays the same).",
    "The first two borders are of runs that have circuit formation between them. That was settled after the paper "
    "tier had been run: the border at 3,000 had counted as reproduced for the text's model, of which one run in six "
    "has any.",
    "V's phases are those of the released code's model: its borders come out at 350, 2,866 and 11,830. The rise "
    "between the first two, 3.1 times in the mean, is one of noise that stays the same beside vectors that weight "
    "decay shrinks: the root mean square of the embedding falls from 0.75 to 0.28 meanwhile, and relative to it "
    "there is no rise in any of six runs. With skip connections the vectors are small from the start (0.14 once the "
    "training pairs are known), and one run of six has such a rise.",
    "The rise after grokking, V's noise reduction, seems to be mostly rounding here: in eleven of twelve runs the loss "
    "falls to 1.7e-07 to 3e-07, next to the resolution of the float32 that it is computed in, and then jumps by a "
    "thousand times and more, and sensitivity with it. With the loss in float64, in one run of either model "
    "(benchmarks/profiles/grokked.py), it falls up to the last epoch, and sensitivity rises 1.0 times with skip "
    "connections and 9.1 times without, where in float32 it rises 25 and 61 times. Whether V's rise is that too is not "
    "known.",
    "V does not say on which pairs sensitivity is measured: here those trained on, as section 5 has it, each with four "
    "draws; of others, up to 4,096 (`sensitivity_unseen`).",
    "At small tier p = 31, 60 % of the pairs, smaller models and a larger rate and weight decay, so that minutes do.",
]

_PANELS: dict[str, dict[str, str]] = {
    "accuracy": {"train_accuracy": "train", "test_accuracy": "test", "new_accuracy": "test, new"},
    "loss": {"train_loss": "train", "test_loss": "test"},
    "norm": {"norm": "weights"},
    "sensitivity": {
        "sensitivity": r"train, $\sigma = 0.1$",
        "sensitivity_unseen": r"test, $\sigma = 0.1$",
        "sensitivity_relative": "train, relative",
    },
}


def figure(table: pd.DataFrame) -> Figure:
    """A column a variant, a line a run; shaded are the phases, from medians over the runs that grokked."""
    from matplotlib.figure import Figure

    table = table.loc[table.p == table.p.max()]
    drawing = Figure(figsize=(6.4, 7.6), layout="constrained")
    panels = drawing.subplots(len(_PANELS), len(VARIANTS), sharex=True, sharey="row")
    for column, variant in zip(panels.T, VARIANTS, strict=True):
        runs, courses = _of(table, variant), _courses(table, variant)
        for axes, lines in zip(column, _PANELS.values(), strict=True):
            for i, (name, words) in enumerate(lines.items()):
                for each in runs:
                    values = least(each[name]) if "sensitivity" in name else each[name]
                    axes.plot(each.epoch, values, color=f"C{i}", linewidth=0.7, alpha=0.7, label=words)
            _shade(axes, courses, numbered=axes is column[0])
        column[0].set_title(f"{variant}: {len(courses)} of {len(runs)} runs grok", loc="left", fontsize=9)
        column[-1].set_xlabel("epoch (square-root scale)")
        column[-1].tick_params(axis="x", labelsize=8)
    for axes, (name, lines) in zip(panels[:, 0], _PANELS.items(), strict=True):
        axes.set_ylabel(name)
        if name in ("loss", "sensitivity"):
            axes.set_yscale("log")
        if len(lines) > 1:
            handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
            axes.legend(handles.values(), handles.keys(), fontsize=7, handlelength=1.2, framealpha=0.85)
    panels[0][0].set_ylim(-0.05, 1.18)
    epoch_axis(panels[0][0], int(table.epoch.max()))
    drawing.align_ylabels()
    words = ", ".join(f"{number} {phase}" for number, phase in enumerate(PHASES, 1))
    drawing.supxlabel(f"p = {table.p.max()}. Phases: {words}", fontsize=8)
    return drawing


def epoch_axis(axes: Axes, last: int) -> None:
    """Epochs as they are measured: as wide as their roots."""
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    axes.set_xlim(0, last)
    ticks = [last * share for share in (0.01, 0.0625, 0.25, 0.5625)]
    axes.set_xticks([0, *ticks, last], [f"{tick:,.0f}" for tick in (0, *ticks, last)])
    axes.minorticks_off()


def _shade(axes: Axes, courses: list[Course], numbered: bool) -> None:
    if not courses:
        return
    ends = [float(np.median([getattr(each, name) for each in courses])) for name in BORDERS]
    low, high = axes.get_xlim()
    borders = [0.0, *ends, high]
    every = enumerate(zip(borders, borders[1:], strict=False), 1)
    for i, (number, (begin, end)) in enumerate(each for each in every if each[1][0] < each[1][1]):
        axes.axvspan(begin, end, color="0.5", alpha=0.16 if i % 2 else 0.0, linewidth=0, zorder=0)
        if numbered:
            place = (np.sqrt(begin) + np.sqrt(end)) ** 2 / 4
            axes.text(place, 1.06, str(number), ha="center", fontsize=8)
    axes.set_xlim(low, high)


STUDY = Study(
    name="vasudeva2025/grokking",
    paper="vasudeva2025",
    where="Sections 7.3 and A.5",
    title="Sensitivity while a + b mod p is grokked",
    about=__doc__ or "",
    revision=2,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=TOGETHER,
    demo="smoke",
)
