"""Tables of V's studies of images, made by hand: what its models come to, epoch by epoch and under every noise."""

import pandas as pd

from teeter.data import FAMILIES
from teeter.studies.vasudeva2025 import (
    cifar10,
    depth_heads,
    dropout,
    fashion,
    flatness,
    mnist,
    optimizer,
    random_noise,
    robustness,
    svhn,
    variance,
)
from teeter.studies.vasudeva2025.looks import LEVELS
from teeter.studies.vasudeva2025.settings import SETTINGS
from teeter.studies.vasudeva2025.vision import CORRUPTIONS, RELEASED

ALL = [cifar10, fashion, mnist, svhn, variance, random_noise, optimizer, depth_heads, dropout, robustness, flatness]
FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
SPEC = dict(model="", seed=0, optimizer="sgd", training="", layers=0, heads=0)


def made(kinds, data="cifar10", seeds=3, wobble=0.02):
    """A table in which every kind has its `sensitivity` from the first epoch on, each seed a little more."""
    rows = []
    for number, kind in enumerate(kinds):
        kind = dict(power=1.0, whole=0.01, shop=1.0, shpred=0.1, accuracy=0.5) | kind
        for seed in range(seeds):
            factor = 1 + wobble * (seed - 1)
            own = {**SPEC, "data": data, "run": f"{number} {seed}", "seed": seed}
            own |= {name: kind[name] for name in SPEC if name in kind}
            s = kind["sensitivity"] * factor
            for epoch, accuracy in enumerate((0.1, 0.95, 1.0)):
                row = dict(about="epoch", epoch=epoch, step=epoch, frequent=0.1, train_accuracy=accuracy)
                row["test_accuracy"] = 0.8 * accuracy
                rows.append(
                    {**own, **row, "train_loss": 2.0 - epoch, "test_loss": 2.0, "sensitivity": s if epoch else 0.9}
                )
            noises = [("patch", level, min(s * level ** kind["power"], 1.0)) for level in LEVELS]
            whole = kind["whole"] * factor, kind.get("quiet", kind["whole"]) * factor
            noises += [("whole", sigma2, each) for sigma2, each in zip((0.025, 0.025**2), whole, strict=True)]
            for noise, level, sensitivity in noises:
                row = dict(noise=noise, sigma2=level * (SETTINGS[data].sigma2 if noise == "patch" else 1))
                rows.append({**own, **row, "about": "noise", "sensitivity": sensitivity})
                if (noise, level) != ("patch", 1.0):
                    row["about"] = "meanwhile"
                    rows += [{**own, **row, "epoch": i, "sensitivity": sensitivity if i else 0.9} for i in range(3)]
            scattered = dict(about="noise", noise="scattered", sigma2=SETTINGS[data].sigma2 ** 2)
            rows.append({**own, **scattered, "sensitivity": kind.get("scattered", kind["sensitivity"]) * factor})
            for rho, times in ((0.005, 1), (0.05, kind.get("louder", 1))):
                row = dict(about="weights", rho=rho, shop=kind["shop"] * factor * times)
                rows.append({**own, **row, "shpred": kind["shpred"] * factor})
            if SETTINGS[data].corrupted:
                where = [
                    (name, severity) for names in (CORRUPTIONS, RELEASED) for name in names for severity in (1, 2, 3)
                ]
                accuracies = [
                    dict(accuracy=kind["accuracy"] * factor, corruption=a, severity=b) for a, b in dict.fromkeys(where)
                ]
                rows += [
                    {**own, "about": "corruption", "family": FAMILY[row["corruption"]], **row} for row in accuracies
                ]
    return pd.DataFrame(rows)


def verdicts(study, table):
    return [claim.judge(table).verdict for claim in study.CLAIMS]


def as_published(study):
    """What V prints, as a table on V's images."""
    data = {cifar10: "cifar10", fashion: "fashion-mnist", svhn: "svhn"}[study]
    return [dict(model=model, sensitivity=value) for model, value in study.PUBLISHED.items()], data


def five(vit, other, vit_power=0.5, power=1.0):
    kinds = [dict(model=model, sensitivity=other, power=power) for model in variance.OTHERS]
    return kinds + [dict(model=model, sensitivity=vit, power=vit_power) for model in variance.VITS]


def idle(table, models):
    """The same, where these models have learned nothing: one answer is right in a tenth."""
    table.loc[(table["about"] == "epoch") & table["model"].isin(models), "train_accuracy"] = 0.12
    return table


def figure_9(cnns=0.5, vits=0.6, others=0.7, sensitivity=0.003):
    kinds = [dict(model=model, sensitivity=0.1, accuracy=cnns) for model in ("densenet121", "resnet18")]
    kinds += [dict(model=model, sensitivity=0.01, accuracy=vits) for model in ("vit-small", "vit-simple")]
    return kinds + [
        dict(model="vit-small", training=training, sensitivity=sensitivity, accuracy=others)
        for training in robustness.TRAININGS
    ]
