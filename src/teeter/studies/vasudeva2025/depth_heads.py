"""Does a transformer's sensitivity depend on its depth or its number of heads?

V A.3: ViT-small learns CIFAR-10 with other depths and numbers of heads than the 8 and 32 of the main experiments.
Accuracy on the training set and sensitivity remain the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from teeter.measure import Estimate
from teeter.studies.over_runs import mean
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025 import cifar10
from teeter.studies.vasudeva2025.over_epochs import curves, logs
from teeter.studies.vasudeva2025.settings import SETTINGS
from teeter.studies.vasudeva2025.vision import TOOK, Seen, matched, run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY"]

SHAPES = ((0, 0), (4, 0), (0, 8))  # layers and heads; 0: as in the main experiments, 8 and 32
EPOCHS = 20
SMALL_SHAPES = ((0, 0), (1, 0), (0, 1))  # where they are 3 and 4
TINY_SHAPES = ((0, 0), (1, 0), (0, 4))  # of digits, where they are 2 and 2


def shaped(specs: list[Seen], shapes: tuple[tuple[int, int], ...]) -> list[Seen]:
    """The ViT's runs, and those of other shapes, though no longer than they need."""
    usual, *others = shapes
    assert usual == (0, 0)
    own = [spec for spec in specs if spec.model == "vit-small"]
    short = [replace(spec, epochs=min(spec.epochs, EPOCHS)) for spec in own]
    return own + [replace(spec, layers=layers, heads=heads) for spec in short for layers, heads in others]


SMOKE, SMALL = shaped(cifar10.SMOKE, TINY_SHAPES), shaped(cifar10.SMALL, SMALL_SHAPES)
PAPER = shaped(cifar10.PAPER, SHAPES)


def furthest(table: pd.DataFrame) -> Estimate:
    """log10 of the largest over the smallest sensitivity of all shapes, seed by seed, at equal training accuracy."""
    rows = matched(table)
    shapes = len(table[["layers", "heads"]].drop_duplicates())
    each = logs(rows.set_index("seed")["sensitivity"]).groupby("seed")
    return mean((each.max() - each.min())[each.size() == shapes], (0.0, 4.0))


CLAIMS = [
    Claim(
        "largest over smallest sensitivity of all shapes at equal training accuracy: log10 of the ratio (the same; "
        "rule: at most a factor of 3)",
        0,
        furthest,
        tolerance=0.5,
        strict=True,
    )
]

DEPARTURES = [
    "The runs with 8 layers and 32 heads are those of the study of CIFAR-10, and its departures hold here.",
    "V's text does not list the depths and heads of its figure; beside 8 layers of 32 heads, ours are 4 layers, and 8 "
    "heads. These have 20 epochs: they are compared at equal accuracy. At the small tier it is 3 layers of 4 heads, "
    "and 1 layer, and 1 head, with 14 epochs each.",
    "V gives no numbers: 'remain the same' is taken to be within a factor of 3. Of several shapes with the same "
    "sensitivity, the largest and the smallest measured differ a little too.",
]


def figure(table: pd.DataFrame) -> Figure:
    found = table[["layers", "heads"]].drop_duplicates().to_numpy().tolist()
    sizes = SETTINGS[table["data"].iloc[0]].sizes.get("vit-small", {"layers": 8, "heads": 32})
    usual = sizes["layers"], sizes["heads"]
    shapes = sorted((layers or usual[0], heads or usual[1], layers, heads) for layers, heads in found)
    return curves(table, [(f"depth {a}, {b} head{'s' * (b > 1)}", {"layers": c, "heads": d}) for a, b, c, d in shapes])


STUDY = Study(
    name="vasudeva2025/depth-heads",
    paper="vasudeva2025",
    where="A.3",
    title="A ViT's sensitivity at other depths and numbers of heads",
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
