"""What happens to sharpness, blow-up and norm while PARITY is learned?

Figures 3, 12, 13 and 14 of Hahn & Rofin (7.2, E.2): n = 25, weight decay 0 to 0.3, 20,000 steps measured every 100, and
100,000 steps measured every 500. The loss stays at that of a guess (a quarter, for 0 and 1) until it falls at once; at
that moment sharpness rises, and afterwards weight decay trades norm for blow-up.

A row is a measured step. Claims and curves take the sharpness and blow-up of the variant: Eq. 15 and Eq. 5, or as
released; rows have both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teeter.measure import Estimate
from teeter.runs import Together
from teeter.studies.hahn2024.course import COLUMNS, Course, course_of
from teeter.studies.hahn2024.learning import CONVERGED, VARIANTS, Learner, kind_of, learn
from teeter.studies.over_runs import POSITIVE, average, correlation, mean, ratio, share
from teeter.studies.study import Claim, Study
from teeter.train import Trained

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

DECAYS = (0.0, 0.1, 0.2, 0.3)
LONG = (0.0, 0.1)  # the weight decays of Figure 13
AT_ONCE = 5  # rows, of 200
DRAWS = 20  # of sharpness
LEARNED = 0.01  # the loss below which the released code takes a run to have converged, and lays its curves over another
MAJORITY = 25 * 1.8e-3  # what MAJORITY's sharpness comes to at n = 25 by the slope in Table 2
KEPT = ("loss", "mse", "norm", "sharpness", "sharpness_released", "blowup", "blowup_mean", "blowup_released")


def grid(n: int, steps: int, seeds: int, variant: str = "text", decays: Sequence[float] = DECAYS, **sizes: Any):
    """Every run has a seed of its own, so that all are independent."""
    return [
        Learner("parity", n, seeds * i + k, variant, steps=steps, weight_decay=decay, **sizes)
        for i, decay in enumerate(decays)
        for k in range(seeds)
    ]


TINY: dict[str, Any] = {"dim": 8, "batch": 16}
QUICK: dict[str, Any] = {"dim": 16, "batch": 64, "rate": 3e-3}
SMOKE = grid(4, 4, 1, **TINY) + grid(4, 4, 1, "released", LONG, **TINY) + grid(4, 8, 1, decays=LONG, **TINY)
SMALL = grid(4, 600, 2, **QUICK) + grid(4, 600, 1, "released", LONG, **QUICK)
PAPER = grid(25, 20_000, 10) + grid(25, 20_000, 10, "released", LONG) + grid(25, 100_000, 5, decays=LONG)


def every(steps: int) -> int:
    """Between measured steps: H's 100 of 20,000, and as many rows of a longer run; fewer of a short one."""
    rows = 200 if steps >= 20_000 else 20 if steps >= 100 else 4
    return steps // rows


def rows(spec: Learner, made: Trained) -> list[dict[str, Any]]:
    """All that was measured, and the mean loss in training since the row before (None at the start)."""
    converged = made.stopped == "done" and made.rows[-1]["mse"] <= CONVERGED
    return [
        {"step": row["step"], **{name: _short(row[name]) for name in KEPT}, "converged": converged} for row in made.rows
    ]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def run_all(specs: Sequence[Learner], folder: Path | None) -> list[list[dict[str, Any]]]:
    first = specs[0]
    made = learn(specs, folder, every=every(first.steps), draws=DRAWS)
    return [rows(spec, each) for spec, each in zip(specs, made, strict=True)]


def run(spec: Learner) -> list[dict[str, Any]]:
    return run_all([spec], None)[0]


def of_kind(table: pd.DataFrame, variant: str, long: bool = False) -> pd.DataFrame:
    """The rows of a variant's shortest runs, or of those that are longer, with what the variant measures."""
    longer = table.steps > table.steps.min()
    here = table.loc[(table.variant == variant) & (longer if long else ~longer)]
    return here.assign(**{name: here[own] for name, own in COLUMNS[variant].items()})


def converged_runs(table: pd.DataFrame) -> tuple[int, int]:
    """How many runs converged, of how many."""
    fates = table.groupby(["weight_decay", "seed"]).converged.first()
    return int(fates.sum()), len(fates)


def _measure(answer: Callable[[list[Course]], Estimate], variant: str, long: bool = False):
    """What the converged runs of a kind say; None where there was no such run at all."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = of_kind(table, variant, long)
        good = here.loc[here.converged.astype(bool)]
        return None if here.empty else answer([course_of(run) for _, run in good.groupby(["weight_decay", "seed"])])

    return measure


def _traded(found: list[Course]) -> Estimate:
    moved = [each for each in found if each.weight_decay > 0 and each.norm_change != 0]
    return share([each.norm_change < 0 < each.blowup_change for each in moved])


def _line(found: list[Course]) -> Estimate:
    return mean([each.line for each in found if each.weight_decay > 0 and each.line is not None], (-1, 1))


def _straight(found: list[Course]) -> Estimate:
    return mean([each.bend for each in found if each.weight_decay > 0 and each.bend is not None], (-4, 4))


def _no_effect(found: list[Course]) -> Estimate:
    decayed = [each for each in found if each.weight_decay > 0]
    return correlation([each.blowup for each in decayed], [each.end for each in decayed])


def _flatter(found: list[Course]) -> Estimate:
    """The mean of the end over runs at weight decay 0, as a share of that at the other."""
    ends = [[each.end for each in found if (each.weight_decay > 0) == other] for other in (False, True)]
    return ratio(average(ends[0]), average(ends[1]), POSITIVE)


def _claims(variant: str) -> list[Claim]:
    of = "" if variant == "text" else " (as released)"

    def claim(words: str, published: float, answer: Callable[[list[Course]], Estimate], **rule: Any) -> Claim:
        return Claim(words + of, published, _measure(answer, variant), **rule)

    return [
        claim(
            "share of runs whose sharpness rises most when the loss falls",
            1,
            lambda found: share([abs(each.lag) <= AT_ONCE for each in found]),
            tolerance=0.1,
            resolution=0.2,
        ),
        claim(
            "sharpness before the fall of loss over its peak",
            0,
            lambda found: mean([each.before for each in found], POSITIVE),
            tolerance=0.2,
            strict=True,
        ),
        claim(
            "sharpness at the end over its peak",
            0.5,
            lambda found: mean([each.left for each in found], POSITIVE),
            tolerance=0.45,
            resolution=0.2,
        ),
        claim(
            "share of runs whose blow-up rises with the fall of loss",
            1,
            lambda found: share([each.jump > 0 for each in found]),
            tolerance=0.1,
            resolution=0.2,
        ),
        claim(
            "with weight decay: share of runs whose norm falls and blow-up rises once learned",
            1,
            _traded,
            tolerance=0.1,
            resolution=0.2,
        ),
        claim(
            "with weight decay: correlation of log blow-up and norm in the course of a run",
            -1,
            _line,
            tolerance=0.1,
            strict=True,
        ),
        claim(
            "with weight decay: log2 of that dependency's slope in the later half over the earlier (rule: within 1)",
            0,
            _straight,
            tolerance=1,
            strict=True,
        ),
        claim(
            "with weight decay: correlation of sharpness and log blow-up at the end, over runs",
            0,
            _no_effect,
            tolerance=0.5,
            strict=True,
        ),
    ]


CLAIMS = [
    *(claim for variant in VARIANTS for claim in _claims(variant)),
    Claim(
        "long runs: sharpness at the end over its peak",
        0.5,
        _measure(lambda found: mean([each.left for each in found], POSITIVE), "text", long=True),
        tolerance=0.45,
        resolution=0.2,
    ),
    Claim(
        "long runs: sharpness at the end, weight decay 0 over 0.1",
        0.5,
        _measure(_flatter, "text", long=True),
        tolerance=0.45,
        resolution=0.45,
    ),
    Claim(
        "long runs: MAJORITY's sharpness by Table 2 over the end without weight decay",
        0,
        _measure(
            lambda found: mean([MAJORITY / each.end for each in found if each.weight_decay == 0], POSITIVE),
            "text",
            long=True,
        ),
        tolerance=0.5,
        resolution=0.25,
    ),
]

DEPARTURES = [
    "The paper gives no numbers here but one: its curves are over 39 converged runs, it does not say of how many "
    "(the sweeps of its code have 101 seeds at each weight decay). We have ten runs at each, and count in the "
    "figure how many converge; of the released model at weight decays 0 and 0.1 alone.",
    "Sharpness has 20 draws, the same for all runs, where the released code has 500 for this experiment.",
    "Feed-forward layers are as wide as the model, as in the released code; on a GPU training is in tf32.",
    "Statements as numbers. 'Exactly when': 500 steps apart at most, in 90 % of runs. 'Dramatic': at least fivefold. "
    "'Decreases again, but to a nontrivial value': the end is between 5 % and 95 % of the peak. 'Log-linear': a "
    "correlation of 0.9 at least, and a slope that neither doubles nor halves on the way. 'No significant effect': one "
    "below one half. 'Substantially higher': at least twice.",
    "The rule for 'exactly when' was widened, from the mean lag and 200 steps, after a look at the small tier and "
    "at made-up noise: verdicts at the small tier are therefore no test of it. Blow-up 'rises with the fall of "
    "loss' if it rises by more than it did before, over as many steps: with weight decay it rises all the time.",
    "MAJORITY's sharpness at n = 25 is taken to be 25 times its slope in Table 2, since the paper prints no intercept.",
    "Long runs are measured every 500 steps rather than every 100, five seeds each, and with the paper's model alone.",
    "Loss is that on 4,096 strings which stay the same; the released code takes one batch of 1,024 that does. The "
    "mean loss of the batches trained on is in the column `loss`. As in that code, curves are laid over one another"
    " where a run's loss first falls below 0.01.",
    "Undecided claims at the paper tier are so for want of runs: at n = 25 few learn PARITY at all, 4 of 40 with the "
    "text's model (none, 1, 3 and none of ten at weight decays 0, 0.1, 0.2 and 0.3) and 9 of 20 with the released one, "
    "of which one loses it again (3 and 5 of ten are left at 0 and 0.1). All but one do so before step 6,000, so more "
    "steps do not make more runs learn: of ten over 100,000 steps one learned, at 3,500, and lost it at 6,000. So "
    "Figure 13 has no run here; the released code's model, of which more learn, was not run for so long. The paper's "
    "39 converged runs would be a tenth of the 404 in its sweeps.",
    "Log blow-up and norm fall along a line by their correlation, and yet it bends: as the norm falls, blow-up rises "
    "the faster, by a factor of 1.5 (1.2 to 2.0) in the later half of the way against the earlier; of the released "
    "model, 1.3 (1.2 to 1.5). `tradeoff` shows the same bend over runs.",
]


def figure(table: pd.DataFrame) -> Figure:
    """A column a kind of run, a line a weight decay: means over converged runs, and their standard deviation. A kind of
    which no run converged is only named."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    kinds = {"": of_kind(table, "text"), "as released, ": of_kind(table, "released"), " ": of_kind(table, "text", True)}
    there = {words: here for words, here in kinds.items() if not here.empty}
    shown = {words: here for words, here in there.items() if here.converged.any()} or there
    decays = sorted(table.weight_decay.unique())
    drawing = Figure(figsize=(6.4, 8.2), layout="constrained")
    if unseen := [_kind(words, here) for words, here in there.items() if words not in shown]:
        drawing.suptitle(f"not shown: {', '.join(unseen)}", x=0.01, ha="left", fontsize=9)
    panels = drawing.subplots(5, len(shown), sharey="row", squeeze=False)
    for column, (words, here) in zip(panels.T, shown.items(), strict=True):
        column[0].set_title(_kind(words, here).replace(": ", "\n"), loc="left")
        _courses(column, aligned(here.loc[here.converged.astype(bool)]), decays)
        for axes in column[:4]:
            axes.xaxis.set_major_locator(MaxNLocator(2))
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.tick_params(labelbottom=axes is column[3])
        column[3].set_xlabel("steps since learned")
        column[4].sharex(panels[4][0])
        column[4].set_xlabel("norm")
    panels[0][0].set_ylim(-0.01, 0.35)
    for axes, name in zip(panels[:, 0], ("loss", "sharpness", "norm", "log blow-up", "log blow-up"), strict=True):
        axes.set_ylabel(name)
    drawing.align_ylabels()
    handles, labels = panels[0][0].get_legend_handles_labels()
    learned = {f"{decay:g}" for decay in table.loc[table.converged.astype(bool), "weight_decay"]}
    labels = [label if label in learned else f"{label} (none converged)" for label in labels]
    drawing.legend(handles, labels, loc="outside lower center", ncols=4, title="weight decay")
    return drawing


def _kind(words: str, table: pd.DataFrame) -> str:
    good, runs = converged_runs(table)
    return f"{words.strip()} {table.steps.iloc[0]:,} steps: {good} of {runs} runs converged".strip()


def aligned(table: pd.DataFrame) -> pd.DataFrame:
    """Steps counted from where a run's loss first falls below 0.01; those that half the runs of a weight decay have."""
    runs = ["weight_decay", "seed"]
    learned = table.loc[table.mse < LEARNED].groupby(runs, as_index=False).step.min()
    found = table.merge(learned.rename(columns={"step": "learned"}), on=runs)
    found["since"] = found.step - found.learned
    found = found.loc[found.step > 0]  # where it begins it is far above a guess, and a run more or less would tell
    counts = found.groupby(["weight_decay", "since"]).seed.transform("count")
    return found.loc[counts >= found.groupby("weight_decay").seed.transform("nunique") / 2]


def _courses(column: Sequence[Axes], table: pd.DataFrame, decays: Sequence[float]) -> None:
    for i, decay in enumerate(decays):
        steps = table.loc[table.weight_decay == decay].groupby("since")
        middle = {name: steps[name].mean() for name in COLUMNS["text"]}
        for axes, (name, line) in zip(column, middle.items(), strict=False):
            some = slice(None, None, max(len(line) // 50, 1))  # half a megabyte less
            spread = steps[name].std().fillna(0)[some]  # of a single run
            ends = line[some] - spread, line[some] + spread
            axes.fill_between(spread.index, *ends, color=f"C{i}", alpha=0.15, linewidth=0)
            axes.plot(line.index, line, color=f"C{i}", linewidth=1.2, label=f"{decay:g}")
        column[4].plot(middle["norm"], middle["blowup"], color=f"C{i}", linewidth=1.2)
        column[4].plot(middle["norm"][-1:], middle["blowup"][-1:], "o", color=f"C{i}", markersize=4)


STUDY = Study(
    name="hahn2024/dynamics",
    paper="hahn2024",
    where="Figures 3, 12, 13 and 14",
    title="Sharpness, blow-up and norm while PARITY is learned",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=Together(key=kind_of, run=run_all, most=20),
)
