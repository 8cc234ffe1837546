"""Is it the optimizer that makes a transformer less sensitive?

V A.3 and Figure 14: ViT-small learns CIFAR-10 with SGD, and with Adam, whose rate of 0.002 is halved every eight
epochs. The sensitivities are quite similar, Adam's slightly higher.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import cifar10
from teeter.studies.vasudeva2025.over_epochs import beside, curves
from teeter.studies.vasudeva2025.vision import TOOK, Seen, run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

RATE, EPOCHS = 0.002, 24


def both(specs: list[Seen]) -> list[Seen]:
    """The ViT's runs with SGD, and the same with Adam, though no longer than they need."""
    sgd = [spec for spec in specs if spec.model == "vit-small"]
    return sgd + [replace(spec, optimizer="adam", rate=RATE, epochs=min(spec.epochs, EPOCHS)) for spec in sgd]


SMOKE, SMALL, PAPER = both(cifar10.SMOKE), both(cifar10.SMALL), both(cifar10.PAPER)

CLAIMS = [
    Claim(
        "Adam over SGD at equal training accuracy: log10 of the ratio (slightly higher; rule: 1.4 times, within a "
        "factor of 2)",
        0.15,
        beside({"optimizer": "adam"}, {"optimizer": "sgd"}),
        tolerance=0.3,
        strict=True,
    )
]

DEPARTURES = [
    "The runs with SGD are those of the study of CIFAR-10, and its departures hold here.",
    "V gives no numbers: 'quite similar' and 'slightly higher' are taken to be 1.4 times, within a factor of 2.",
    "The runs with Adam have 24 epochs, three stretches of eight at a rate (small tier: 14): they are compared at "
    "equal accuracy.",
]


def figure(table: pd.DataFrame) -> Figure:
    return curves(table, [("SGD", {"optimizer": "sgd"}), ("Adam", {"optimizer": "adam"})])


STUDY = Study(
    name="vasudeva2025/optimizer",
    paper="vasudeva2025",
    where="A.3, Figure 14",
    title="A ViT's sensitivity with SGD and with Adam",
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
