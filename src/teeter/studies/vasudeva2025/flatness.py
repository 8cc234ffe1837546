"""Does a transformer trained to be less sensitive lie in a flatter minimum?

V 7.2 and Table 2: ViT-small learns CIFAR-10 with and without the penalty on its sensitivity (7.1). Weights get Gaussian
noise of standard deviation 0.005; ShOp is the mean absolute change of the outputs, ShPred how often the answer changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teeter.studies.over_runs import POSITIVE, average, mean, ratio
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import cifar10, robustness
from teeter.studies.vasudeva2025.looks import RHOS
from teeter.studies.vasudeva2025.over_epochs import Measured, told
from teeter.studies.vasudeva2025.vision import TOOK, has, learners, of, run

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
NOISES = {RHOS[0]: "weight noise 0.005", RHOS[1]: "weight noise 0.05 as in the released code"}
SMOKE, SMALL, PAPER = (
    [spec for spec in specs if spec.model == "vit-small" and spec.training in WORDS]
    for specs in (robustness.SMOKE, robustness.SMALL, robustness.PAPER)
)


def sharp(table: pd.DataFrame, training: str, column: str, rho: float = RHOS[0]) -> Any:
    """Of every run of that training that has learned something."""
    return of(learners(table), about="weights", training=training, rho=rho)[column]


def _alone(training: str, column: str, rho: float) -> Measured:
    return lambda table: mean(sharp(table, training, column, rho), POSITIVE) if has(table, "cifar10") else None


def _flatter(column: str) -> Measured:
    return lambda table: ratio(average(sharp(table, "penalty", column)), average(sharp(table, "", column)), POSITIVE)


def _flatter_claim(column: str) -> Claim:
    """The penalty takes part of the sharpness away: at least a fifth as much as in V, surely any, whatever the data."""
    published = TABLE_2["penalty", column] / TABLE_2["", column]
    said = f"{COLUMNS[column]} with the penalty over without (Table 2; rule: at least a fifth of V's reduction)"
    return Claim(said, published, _flatter(column), allows=(0.0, 1 - 0.2 * (1 - published)))


CLAIMS = [
    *(
        told(f"{COLUMNS[column]} {WORDS[training]}, {NOISES[rho]} (Table 2)", value, _alone(training, column, rho))
        for rho in RHOS
        for (training, column), value in TABLE_2.items()
    ),
    *(_flatter_claim(column) for column in COLUMNS),
]

DEPARTURES = [
    "These are runs of the study of robustness, and its departures hold here.",
    "V's definitions are of a scalar output and a sign. With ten logits, ShOp is the sum of the absolute changes of "
    "all (as in the released code), and ShPred is about the largest one.",
    "The text has weight noise of standard deviation 0.005, the released script 0.05: Table 2 is compared with both. "
    "That script also puts the nudged copy into training mode, so that dropout counts as sharpness; ours has none.",
    "All models' weights are nudged by the same five draws, on 2,000 training images: the draws are what the numbers "
    "depend on.",
    "The penalty mixed with the loss, as released, is not run at the paper tier.",
]


def figure(table: pd.DataFrame) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 4.6), layout="constrained")
    panels = drawing.subplots(2, 2)
    trained = [training for training in WORDS if training in set(table["training"])]
    for axes, (rho, column) in zip(panels.flat, ((rho, column) for rho in RHOS for column in COLUMNS), strict=True):
        for i, training in enumerate(trained):
            found = sharp(table, training, column, rho)
            axes.bar(i, found.mean(), 0.7, color=f"C{i}", label=WORDS[training])
            axes.plot([i] * len(found), found, "o", color="0.2", markersize=3)
            if (training, column) in TABLE_2 and has(table, "cifar10"):
                label = "V, Table 2" if training else None
                axes.plot([i - 0.35, i + 0.35], [TABLE_2[training, column]] * 2, color="black", ls=":", label=label)
        axes.set_xticks([])
        axes.set_ylabel(COLUMNS[column])
        axes.set_title(f"weight noise of deviation {rho:g}", fontsize=9)
    drawing.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    return drawing


STUDY = Study(
    name="vasudeva2025/flatness",
    paper="vasudeva2025",
    where="7.2, Table 2",
    title="Sharpness with and without the penalty",
    about=__doc__ or "",
    revision=2,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    shares=cifar10.STUDY,
    demo="smoke",
    took=TOOK,
)
