"""The penalty beside other regularisers: paths compared by hand, what claims say of made-up tables, and a run."""

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
import torch

from teeter.data import LabelledImages
from teeter.errors import InputError, UnknownName
from teeter.report.drawing import svg
from teeter.runs import tidy
from teeter.runs.store import Run
from teeter.studies.vasudeva2025 import regularisers
from teeter.studies.vasudeva2025.regularisers import (
    LEVELS,
    PAPER,
    SMALL,
    SMOKE,
    Regularised,
    differences,
    framed,
    levels,
    on_path,
    outcomes,
    unframed,
)
from teeter.studies.vasudeva2025.vision import FAMILIES
from teeter.train import Diverged

CLEAN = {"penalty": (0.80, 0.79, 0.75), "noise": (0.80, 0.78, 0.74), "decay": (0.81, 0.79, 0.70)}
BASE = {"penalty": 0.55, "noise": 0.50, "decay": 0.50, "none": 0.50}  # accuracy on corrupted images
LOGS = {"penalty": 0.01, "noise": 0.02, "decay": 0.02, "none": 0.02}  # sensitivity, and a hundredth of ShOp


def made(clean=CLEAN, base=BASE, small=LOGS, seeds=4, wobble=0.002, data="fashion-mnist", noise_gain=0.0):
    """Accuracy under corruption is that of the method, plus half of what its clean accuracy is above 0.8."""
    rows = []
    paths = {"none": (0.80,), **clean}
    for method, path in paths.items():
        for strength, accuracy in enumerate(path):
            for seed in range(seeds):
                off = wobble * (seed - (seeds - 1) / 2) * (1 if method == "penalty" else -1)
                own = dict(run=f"{method} {strength} {seed}", method=method, strength=strength, seed=seed, data=data)
                s = small[method] * (1 + off)
                for epoch, part in ((0, 0.1), (2, accuracy)):
                    rows.append({**own, "about": "epoch", "epoch": epoch, "test_accuracy": part, "sensitivity": s})
                rows.append({**own, "about": "weights", "shop": 100 * s})
                if data == "digits":
                    continue
                for family in FAMILIES:
                    for severity in (1, 2):
                        told = base[method] + 0.5 * (accuracy - 0.8) + off + 0.1 * (2 - severity)
                        told += noise_gain if (method, family) == ("penalty", "noise") else 0.0
                        where = dict(family=family, severity=severity, corruption=f"one of {family}")
                        rows.append({**own, "about": "corruption", **where, "accuracy": told})
    return pd.DataFrame(rows)


def verdicts(table, other):
    name = f" {regularisers.METHODS[other]} "
    return [claim.judge(table).verdict for claim in regularisers.CLAIMS if name in claim.claim]


def test_a_path_is_read_where_it_last_has_the_level():
    clean, value = [0.8, 0.9, 0.85, 0.6], [1.0, 2.0, 4.0, 9.0]
    assert on_path(clean, value, 0.9) == 2.0
    assert on_path(clean, value, 0.875) == pytest.approx(3.0)  # on the way down, not on that up
    assert on_path(clean, value, 0.8) == pytest.approx(5.0)
    assert on_path(clean, value, 0.6) == 9.0
    assert on_path([0.6, 0.8], [1.0, 2.0], 0.65) == pytest.approx(1.25)
    assert on_path([0.7, 0.7], [1.0, 2.0], 0.7) == 2.0  # the stronger of two
    assert on_path([0.7], [3.0], 0.7) == 3.0


def test_levels_are_what_both_reach_and_is_worth_it():
    found = levels([0.80, 0.70], [0.78, 0.82, 0.76], 0.79)
    assert (found[0], found[-1], len(found)) == (0.76, 0.80, LEVELS)
    assert found[1] - found[0] == pytest.approx(0.04 / 8)
    assert levels([0.80, 0.60], [0.82, 0.50], 0.81)[0] == pytest.approx(0.76)  # five points below
    assert len(levels([0.80, 0.79], [0.78, 0.70], 0.8)) == 0
    assert len(levels([0.70, 0.60], [0.70, 0.60], 0.8)) == 0  # both, but at too much of a loss
    assert set(levels([0.82, 0.78], [0.80], 0.8)) == {0.8}


def test_a_run_that_diverged_counts_nowhere(monkeypatch):
    def fails(*given, **more):
        raise Diverged("no number", [])

    monkeypatch.setattr(regularisers, "train", fails)
    rows = regularisers.run(SMOKE[0])
    assert rows == [{"about": "fate", "fate": "diverged"}]
    table, own = made(wobble=0.0), dict(strength=2, seed=0, data="fashion-mnist", **rows[0])
    lost = {"penalty 2 0", *(f"noise {strength} 1" for strength in range(3)), "none 0 2"}
    ended = pd.DataFrame([{**own, "run": run, "method": run.split()[0], "seed": int(run[-1])} for run in lost])
    table = pd.concat([table[~table["run"].isin(lost)], ended], ignore_index=True)
    found = outcomes(table)
    assert not lost & set(found.index)
    assert [len(differences(found, other, "shop")) for other in ("noise", "decay", "none")] == [2, 3, 3]
    assert differences(found, "decay", "severity 2") == pytest.approx([0.05] * 3)
    claims = {claim.claim: claim for claim in regularisers.CLAIMS if "share of seeds" in claim.claim}
    assert [claim.judge(table).estimate.value for claim in claims.values()] == [0.5, 0.75, 0.75]
    assert "<svg" in svg(lambda: regularisers.figure(table), "a")


def test_differences_are_taken_at_equal_clean_accuracy():
    found = outcomes(made(wobble=0.0))
    assert len(found) == 4 * (1 + 3 * 3)
    for other in ("noise", "decay", "none"):
        assert differences(found, other, "severity 2") == pytest.approx([0.05] * 4)
        assert differences(found, other, "severity 1") == pytest.approx([0.05] * 4)
        assert differences(found, other, "sensitivity") == pytest.approx([-0.30103] * 4)
    # Gains by clean accuracy alone are none: all paths on one line, however far each goes.
    same = outcomes(made(base=dict.fromkeys(BASE, 0.5), wobble=0.0))
    assert differences(same, "noise", "severity 2") == pytest.approx([0.0] * 4)
    curved = found.copy()
    curved.loc[(curved["method"] == "penalty") & (curved["strength"] == 2), "severity 2"] += 0.04
    # From 0.79 down to 0.75 it is 0.04 more at the end: by 0.04 (0.79 - level) / 0.04, levels from 0.75 to 0.80.
    steps = [0.75 + 0.05 * i / 8 for i in range(9)]
    gain = sum(max(0.79 - level, 0.0) for level in steps) / 9
    assert differences(curved, "noise", "severity 2") == pytest.approx([0.05 + gain] * 4)


def test_outcomes_are_means_over_corruptions():
    found = outcomes(made(wobble=0.0, noise_gain=0.2)).loc["penalty 0 0"]
    assert found["noise 2"] == pytest.approx(0.75)
    assert found["severity 2"] == pytest.approx(0.60)
    assert found["unlike 2"] == pytest.approx(0.55)
    assert found["shop"] == pytest.approx(0.0)
    assert found["test_accuracy"] == 0.80


@pytest.mark.parametrize("other", ["noise", "decay", "none"])
def test_claims(other):
    assert verdicts(made(), other) == ["reproduced"] * 6
    equal = made(base=dict.fromkeys(BASE, 0.5), small=dict.fromkeys(LOGS, 0.02))
    assert verdicts(equal, other) == ["not reproduced"] * 5 + ["reproduced"]
    turned = made(base={**BASE, "penalty": 0.4}, small={**LOGS, "penalty": 0.1})
    assert verdicts(turned, other) == ["not reproduced"] * 5 + ["reproduced"]
    assert verdicts(made(wobble=0.05), other)[:3] == ["undecided"] * 3
    assert verdicts(made(seeds=1), other) == ["undecided"] * 6
    far = made(clean={**CLEAN, "penalty": (0.70, 0.69, 0.68)})
    assert verdicts(far, other) == ["undecided"] * 5 + ["not reproduced"]  # nothing in common says nothing
    assert verdicts(made(data="digits"), other) == ["not run at this tier"] * 3 + ["reproduced"] * 3


def test_a_gain_on_noise_alone_is_told_apart():
    table = made(base={**BASE, "penalty": 0.5}, noise_gain=0.2)
    assert verdicts(table, "noise")[:3] == ["reproduced", "reproduced", "not reproduced"]


def test_tiers():
    for specs, seeds, strengths in ((SMALL, 3, 3), (PAPER, 4, 4)):
        for seed in range(seeds):
            methods = Counter(spec.method for spec in specs if spec.seed == seed)
            assert methods == {"none": 1, "penalty": strengths, "noise": strengths, "decay": strengths}
        assert {(spec.data, spec.rate) for spec in specs} == {("fashion-mnist", 0.1)}
    assert {(spec.patch, spec.batch) for spec in PAPER} == {(4, 100)}  # V's for Fashion-MNIST
    assert {("penalty", 0.25), ("noise", 0.1)} < {(spec.method, spec.strength) for spec in PAPER}  # V's in 7.1
    sizes = [sum(part.numel() for part in regularisers.model_of(spec).parameters()) for spec in (SMALL[0], PAPER[0])]
    assert sizes[0] < 30_000 < 300_000 < sizes[1]


def test_frames():
    pixels = torch.arange(3 * 28 * 28).remainder(256).to(torch.uint8).view(3, 1, 28, 28)
    images = LabelledImages(pixels, torch.tensor([0, 1, 2]), ("a", "b", "c"))
    within = framed(images)
    assert within.images.shape == (3, 3, 32, 32)
    assert int(within.images.sum()) == 3 * int(pixels.sum())
    back = unframed(within)
    assert torch.equal(back.images, pixels) and torch.equal(back.labels, images.labels)


QUICK = Regularised("none", 0.0, 0, epochs=2, images=60, tests=30, data="digits", batch=20)


def test_a_run_and_the_same_again():
    rows = regularisers.run(QUICK)
    assert [row["about"] for row in rows] == ["epoch"] * 3 + ["weights"]
    assert [row["epoch"] for row in rows[:3]] == [0, 1, 2]
    assert rows[-1]["shop"] > 0
    assert regularisers.run(QUICK) == rows
    for method in ("penalty", "noise", "decay"):
        other = regularisers.run(replace(QUICK, method=method, strength=0.5))
        assert other[0]["test_loss"] == rows[0]["test_loss"]
        assert other[2]["test_loss"] != rows[2]["test_loss"]
        assert ("penalty" in other[2]) == (method == "penalty")
        stronger = regularisers.run(replace(QUICK, method=method, strength=5.0))
        assert stronger[2]["test_loss"] != other[2]["test_loss"]
    with pytest.raises(UnknownName, match="method"):
        regularisers.run(replace(QUICK, method="dropout"))


def test_corrupted_images_of_fashion(monkeypatch):
    """Fifteen corruptions at two severities, of the very images that are tested on."""
    pixels = torch.randint(0, 256, (40, 1, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images = LabelledImages(pixels, torch.arange(40) % 10, ("",) * 10)
    asked = []

    def as_it_is(name, severity, test, source):
        asked.append((name, severity, source, tuple(test.images.shape)))
        return test

    monkeypatch.setattr(regularisers, "_images", lambda name, split, limit: images)
    monkeypatch.setattr(regularisers.data, "cifar10_c", as_it_is)
    regularisers._corrupted.cache_clear()
    spec = Regularised("none", 0.0, 0, epochs=1, images=40, tests=40, patch=7, batch=20)
    rows = regularisers.run(spec)
    regularisers._corrupted.cache_clear()
    clean = [row["test_accuracy"] for row in rows if row["about"] == "epoch"][-1]
    found = [row for row in rows if row["about"] == "corruption"]
    assert len(found) == len(set(asked)) == 30
    assert {row["accuracy"] for row in found} == {clean}  # nothing was corrupted here
    assert {each[2:] for each in asked} == {("generated", (40, 3, 32, 32))}


def drawn(table):
    drawing = regularisers.STUDY.figure(table)
    assert "<svg" in svg(lambda: drawing, "a")
    return drawing


def test_a_corruption_that_cannot_be_made_is_told_before_training(monkeypatch):
    few = LabelledImages(torch.zeros(40, 1, 28, 28, dtype=torch.uint8), torch.arange(40) % 10, ("",) * 10)

    def asked(corruption, *given, **more):
        raise InputError(f"no {corruption}")

    monkeypatch.setattr(regularisers, "_images", lambda name, split, limit: few)
    monkeypatch.setattr(regularisers.data, "cifar10_c", asked)
    monkeypatch.setattr(regularisers, "train", lambda *given, **more: pytest.fail("it was trained first"))
    regularisers._corrupted.cache_clear()
    with pytest.raises(InputError, match="no gaussian_noise"):
        regularisers.run(regularisers.PAPER[0])


def test_figures():
    words = [text.get_text() for text in drawn(made()).subfigs[0].legends[0].get_texts()]
    assert sorted(words) == sorted(regularisers.METHODS.values())
    for last, shown in ((0.72, 3), (0.60, 2)):  # which loses too much to be of use
        lines = drawn(made({**CLEAN, "decay": (0.81, 0.79, last)})).subfigs[0].axes[0].lines
        assert [len(line.get_xdata()) for line in lines if line.get_label() == "weight decay"] == [shown]
    axes = drawn(made()).subfigs[1].axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == list(regularisers.BARS.values())
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2][0]
    assert ends[0] < 0.05 < ends[1]  # the interval of what the table was made with
    smoke = [Run("", str(spec), vars(spec), regularisers.run(spec), {"seconds": 1.0}) for spec in SMOKE]
    assert not drawn(tidy(smoke)).subfigs
