"""Is it dropout that makes the transformers of V's code so steady?

The released scripts give ViT-small a dropout of 0.1, on its embedding too; V's text names none, and in all other
studies here it has none. So it is trained with that dropout, on CIFAR-10 and on Fashion-MNIST, where V's number for the
ViT comes out in none of the ways that were tried (`fashion`). Trained, a model is asked without dropout, as ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from teeter.measure import Estimate
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import cifar10, fashion
from teeter.studies.vasudeva2025.over_epochs import at_the_end, beside, curves, told
from teeter.studies.vasudeva2025.vision import DROPOUT, TOOK, Seen, of, run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

WITH, WITHOUT = {"training": "dropout"}, {"training": ""}


def both(specs: list[Seen]) -> list[Seen]:
    """The ViT's runs as they are, and the same with dropout."""
    plain = [spec for spec in specs if spec.model == "vit-small"]
    return plain + [replace(spec, training="dropout") for spec in plain]


SMOKE, SMALL = both(cifar10.SMOKE), both(cifar10.SMALL)
PAPER = [
    *both(cifar10.PAPER),
    *(replace(spec, training="dropout") for spec in fashion.PAPER if spec.model == fashion.VIT),
]


def in_both(table: pd.DataFrame) -> Any:
    """The rows on those images that were learned in either way."""
    return table.loc[table["data"].isin(of(table, **WITHOUT)["data"])]


def ratio(table: pd.DataFrame) -> Estimate | None:
    return beside(WITH, WITHOUT)(in_both(table))


CLAIMS = [
    told(
        "Fashion-MNIST, ViT-small with dropout: sensitivity at the end of training",
        fashion.PUBLISHED[fashion.VIT],
        at_the_end("fashion-mnist", **WITH),
    ),
    told(
        "CIFAR-10, ViT-small with dropout: sensitivity at the end of training",
        cifar10.PUBLISHED["vit-small"],
        at_the_end("cifar10", **WITH),
    ),
    Claim(
        "ViT-small with dropout over without, at equal training accuracy: log10 of the ratio (no prediction; "
        "yardstick: within a factor of 2)",
        None,
        ratio,
        allows=(-0.3, 0.3),
    ),
]

DEPARTURES = [
    "The runs without dropout are those of the study of CIFAR-10, and its departures hold here; on Fashion-MNIST they "
    "are in the study of that name, and are not run again.",
    f"Dropout is {DROPOUT:g} wherever the library that the released code takes ViT-small from has any: on the "
    "embedding, on attention and on what it puts out, and twice in the feed-forward part of every layer.",
    "The released code's sharpness is of a copy in training mode, whose dropout counts as sharpness: that is not "
    "measured.",
]


def figure(table: pd.DataFrame) -> Figure:
    return curves(in_both(table), [("without dropout", WITHOUT), ("with dropout", WITH)])


STUDY = Study(
    name="vasudeva2025/dropout",
    paper="vasudeva2025",
    where="Section 5 (the released code)",
    title="A ViT's sensitivity with dropout",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    shares=cifar10.STUDY,
    demo="smoke",
    took=TOOK,
)
