"""Are transformers less sensitive than convolutions on house numbers?

V A.3 and Figure 19: ResNet-18 and a ViT learn SVHN as in the experiments on CIFAR-10. The images are not in any
package: the paper tier runs where the user's own files are (docs/data.md).
"""

from __future__ import annotations

from functools import partial

from teeter.studies.study import Study
from teeter.studies.vasudeva2025 import cifar10
from teeter.studies.vasudeva2025.over_epochs import beside, by_model, printed, within
from teeter.studies.vasudeva2025.vision import TOGETHER, TOOK, Seen, run

__all__ = ["STUDY"]

PUBLISHED = {"resnet18": 0.0516, "vit-small-svhn": 0.0147}
RATES = {"resnet18": 0.0015, "vit-small-svhn": 0.1}
TINY = {"resnet18": 0.01, "vit-small": 0.1}
EPOCHS, SEEDS = 30, 3

SMOKE = [Seen("digits", model, 0, rate, epochs=1, images=200) for model, rate in TINY.items()]
SMALL = [spec for spec in cifar10.SMALL if spec.model in TINY]
PAPER = [Seen("svhn", model, seed, rate, EPOCHS) for seed in range(SEEDS) for model, rate in RATES.items()]

CLAIMS = [
    *printed("svhn", PUBLISHED),
    within(
        "ResNet-18 over ViT-small at equal training accuracy",
        PUBLISHED["resnet18"] / PUBLISHED["vit-small-svhn"],
        beside({"model": "resnet18"}, {"model": "vit-small-svhn"}, "svhn"),
    ),
]

DEPARTURES = [
    "All departures of the study of CIFAR-10 are departures here; both models have 30 epochs.",
    "V counts 60,000 training images and 10,000 test images; the files have 73,257 and 26,032, and all are used.",
    "Below the paper tier these are runs of the study of CIFAR-10: on its images, or at the smoke tier on digits.",
]


STUDY = Study(
    name="vasudeva2025/svhn",
    paper="vasudeva2025",
    where="A.3, Figure 19",
    title="Sensitivity while SVHN is learned",
    about=__doc__ or "",
    revision=2,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=partial(by_model, published=("svhn", PUBLISHED)),
    claims=CLAIMS,
    departures=DEPARTURES,
    together=TOGETHER,
    shares=cifar10.STUDY,  # below the paper tier they are the same runs
    demo="smoke",
    took=TOOK,
)
