"""Do transformers generalise to less sensitive functions, and are those flatter?

Section 7.2 of Hahn & Rofin, "The Limits of Transformers' Generalization" (Figures 4 and 15). A transformer T_1 learns a
random function f on 10 bits from 128, 256 or 512 strings and labels all 1024 by its sign. New transformers then fit
what T_1 said, and others f itself, on the whole cube. The paper says that T_1 is less sensitive than f, and the less
sensitive the fewer strings it has seen; that the new transformers are less sharp for T_1 than for f; and that sharpness
on the training set alone is almost the same.

Average sensitivity is exact. A size of 2^n stands for f itself: it is known everywhere, and there is no T_1. Its rows
have the sharpness on every training set that a T_1 has, `sharpness_on_SIZE_SAMPLE`; those of a T_1 have its own, as
`first_sharpness` and `first_train_sharpness`, beside that of the new transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from teeter import counter, cube
from teeter.data import subset
from teeter.measure import Estimate
from teeter.measure.stacked import stacked_norm
from teeter.runs import Together
from teeter.studies.devices import ARITHMETIC, device_here
from teeter.studies.hahn2024.learning import CONVERGED, POSITIONS, VARIANTS, Learner, model_of, worth_compiling
from teeter.studies.hahn2024.lengths import SHARPNESS, of_variant
from teeter.studies.hahn2024.nudged import answers, changes
from teeter.studies.over_runs import POSITIVE, average, mean, unknown
from teeter.studies.study import Claim, Study
from teeter.train import Counted, Drawn, Job, Recipe, Stack, train_many

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Spec"]


Sharpness: TypeAlias = dict[str, Tensor]  # of both kinds, at every string: (models, strings)


@dataclass(frozen=True)
class Spec:
    """A T_1 and the new transformers that fit its labels, or those that fit f."""

    function: int  # its seed
    size: int  # of the training set
    sample: int  # which training set
    variant: str = "text"
    n: int = 10
    dim: int = 128
    batch: int = 1024
    steps: int = 10_000
    rate: float = 3e-4
    refits: int = 5

    @property
    def models(self) -> int:
        """How many are trained."""
        return self.refits + (self.size < 2**self.n)


def grid(functions: int, samples: int, sizes: Sequence[int], whole: int, **more: Any) -> list[Spec]:
    """Every function with so many training sets of each size, and `whole` times as it is."""
    learned = [Spec(f, size, k, **more) for size in sizes for f in range(functions) for k in range(samples)]
    return learned + [Spec(f, 2 ** learned[0].n, k, **more) for f in range(functions) for k in range(whole)]


SIZES, SAMPLES = (128, 256, 512), 10
QUICK: dict[str, Any] = dict(n=4, dim=8, batch=16, steps=20, rate=3e-3, refits=1)
SMOKE = grid(2, 1, (4, 8), 1, **QUICK) + grid(1, 1, (4, 8), 1, variant="released", **QUICK)
SMALL = grid(5, 1, (8, 16, 32), 1, n=6, dim=32, batch=64, steps=250, rate=3e-3, refits=1)
PAPER = grid(10, SAMPLES, SIZES, 2) + grid(10, 1, SIZES, 1, variant="released", refits=2)


def training_set(spec: Spec) -> Tensor:
    """Which strings T_1 sees. Smaller sets of a function are parts of its larger ones."""
    return subset(2**spec.n, spec.size, seed=1000 * spec.function + spec.sample)


def seed_of(spec: Spec, model: int) -> int:
    """Of a model's first weights and batches: T_1 is number 0."""
    return int(counter.bits(spec.function, spec.size, spec.sample, torch.tensor(model))) & (2**40 - 1)


def job_of(spec: Spec, x: Tensor, labels: Tensor, model: int) -> Job:
    """One model that learns these strings' labels ±1, as 0 and 1."""
    seed = seed_of(spec, model)
    recipe = Recipe(spec.steps, None, rate=spec.rate, loss="shared-mse", arithmetic=ARITHMETIC[x.device.type])
    learner = Learner("random", spec.n, seed, spec.variant, dim=spec.dim)
    return Job(model_of(learner).to(x.device), Counted(Drawn(x, (1 + labels) / 2, spec.batch, seed)), recipe)


def trained(spec: Spec, jobs: list[Job], folder: Path | None) -> Stack:
    """Jobs of such a spec, all as one stack."""
    steps = spec.steps
    compile = worth_compiling(device_here(), len(jobs) * steps * spec.n * spec.dim)
    made = train_many(jobs, every=steps, folder=folder, keep=max(steps // 4, 1), compile=compile)
    return Stack([each.model for each in made])


def sharpness(clean: Tensor, nudged: Tensor, labels: Tensor) -> Sharpness:
    return {name: each.mean(0) for name, each in changes(clean, nudged, (1 + labels) / 2).items()}


def on(places: Tensor | slice, found: Sharpness, model: int, before: str = "", after: str = "") -> dict[str, float]:
    """A model's mean sharpness over these strings, as columns."""
    return {f"{before}{name}{after}": float(each[model, places].mean()) for name, each in found.items()}


def on_each_set(spec: Spec, found: Sharpness, model: int) -> dict[str, float]:
    """The same over every training set that a T_1 of the spec's function may have: halves, quarters and eighths."""
    sets = [replace(spec, size=2**spec.n // part, sample=k) for part in (8, 4, 2) for k in range(SAMPLES)]
    each = [on(training_set(one), found, model, after=f"_on_{one.size}_{one.sample}") for one in sets]
    return {name: value for columns in each for name, value in columns.items()}


def run_together(specs: Sequence[Spec], folder: Path | None) -> list[list[dict[str, Any]]]:
    """First every T_1, then all new transformers."""
    device, whole = device_here(), slice(None)
    x = cube.points(specs[0].n, dtype=torch.float32, device=device)
    chosen = [training_set(spec).to(device) for spec in specs]
    truth = torch.stack([cube.random_function(spec.function)(x) for spec in specs])
    labels, first = truth, [{"first_mse": 0.0, "first_accuracy": 1.0} for _ in specs]
    learned = specs[0].size < len(x)  # and so is every other's, trained as one program
    if learned:
        jobs = [job_of(spec, x[own], f[own], 0) for spec, own, f in zip(specs, chosen, truth, strict=True)]
        said, nudged = answers(trained(specs[0], jobs, folder and folder / "first"), x)
        labels = 1 - 2 * (said <= 0.5).to(x)
        error, there = (said - (1 + truth) / 2).square(), sharpness(said, nudged, labels)
        first = [
            {
                "first_mse": float(error[i, own].mean()),
                "first_accuracy": float((labels[i, own] == truth[i, own]).double().mean()),
                **on(whole, there, i, before="first_"),
                **on(own, there, i, before="first_train_"),
            }
            for i, own in enumerate(chosen)
        ]
    jobs = [job_of(spec, x, each, 1 + k) for spec, each in zip(specs, labels, strict=True) for k in range(spec.refits)]
    stack = trained(specs[0], jobs, folder and folder / "second")
    clean, nudged = answers(stack, x)
    fitted = labels.repeat_interleave(specs[0].refits, 0)
    error, there = (clean - (1 + fitted) / 2).square(), sharpness(clean, nudged, fitted)
    norms = stacked_norm(stack.weights, skip=POSITIONS)
    found = []
    for i, (spec, own) in enumerate(zip(specs, chosen, strict=True)):
        known = {
            "true_sensitivity": cube.average_sensitivity(truth[i].cpu()),
            "sensitivity": cube.average_sensitivity(labels[i].cpu()),
            "agreement": float((labels[i] == truth[i]).float().mean()),  # over all strings, seen or not
            **first[i],
        }
        rows = []
        for refit in range(spec.refits):
            k = i * spec.refits + refit
            row = {"refit": refit, **known, "mse": float(error[k].mean()), "norm": norms[k]}
            row |= on(whole, there, k) | on(own, there, k, before="train_")
            rows.append(row if learned else row | on_each_set(spec, there, k))
        found.append(rows)
    return found


def run(spec: Spec) -> list[dict[str, Any]]:
    return run_together([spec], None)[0]


def kind_of(spec: Spec) -> tuple[Any, ...]:
    """What specs have in common that are trained as one program."""
    return spec.variant, spec.size, spec.n, spec.dim, spec.batch, spec.steps, spec.refits


def fits(table: pd.DataFrame) -> Any:
    """Which rows are of a T_1 that fits its training set, by its variant's rule."""
    return (table.first_mse <= CONVERGED).where(table.variant == "text", table.first_accuracy == 1)


def converged(table: pd.DataFrame) -> Any:
    """The new transformers that fit their labels, of a T_1 that fits its training set."""
    return table.loc[(table.mse <= CONVERGED) & fits(table)]


def is_true(table: Any) -> Any:
    """Which rows are of f itself."""
    return table["size"] == 2**table.n


def below(differences: pd.DataFrame) -> Estimate:
    """The share of columns whose mean over functions, the rows, is below 0: at least those whose 95 % t-interval is, at
    most those whose is not above. A column with fewer than two functions may be either."""
    if differences.empty:
        return unknown((0.0, 1.0))
    found = [average(differences[size].dropna()) for size in differences]
    low = sum(each is not None and each.value + each.half_width < 0 for each in found)
    high = sum(each is None or each.value - each.half_width <= 0 for each in found)
    value = float((differences.mean() < 0).mean())
    return Estimate(value, low / len(found), high / len(found), n=int(differences.count().min()))


def by_size(values: Any, rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The means of a column over training sets: a row a function, a column a size, also where none of it counts."""
    sizes = sorted(table.loc[~is_true(table), "size"].unique())
    return values.groupby([rows["function"], rows["size"]]).mean().unstack().reindex(columns=sizes)


def less_sensitive(table: pd.DataFrame) -> Estimate:
    """T_1 less than f, at each training size."""
    rows: Any = table.loc[~is_true(table) & fits(table)]
    return below(by_size(rows.sensitivity - rows.true_sensitivity, rows, table))


def in_order(table: pd.DataFrame) -> Estimate:
    """T_1 less than T_1 from the next larger training set."""
    rows: Any = table.loc[~is_true(table) & fits(table)]
    return below(-by_size(rows.sensitivity, rows, table).diff(axis=1).iloc[:, 1:])


def flatter(table: pd.DataFrame, column: str, before: str = "") -> Estimate:
    """New transformers for T_1 less sharp than those for f, at each training size: on the whole cube, or, `before` the
    column "train_", both on T_1's training set."""
    rows = converged(table)
    true, rows = rows[is_true(rows)].groupby("function").mean(numeric_only=True), rows[~is_true(rows)]
    names = [
        f"{column}_on_{size}_{k}" if before else column for size, k in zip(rows["size"], rows["sample"], strict=True)
    ]
    there = [true[name].get(f, math.nan) for f, name in zip(rows["function"], names, strict=True)]
    return below(by_size(rows[before + column] - there, rows, table))


def alike(table: pd.DataFrame, column: str) -> Estimate:
    """Sharpness on the training set over that on the whole cube: the mean over functions, with its t-interval."""
    rows = converged(table)
    rows = rows[~is_true(rows)]
    return mean((rows[f"train_{column}"] / rows[column]).groupby(rows.function).mean(), POSITIVE)


def stated(column: str) -> list[tuple[str, Callable[[pd.DataFrame], Estimate], float]]:
    """What the paper states, sharpness being this column, and with which tolerance."""
    return [
        ("T_1 is less sensitive than f", less_sensitive, 0.0),
        ("T_1 is less sensitive from fewer strings", in_order, 0.0),
        ("T_1 is less sharp than f", partial(flatter, column=column), 0.0),
        ("T_1 is less sharp than f on its training set", partial(flatter, column=column, before="train_"), 0.0),
        ("T_1's sharpness on its training set over that on the cube", partial(alike, column=column), 0.1),
    ]


# The paper states these without numbers. That something is lower on average is to hold at every training size, a share
# of 1; "almost the same" is a ratio within 10 %.
CLAIMS = [
    Claim(f"{claim} ({variant})", 1, of_variant(variant, measure), tolerance, resolution=0.1)
    for variant, column in SHARPNESS.items()
    for claim, measure, tolerance in stated(column)
]

DEPARTURES = [
    "How T_1 is trained is not said. As in the released code, each of its batches is 1,024 strings drawn with "
    "replacement from the training set, for the 10,000 steps of Table 1; new transformers draw from the whole cube.",
    "A new transformer counts if its MSE on the whole cube is at most 1e-3. A T_1 counts if its MSE on its training "
    "set is, as 7.1 says of all runs; in the variant `released` if it labels that set without a mistake, as there.",
    "The variant `released` is judged by the rise of the error, as there, that of the text by Eq. 15.",
    "Training sets are nested: those of 128 and 256 strings are parts of one of 512. The paper samples them and does "
    "not say how. Means are the same; what is compared between sizes differs less by chance.",
    "The text compares with transformers that fit f. The released code fits in its place other random functions, which "
    "agree with f on 256 training strings: as sensitive on average, but not f. We fit f, in both variants.",
    "The released plots multiply sharpness on the cube by four and that on the training set not: Figure 15 compares "
    "them as they should be only if neither was. Ours are both in units of ±1. There, sharpness on the training set "
    "is from 100 draws of noise and on the cube from 10; here both are from 10.",
    "Ten new transformers for each f, as the paper gives no number. The released model has all functions, but one "
    "training set of each size and two new transformers of each.",
    "The rule for 'less sharp' was chosen after a look at the small tier, where a share of functions and sizes in "
    "place of means over functions had not held: verdicts at the small tier are therefore no test of it.",
    "The released code also has T_1 from all 1,024 strings, and leaves it out of its figures. Here that size is f.",
    "Of the networks of the text's model that fit T_1, 471, 471 and 432 of 500 converge (128, 256 and 512 strings), "
    "and 80 of 100 of those that fit f. Those of f that do not are the sharper ones (a median of 1.48 against 1.39), "
    "so that to leave them out makes f look flatter, not T_1.",
    "Sharpness on the training set is 'almost the same', says the paper: it is higher than on the cube, by 4 % (3.6 to "
    "4.7 %; the released model 3 %, 1.8 to 4.7 %), which is inside our tolerance and yet more than chance.",
    "Training on a GPU is in tf32, of which the paper does not speak; all is measured in float32.",
    "The time that the runs kept with teeter are said to have taken is too short: of groups of runs that were "
    "interrupted and resumed, some have only the time since.",
]


def figure(table: pd.DataFrame) -> Figure:
    """Sharpness, each variant's own, over sensitivity (Figure 4); on the training set over the cube (Figure 15)."""
    from matplotlib.figure import Figure

    variants = [name for name in VARIANTS if (table.variant == name).any()]
    drawing = Figure(figsize=(6.4, 0.4 + 2.9 * len(variants)), layout="constrained")
    panels = drawing.subplots(len(variants), 2, squeeze=False)
    for (left, right), variant in zip(panels, variants, strict=True):
        every: Any = table.loc[table.variant == variant]
        kept = converged(every)
        for i, size in enumerate(sorted(every["size"].unique())):
            rows, true = kept[kept["size"] == size], size == 2 ** every.n.max()
            colour, name = ("0.15", "$f$ itself") if true else (f"C{i}", f"$T_1$ from {size}")
            _cloud(left, rows, "sensitivity", SHARPNESS[variant], colour, name)
            if not true:
                _cloud(right, rows, SHARPNESS[variant], f"train_{SHARPNESS[variant]}", colour, "")
        left.set(xlabel="average sensitivity", ylabel="sharpness on the whole cube")
        left.set_xlim(0, 0.6 * every.n.max())  # random functions have n / 2
        for axes in (left, right):
            axes.set_ylim(bottom=0)
        left.set_title(f"{variant}: {len(every) - len(kept)} of {len(every)} runs discarded", loc="left")
        left.legend(loc="upper left", handletextpad=0.1, borderpad=0.3, fontsize=8)
        right.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
        right.set(xlabel="sharpness on the whole cube", ylabel="sharpness on the training set")
        right.set_xlim(left=0)
        right.set_title("line: equal", loc="left")
    return drawing


def _cloud(axes: Axes, rows: Any, across: str, up: str, colour: str, label: str) -> None:
    """Every model as a dot, and the mean over functions with its standard error doubled."""
    axes.plot(rows[across], rows[up], "o", color=colour, alpha=0.45, markersize=3, markeredgewidth=0)
    if rows.empty:
        axes.plot([], [], "o", color=colour, markersize=5, label=f"{label}: none" if label else None)
        return
    means = rows.groupby("function")[[across, up]].mean()
    centre, doubt = means.mean(), (2 * means.std() / len(means) ** 0.5).fillna(0)
    ends = {"xerr": doubt[across], "yerr": doubt[up]}
    look: dict[str, Any] = {"color": colour, "markersize": 6, "markeredgecolor": "white", "zorder": 3}
    axes.errorbar(centre[across], centre[up], **ends, fmt="o", **look, label=label or None)


STUDY = Study(
    name="hahn2024/generalization",
    paper="hahn2024",
    where="Section 7.2, Figures 4 and 15",
    title="What transformers make of random functions",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=Together(key=kind_of, run=run_together, most=50),
)
