"""V's studies of images: settings of appendix D, and what claims say of tables made by hand."""

import pandas as pd
import pytest

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
from teeter.studies.vasudeva2025.over_epochs import NAMES
from teeter.studies.vasudeva2025.settings import NARROW, SETTINGS
from teeter.studies.vasudeva2025.vision import Seen, model_of
from tests.studies.image_tables import ALL, as_published, five, idle, made, verdicts


@pytest.mark.parametrize("study", [cifar10, fashion, svhn])
def test_published_sensitivities(study):
    kinds, data = as_published(study)
    assert set(verdicts(study, made(kinds, data))) == {"reproduced"}
    far = [
        dict(kind, sensitivity=min(10 * kind["sensitivity"], 1.0) if "vit" in kind["model"] else 0.9) for kind in kinds
    ]
    found = verdicts(study, made(far, data))
    told = 2 * len(kinds)  # under noise on a patch, and as the released code has it
    assert found[:told] == ["not reproduced"] * told
    same = verdicts(study, made([dict(kind, sensitivity=0.05) for kind in kinds], data))[told:]
    assert "not reproduced" in same
    released = verdicts(study, made([dict(kind, scattered=10 * kind["sensitivity"]) for kind in kinds], data))
    half = len(kinds)
    assert released == ["reproduced"] * half + ["not reproduced"] * half + ["reproduced"] * (len(released) - told)
    assert set(verdicts(study, made(kinds, data, seeds=1))) == {"undecided"}
    words = 6 if study is cifar10 else 0  # V's words on CIFAR-10 are judged on any images, its numbers are not
    elsewhere = verdicts(study, made(kinds, "digits"))
    assert elsewhere == ["not run at this tier"] * (len(elsewhere) - words) + ["reproduced"] * words


@pytest.mark.parametrize(("ratio", "verdict"), [(2.2, "reproduced"), (1.9, "not reproduced"), (0.4, "not reproduced")])
def test_significantly_lower_is_by_a_factor_of_two(ratio, verdict):
    for data in ("cifar10", "cifar10-small"):
        assert verdicts(cifar10, made(five(0.01, 0.01 * ratio), data))[-6:] == [verdict] * 6
    one = [dict(kind, sensitivity=0.1) if kind["model"] == "convmixer" else kind for kind in five(0.01, 0.01 * ratio)]
    assert verdicts(cifar10, made(one))[-6:] == [verdict, verdict, "reproduced"] * 2


def test_small_models_of_cifar10():
    """V's own cut short, in all studies that share them, on as many images."""
    elsewhere = {study for study in ALL if {spec.data for spec in study.STUDY.specs("small")} != {"cifar10-small"}}
    assert elsewhere == {mnist, fashion}
    specs = {spec for study in set(ALL) - elsewhere for spec in study.STUDY.specs("small")}
    assert {spec.model for spec in specs} == set(cifar10.PUBLISHED) == set(NARROW)
    assert {(spec.images, spec.epochs) for spec in specs} == {(4_000, 14)}
    assert {spec.seed for spec in specs} == {0, 1, 2}
    sizes = {
        model: sum(p.numel() for p in model_of(Seen("cifar10-small", model, 0, 0.1, 1)).parameters())
        for model in NARROW
    }
    assert max(sizes.values()) == sizes["vit-small"] == 120_749
    assert SETTINGS["cifar10-small"].corrupted and SETTINGS["cifar10"].corrupted and not SETTINGS["digits"].corrupted


def test_at_equal_accuracy_not_at_the_end():
    """An accurate model is compared where it was no more accurate than the others come to be."""
    table = made([dict(model="mlp-mnist", sensitivity=0.1), dict(model="vit-small-mnist", sensitivity=0.05)], "mnist")
    assert verdicts(mnist, table)[0] == "reproduced"
    last = (table["model"] == "mlp-mnist") & (table["epoch"] == 2)
    table.loc[last, "sensitivity"] = 0.001
    assert verdicts(mnist, table)[0] == "not reproduced"
    table.loc[(table["model"] == "vit-small-mnist") & (table["epoch"] == 2), "train_accuracy"] = 0.95
    assert verdicts(mnist, table)[0] == "reproduced"  # both at 0.95 now


@pytest.mark.parametrize(
    ("ratio", "wobble", "verdict"),
    [
        (2, 0.02, "reproduced"),
        (0.5, 0.02, "not reproduced"),
        (30, 0.02, "reproduced"),
        (1.1, 0.02, "not reproduced"),
    ],
)
def test_mnist(ratio, wobble, verdict):
    kinds = [dict(model="mlp-mnist", sensitivity=0.02 * ratio), dict(model="vit-small-mnist", sensitivity=0.02)]
    assert verdicts(mnist, made(kinds, "mnist"))[0] == verdict
    noisy = made(kinds, "mnist")
    noisy.loc[(noisy["model"] == "mlp-mnist") & (noisy["seed"] == 0), "sensitivity"] *= 0.1
    assert verdicts(mnist, noisy)[0] == "undecided"
    assert set(verdicts(mnist, made(kinds, "digits"))) == {"not run at this tier"}


def test_mnist_under_other_noise():
    """Each reading of V's noise is judged by its own rows, of the end."""
    table = made([dict(model="mlp-mnist", sensitivity=0.01), dict(model="vit-small-mnist", sensitivity=0.02)], "mnist")
    table = table.loc[table["about"] == "epoch"]
    own = table.drop_duplicates("run")
    kinds = [("patch", 0.25, 0.5), ("patch", 4.0, 1.1), ("patch", 16.0, 2.0), ("replaced", 1.0, 3.0)]
    more = [
        {**row, "about": "noise", "noise": noise, "sigma2": sigma2, "sensitivity": 0.02 * factor}
        for row in own.to_dict("records")
        for noise, sigma2, ratio in kinds
        for factor in [ratio if row["model"] == "mlp-mnist" else 1.0]
    ]
    both = pd.concat([table, pd.DataFrame(more)], ignore_index=True)
    no, yes, absent, unknown = "not reproduced", "reproduced", "not run at this tier", "undecided"
    assert verdicts(mnist, both) == [no, no, no, yes, absent, absent, yes, absent]
    both.loc[(both["model"] == "mlp-mnist") & (both["epoch"] == 2), "train_accuracy"] = 0.9  # the ViT's is 1 at the end
    assert verdicts(mnist, both)[1:] == [unknown] * 3 + [absent, absent, unknown, absent]


def test_variance():
    right = made(five(0.01, 0.1))
    assert verdicts(variance, right) == ["reproduced"] * 4
    assert variance.least(right, "vit-small").value == pytest.approx(1 + 0.5 * -0.60206, abs=1e-3)  # at a quarter
    assert variance.growth(right, "vit-small").value == pytest.approx(0.8 - 0.01 * 8**0.5 - (0.025 - 0.005), abs=2e-3)
    assert verdicts(variance, made(five(0.1, 0.1, 1.0))) == ["not reproduced"] * 4
    assert verdicts(variance, made(five(0.01, 0.1), seeds=1)) == ["undecided"] * 4
    later = right.copy()  # at equal accuracy, not at the end of training
    later.loc[later["about"] == "noise", "sensitivity"] = 0.5
    assert verdicts(variance, later) == ["reproduced"] * 4
    quick = right["model"] == "resnet18"
    right.loc[quick & (right["epoch"] == 2), "sensitivity"] = 0.0  # once it is more accurate than the others come to be
    right.loc[~quick & (right["epoch"] == 2), "train_accuracy"] = 0.95
    assert verdicts(variance, right) == ["reproduced"] * 4
    assert verdicts(variance, idle(made(five(0.0, 0.1)), ["vit-small"])) == ["undecided"] * 2 + ["reproduced"] * 2
    assert verdicts(variance, idle(made(five(0.0, 0.1)), [*variance.VITS, *variance.OTHERS])) == ["undecided"] * 4
    one_is_near = five(0.01, 0.1)
    one_is_near[1]["sensitivity"] = 0.01
    assert verdicts(variance, made(one_is_near))[::2] == ["not reproduced"] * 2


def test_random_noise():
    patch, whole = ({m: random_noise.TABLE_4[m, n] for m in random_noise.MODELS} for n in ("patch", "whole"))
    kinds = [dict(model=model, sensitivity=patch[model], whole=whole[model]) for model in patch]
    assert set(verdicts(random_noise, made(kinds))) == {"reproduced"}
    assert verdicts(random_noise, idle(made(kinds), ["vit-small"])) == ["reproduced"] * 3 + ["undecided"] * 10
    same = [dict(model=model, sensitivity=patch[model], whole=patch[model]) for model in patch]
    assert verdicts(random_noise, made(same))[6:] == [
        *["not reproduced"] * 2,
        "reproduced",
        *["not reproduced"] * 4,
    ]
    loud = [dict(model=model, sensitivity=patch[model], whole=0.5, quiet=whole[model]) for model in patch]
    as_released = ["not reproduced", "reproduced", "reproduced"]
    told = ["undecided", "reproduced", "reproduced", *["undecided", "reproduced"] * 2]
    assert verdicts(random_noise, made(loud)) == [*as_released, *as_released, *told]  # of two drowned models no ratio
    one = [dict(kind, whole=0.5 if kind["model"] == "resnet18" else 0.05) for kind in kinds]
    assert verdicts(random_noise, made(one))[6] == "not reproduced"
    assert set(verdicts(random_noise, made(kinds, seeds=1))) == {"undecided"}
    difference = patch["resnet18"] - patch["vit-small"]
    for share, verdict in ((1 / 2.2, "reproduced"), (1 / 1.9, "not reproduced"), (-1 / 1.9, "not reproduced")):
        nearer = [dict(kinds[0], whole=0.1 + share * difference), dict(kinds[1], whole=0.1)]
        found = verdicts(random_noise, made(nearer, "digits"))  # V's words are judged on any images
        assert found == ["not run at this tier"] * 11 + [verdict] * 2
    turned = [dict(kinds[0], sensitivity=0.01, whole=0.05), dict(kinds[1], sensitivity=0.1, whole=0.05)]
    assert verdicts(random_noise, made(turned))[-2:] == ["not reproduced"] * 2  # no gap is no smaller one
    quiet = [dict(kind, quiet=0.0 if kind["model"] == "vit-small" else 0.01) for kind in kinds]
    for table, hollow in ((made(kinds), 0), (made(quiet), 1)):  # a logarithm of 0 would not be seen
        [axes] = random_noise.figure(table).axes
        assert [line.get_markerfacecolor() for line in axes.lines].count("none") == hollow
        assert ("hollow: 0" in axes.get_ylabel()) == bool(hollow)
    ends = made(kinds)
    ends.loc[ends["about"] == "noise", "sensitivity"] = 0.2  # ratios are taken where accuracies are the same
    assert verdicts(random_noise, ends) == ["not reproduced"] * 6 + ["reproduced"] * 7


def test_paper_tiers():
    rates = {"vit-small": 0.1, "vit-simple": 0.2, "convmixer": 0.06, "resnet18": 0.001, "densenet121": 0.005}
    assert {(spec.model, spec.rate) for spec in cifar10.PAPER} == set(rates.items())
    assert {(spec.model, spec.rate) for spec in fashion.PAPER} == {
        ("mlp-leaky-relu", 0.1),
        ("mlp-sigmoid", 0.5),
        ("cnn", 0.005),
        ("vit-small-fashion-mnist", 0.1),
    }
    assert {spec.rate for spec in mnist.PAPER} == {0.01}
    assert {(spec.model, spec.rate) for spec in svhn.PAPER} == {("resnet18", 0.0015), ("vit-small-svhn", 0.1)}
    assert {(spec.optimizer, spec.rate) for spec in optimizer.PAPER} == {("sgd", 0.1), ("adam", 0.002)}
    other = {(spec.training, spec.rate) for spec in robustness.PAPER if spec.training}
    assert other == {("penalty", 0.16), ("noise", 0.2)}
    assert {spec.training for spec in robustness.SMALL} == {"", "penalty", "noise", "penalty as released"}
    ends = {spec.epochs for spec in robustness.PAPER if spec.model == "vit-small"}
    assert len(ends) == 1  # what is compared at the end is trained as long
    for study, data in ((cifar10, "cifar10"), (fashion, "fashion-mnist"), (mnist, "mnist"), (svhn, "svhn")):
        assert {(spec.data, spec.images, spec.optimizer, spec.layers) for spec in study.PAPER} == {(data, 0, "sgd", 0)}
        assert len({spec.seed for spec in study.PAPER}) >= 3
    assert set(random_noise.PAPER) < set(variance.PAPER) == set(cifar10.PAPER)
    assert {spec for spec in robustness.PAPER if not spec.training} < set(cifar10.PAPER)
    assert set(flatness.PAPER) < set(robustness.PAPER)
    assert {(spec.data, spec.training) for spec in dropout.PAPER if spec not in cifar10.PAPER} == {
        ("cifar10", "dropout"),
        ("fashion-mnist", "dropout"),
    }
    assert {(spec.layers or 8, spec.heads or 32) for spec in depth_heads.PAPER} == {(8, 32), (4, 32), (8, 8)}
    assert {spec for spec in depth_heads.PAPER if not (spec.layers or spec.heads)} < set(cifar10.PAPER)
    assert [spec.model for spec in cifar10.PAPER[:5]] == list(cifar10.PUBLISHED)  # every model first, then again


@pytest.mark.parametrize("study", [cifar10, fashion, svhn])
def test_runs_that_diverge_leave_the_claims_to_the_others(study):
    """Of one model no run comes to its end: what is said of it stays open, and the rest is as it was."""
    kinds, data = as_published(study)
    table = made(kinds, data, seeds=4)
    lost = kinds[0]["model"]
    ended = table.loc[(table["model"] != lost) | ((table["about"] == "epoch") & (table["epoch"] == 0))]
    found = {claim.claim: claim.judge(ended).verdict for claim in study.CLAIMS}
    name = NAMES[lost]
    assert {verdict for words, verdict in found.items() if words.startswith(name)} == {"undecided"}
    assert {verdict for words, verdict in found.items() if not words.startswith(name)} == {"reproduced"}
    assert study.STUDY.figure(ended)
    one = table.loc[
        (table["model"] != lost) | (table["seed"] < 3) | ((table["about"] == "epoch") & (table["epoch"] == 0))
    ]
    assert set(verdicts(study, one)) == {"reproduced"}
