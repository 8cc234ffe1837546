"""Does a transformer trained to be less sensitive lie in a flatter minimum?

V 7.2 and Table 2: ViT-small learns CIFAR-10 with and without the penalty on its sensitivity (7.1). Weights get Gaussian
noise of standard deviation 0.005; ShOp is the mean absolute change of the outputs, ShPred how often the answer changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teeter.measure import Estimate
from teeter.studies.over_runs import POSITIVE, average, mean, ratio
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import cifar10, robustness
from teeter.studies.vasudeva2025.over_epochs import told
from teeter.studies.vasudeva2025.vision import run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

TABLE_2 = {("", "shop"): 39.166, ("", "shpred"): 0.5346, ("penalty", "shop"): 9.025, ("penalty", "shpred"): 0.3982}
WORDS = {
    "": "without the penalty",
    "penalty": "with the penalty",
    "penalty as released": "with that of the released code",
}
COLUMNS = {"shop": "ShOp", "shpred": "ShPred"}
SMOKE, SMALL, PAPER = (
    [spec for spec in specs if spec.model == "vit-small" and spec.training in WORDS]
    for specs in (robustness.SMOKE, robustness.SMALL, robustness.PAPER)
)


def of(table: pd.DataFrame, training: str, column: str) -> Any:
    rows: Any = table.loc[(table["about"] == "weights") & (table["training"] == training)]
    return rows[column]


def _alone(training: str, column: str):
    def measure(table: pd.DataFrame) -> Estimate | None:
        return mean(of(table, training, column), POSITIVE) if (table["data"] == "cifar10").any() else None

    return measure


def _flatter(column: str):
    return lambda table: ratio(average(of(table, "penalty", column)), average(of(table, "", column)), POSITIVE)


CLAIMS = [
    *(
        told(f"{COLUMNS[column]} {WORDS[training]} (Table 2)", value, _alone(training, column))
        for (training, column), value in TABLE_2.items()
    ),
    *(
        Claim(
            f"{COLUMNS[column]} with the penalty over without (Table 2; rule: less, whatever the data)",
            TABLE_2["penalty", column] / TABLE_2["", column],
            _flatter(column),
            tolerance=1 - TABLE_2["penalty", column] / TABLE_2["", column],
            resolution=0.25,
        )
        for column in COLUMNS
    ),
]

DEPARTURES = [
    "These are runs of the study of robustness, and its departures hold here.",
    "V's definitions are of a scalar output and a sign. With ten logits, ShOp is the sum of the absolute changes of all "
    "(as in the released code), and ShPred is about the largest one.",
    "The text has weight noise of standard deviation 0.005 and so have we; the released script has 0.05, and puts the "
    "nudged copy into training mode with fresh statistics, so that dropout counts as sharpness.",
    "All weights are nudged by the same five draws, on up to 10,000 training images.",
]


def figure(table: pd.DataFrame) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 3.0), layout="constrained")
    kinds = [training for training in WORDS if (table["training"] == training).any()]
    for axes, column in zip(drawing.subplots(1, 2), COLUMNS, strict=True):
        for i, training in enumerate(kinds):
            found = of(table, training, column)
            axes.bar(i, found.mean(), 0.7, color=f"C{i}", label=WORDS[training])
            axes.plot([i] * len(found), found, "o", color="0.2", markersize=3)
            if (training, column) in TABLE_2 and (table["data"] == "cifar10").any():
                axes.plot([i - 0.35, i + 0.35], [TABLE_2[training, column]] * 2, color="black", linestyle=":")
        axes.set_xticks([])
        axes.set_ylabel(COLUMNS[column])
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)
    return drawing


STUDY = Study(
    name="vasudeva2025/flatness",
    paper="vasudeva2025",
    where="7.2, Table 2",
    title="Sharpness with and without the penalty",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    shares=cifar10.STUDY,
)
