"""Are transformers less sensitive than MLPs?

V section 5 and Figure 18: a small ViT, a CNN and two MLPs learn Fashion-MNIST with SGD. A patch of 4 x 4 pixels of a
training image gets Gaussian noise of variance 5.
"""

from __future__ import annotations

from functools import partial

from teeter.studies.study import Study
from teeter.studies.vasudeva2025.over_epochs import NAMES, beside, by_model, printed, within
from teeter.studies.vasudeva2025.vision import TOGETHER, TOOK, Seen, run

__all__ = ["STUDY"]

PUBLISHED = {"mlp-leaky-relu": 0.0559, "mlp-sigmoid": 0.0505, "cnn": 0.0453, "vit-small-fashion-mnist": 0.0098}
RATES = {"mlp-leaky-relu": 0.1, "mlp-sigmoid": 0.5, "cnn": 0.005, "vit-small-fashion-mnist": 0.1}
VIT = "vit-small-fashion-mnist"
TINY = {"mlp-leaky-relu": 0.1, "mlp-sigmoid": 0.5, "cnn": 0.02, "vit-small": 0.1}
EPOCHS, SEEDS = 40, 3

SMOKE = [Seen("digits", model, 0, rate, epochs=1, images=200) for model, rate in TINY.items()]
SMALL = [
    Seen("fashion-mnist", model, seed, rate, epochs, images=1000)
    for seed in (0, 1)
    for (model, rate), epochs in zip({**RATES, "cnn": 0.02}.items(), (12, 24, 12, 9), strict=True)
]
PAPER = [Seen("fashion-mnist", model, seed, rate, EPOCHS) for seed in range(SEEDS) for model, rate in RATES.items()]

CLAIMS = [
    *printed("fashion-mnist", PUBLISHED),
    *(
        within(
            f"{NAMES[model]} over ViT-small at equal training accuracy",
            PUBLISHED[model] / PUBLISHED[VIT],
            beside({"model": model}, {"model": VIT}, "fashion-mnist"),
        )
        for model in PUBLISHED
        if model != VIT
    ),
]

DEPARTURES = [
    "V prints single runs without an error and does not say how many epochs they have. Ours have 40, and three "
    "seeds; at the small tier there are 1,000 images in batches of 20, 9 to 24 epochs, two seeds, and four times V's "
    "rate for the CNN. Ratios are taken where all runs have the same accuracy on the training set.",
    "Pixels are scaled to -1..1, as in the released code; the text does not say what the variance refers to.",
    "Sensitivity is estimated from one patch, drawn at random, of each of 10,000 training images, and from five of "
    "each at the end, where V takes every patch of 18,000 images five times. Accuracy and loss on the training set are "
    "of the same images, those on the test set of 5,000.",
    "The released code puts the noise not on a patch but on 16 pixels all over the image, and multiplies it by the "
    "variance, not by its root, so that its variance is 25: the models are measured like that too, and V's numbers "
    "compared with both. Rows also have the sensitivity to noise of 1/4 to 8 times V's variance; no claim rests on it.",
    "Two of V's four numbers come out, those of the MLPs, by a rule of within a half; with noise of half V's variance "
    "the CNN's would too (0.059), and the MLPs' still (0.034 and 0.039). The ViT's comes out at none of the six "
    "variances tried: it is at 0.024 with a quarter of V's, and V prints 0.0098. Less training would explain the CNN's "
    "too: up to its tenth epoch it is within a half (0.065, at an accuracy of 0.87), and so are the MLPs'. It does not "
    "explain the ViT's, whose mean is 0.034 or more at all 18 epochs measured from the first on. More than 40 were not "
    "tried; from epoch 22 to 40 the ViT's falls from 0.043 to 0.036.",
    "What else sets the released code apart does not explain the ViT's number: its variance alone would take it to "
    "0.047 to 0.050 (noise of variance 20 and 40 on a patch), its scattering to 0.183; and its script never steps its "
    "optimizer, but untrained the ViT changes no answer, where the MLPs have 0.224 and 0.090 and the CNN 0.206. Its "
    "ViT also has dropout, which the text does not name: that was not run.",
    "The text leaves open how the CNN's convolutions are padded (here not at all), its slope (0.01) and whether its "
    "two fully connected layers are two of 128 units or one and the head (here the latter).",
    "At equal training accuracy, 0.91 to 0.92, the MLP with LeakyReLU has 1.22 times the ViT's sensitivity (0.96 to "
    "1.56), that with sigmoid 1.41 times and the CNN 2.29 times; V's numbers, of the ends of trainings, have 4.6 to "
    "5.7 times. Of the MLPs one counts as reproduced and one not, since one interval just meets the edge of the rule: "
    "they hardly differ.",
    "How much less sensitive the ViT is hangs on the noise: at the end of training the MLP with LeakyReLU has 0.9 "
    "times its sensitivity at a variance of 1.25, 1.6 times at 5 and 5.0 times at 40, for the ViT's own rises to no "
    "more than 0.050; the CNN has 1.6, 2.6 and 7.6 times. To noise scattered over the image the ViT is as sensitive as "
    "the MLPs.",
    "On a GPU training is in bf16 and measuring in float32 (convolutions in tf32). The smoke tier has scikit-learn's "
    "digits.",
]


STUDY = Study(
    name="vasudeva2025/fashion",
    paper="vasudeva2025",
    where="Section 5, Figure 18",
    title="Sensitivity while Fashion-MNIST is learned",
    about=__doc__ or "",
    revision=3,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=partial(by_model, published=("fashion-mnist", PUBLISHED)),
    claims=CLAIMS,
    departures=DEPARTURES,
    together=TOGETHER,
    demo="smoke",
    took=TOOK,
)
