"""Does noise on the whole image tell transformers from convolutions as well?

V A.2 and Table 4: Gaussian noise of variance 0.025 on all pixels at once, beside noise of variance 1 on one patch. The
gap between ResNet-18 and ViT-small is much smaller under the former. (The table's lines about texts are in
`vasudeva2025/language`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teeter.studies.log_axis import logarithmic
from teeter.studies.over_runs import POSITIVE, mean
from teeter.studies.study import Study
from teeter.studies.vasudeva2025 import cifar10
from teeter.studies.vasudeva2025.over_epochs import NAMES, Measured, logs, told, within
from teeter.studies.vasudeva2025.vision import has, of, run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

MODELS = ("resnet18", "vit-small")
TABLE_4 = {
    ("resnet18", "whole"): 0.0172,
    ("resnet18", "patch"): 0.0827,
    ("vit-small", "whole"): 0.0082,
    ("vit-small", "patch"): 0.0050,
}
RATIOS = {noise: TABLE_4["resnet18", noise] / TABLE_4["vit-small", noise] for noise in ("whole", "patch")}
WORDS = {"whole": "on all pixels", "whole as released": "on all pixels as released", "patch": "on a patch"}
VARIANCES = {"whole": 0.025, "whole as released": 0.025**2, "patch": 1.0}
SMOKE, SMALL, PAPER = (
    [spec for spec in specs if spec.model in MODELS] for specs in (cifar10.SMOKE, cifar10.SMALL, cifar10.PAPER)
)


def place(noise: str) -> str:
    """What V's table has of this noise, which does not say how it is multiplied."""
    return noise.partition(" ")[0]


def under(table: pd.DataFrame, model: str, noise: str) -> Any:
    """Sensitivity at the end under one of these noises, by seed."""
    rows = of(table, about="noise", model=model, noise=place(noise), sigma2=VARIANCES[noise])
    return rows.set_index("seed")["sensitivity"]


def gaps(table: pd.DataFrame, noise: str) -> Any:
    """log10 of ResNet-18's sensitivity over ViT-small's, by seed."""
    return logs(under(table, "resnet18", noise)) - logs(under(table, "vit-small", noise))


def on_cifar10(measure: Measured) -> Measured:
    """Of other images V's numbers say nothing."""
    return lambda table: measure(table) if has(table, "cifar10") else None


CLAIMS = [
    *(
        told(
            f"{NAMES[model]}, noise {WORDS[noise]}: sensitivity (Table 4)",
            TABLE_4[model, place(noise)],
            on_cifar10(lambda table, model=model, noise=noise: mean(under(table, model, noise), POSITIVE)),
        )
        for model in MODELS
        for noise in WORDS
    ),
    *(
        within(
            f"noise {WORDS[noise]}: ResNet-18 over ViT-small at the end",
            RATIOS[place(noise)],
            on_cifar10(lambda table, noise=noise: mean(gaps(table, noise).dropna(), (-4.0, 4.0))),
        )
        for noise in WORDS
    ),
    within(
        "that ratio under noise on a patch, over that under noise on all pixels",
        RATIOS["patch"] / RATIOS["whole"],
        on_cifar10(lambda table: mean((gaps(table, "patch") - gaps(table, "whole")).dropna(), (-8.0, 8.0))),
    ),
]

DEPARTURES = [
    "These are the runs of the study of CIFAR-10, and its departures hold here.",
    "Sensitivity to noise on the whole image is from one noise on each of 10,000 images.",
    "The released code multiplies noise by its variance in place of the root: 0.025 is then a variance of 0.000625. "
    "Both are measured, and V's numbers compared with both; noise on a patch, of variance 1, is the same either way. "
    "This was added when three runs of ResNet-18 had been measured, whose sensitivities to the former were 0.52, 0.51 "
    "and 0.56; they are made anew since, to be measured both ways.",
]


def figure(table: pd.DataFrame) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes, words = drawing.subplots(), "sensitivity, training set"
    for i, model in enumerate(MODELS):
        for k, noise in enumerate(WORDS):
            found, at = under(table, model, noise), k + 0.2 * (2 * i - 1)
            axes.plot([at] * len(found), found, "o", color=f"C{i}", markersize=4)
            if (found == 0).any():  # which has no place on a logarithmic axis
                foot = axes.get_xaxis_transform()
                axes.plot(at, 0, "o", color=f"C{i}", markerfacecolor="none", clip_on=False, transform=foot)
                words = "sensitivity, training set\n(hollow: 0)"
            ends = [at - 0.12, at + 0.12]
            axes.plot(ends, [found.mean()] * 2, color=f"C{i}", label=None if k else f"{NAMES[model]}, mean")
            if has(table, "cifar10"):
                label = None if i or k else "V, Table 4"
                axes.plot(ends, [TABLE_4[model, place(noise)]] * 2, color="black", linestyle=":", label=label)
    axes.set_xlim(-0.5, len(WORDS) - 0.5)
    ticks = [f"{words}\nvariance {VARIANCES[noise]:.3g}" for noise, words in WORDS.items()]
    axes.set_xticks(range(len(WORDS)), ticks)
    logarithmic(axes, of(table, about="noise")["sensitivity"])
    axes.set_ylabel(words)
    drawing.legend(loc="outside lower center", ncols=3, fontsize=8.5)
    return drawing


STUDY = Study(
    name="vasudeva2025/random-noise",
    paper="vasudeva2025",
    where="A.2, Table 4",
    title="Noise on a whole image against noise on a patch",
    about=__doc__ or "",
    revision=2,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    shares=cifar10.STUDY,
    demo="smoke",
)
