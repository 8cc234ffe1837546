"""Sharpness part by part: what is nudged, the closed form for the head, the claims on tables made by hand."""

import math
from collections import Counter
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from teeter import cube, measure
from teeter.measure.sharpness import Nudging, skipped
from teeter.studies.hahn2024 import parts as study
from teeter.studies.hahn2024.learning import FUNCTIONS, POSITIONS, Learner, model_of
from teeter.train import Stack

X = cube.points(4).double()


def some_model(seed=0):
    """With gains and biases of its layer norms that are not those of the start."""
    model = model_of(Learner("parity", 4, seed, "released", dim=8)).double().eval()
    torch.manual_seed(seed)
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.data += 0.5 * torch.randn_like(weight)
    return model


def read(model):
    """What the head is given."""
    seen = []
    with torch.no_grad():
        handle = model.head.register_forward_pre_hook(lambda part, given: seen.append(given[0]))
        model(X)
        handle.remove()
    return seen[0]


def test_every_weight_is_in_one_part():
    for variant in ("text", "released"):
        for name, _ in model_of(Learner("parity", 4, 0, variant, dim=8)).named_parameters():
            of = [part for part, names in study.PARTS.items() if skipped(name, names)]
            assert len(of) == (0 if "position" in name else 1), name
            assert [part for part in study.PARTS if not skipped(name, study.alone(part))] == of
    sizes = {part: 0 for part in study.PARTS}
    for name, weight in some_model().named_parameters():
        for part in study.PARTS:
            sizes[part] += 0 if skipped(name, study.alone(part)) else weight.numel()
    ff, attention = 2 * 2 * (8 * 8 + 8), 2 * 4 * (8 * 8 + 8)
    assert sizes == {"head": 9, "norms": 2 * 4 * 8, "tokens": 2 * 4, "attention": attention, "feed_forward": ff}


def test_the_head_alone_draw_by_draw():
    """(delta h + delta_b)^2, with the noise at hand."""
    model = some_model()
    found = measure.sharpness(model, X, skip=study.alone("head"), draws=50, rho=study.RHO)
    noise = Nudging(skip=study.alone("head"), rho=study.RHO).noise(dict(model.named_parameters()), range(50))
    assert set(noise) == {"head.weight", "head.bias"}
    moved = read(model) @ noise["head.weight"].squeeze(1).T + noise["head.bias"].T
    assert found.value == pytest.approx(float(moved.square().mean()), rel=1e-9)


def test_endless_draws_have_a_closed_form():
    model = some_model()
    endless = study.Readout(X)(model)
    assert endless == pytest.approx(4e-4 * (float(read(model).square().sum(-1).mean()) + 1), rel=1e-12)
    drawn = measure.sharpness(model, X, skip=study.alone("head"), draws=4000)
    assert drawn.value == pytest.approx(endless, rel=3 * math.sqrt(2 / 4000))
    pair = Stack([some_model(1), model])
    pair.shape.eval()
    assert study.Readout(X, batch=5).of_stack(pair)[1] == pytest.approx(endless, rel=1e-9)
    assert "head.weight" in dict(model.named_parameters())  # it keeps its head


def test_all_weights_are_the_rest_and_the_head():
    """The same draws on the rest; the head's are independent of them, so that the two add up."""
    model = some_model()
    weights = dict(model.named_parameters())
    every, body = (Nudging(skip=skip).noise(weights, range(3)) for skip in (POSITIONS, POSITIONS + ("head.",)))
    assert set(every) - set(body) == {"head.weight", "head.bias"}
    assert all(torch.equal(every[name], body[name]) for name in body)
    all_of_it, rest = (
        measure.sharpness(model, X, skip=skip, draws=4000) for skip in (POSITIONS, POSITIONS + ("head.",))
    )
    together = rest.value + study.Readout(X)(model)
    assert together == pytest.approx(all_of_it.value, rel=0.07)
    assert rest.value < 0.9 * all_of_it.value


def test_measures_of_a_length_are_the_same_objects():
    assert study.by_part(4) is study.by_part(4)
    assert {name: each.more["draws"] for name, each in study.by_part(4).items() if hasattr(each, "more")} == {
        "sharpness_body": 10,
        "sharpness_body_400": 400,
        **{f"sharpness_{part}": 50 for part in study.PARTS},
    }


def test_rows_of_a_run_and_of_one_that_diverges(tmp_path):
    specs = [
        Learner("mean", 3, s, "released", dim=4, batch=16, steps=3, rate=rate) for s, rate in ((0, 1e38), (1, 1e-4))
    ]
    (bad,), (good,) = study.TOGETHER.run(specs, tmp_path)
    assert good["sharpness_endless"] == pytest.approx(
        good["sharpness_body_400"] + good["sharpness_head_endless"], rel=1e-5
    )
    assert good["sharpness_head_low"] < good["sharpness_head_endless"] < good["sharpness_head_high"]
    assert bad == {**dict.fromkeys(good), "fate": "diverged", "converged": False}
    (again,) = study.run(specs[1])
    assert again["sharpness_endless"] == pytest.approx(good["sharpness_endless"], rel=1e-3)
    alone = pd.DataFrame([{**asdict(specs[0]), **bad}])
    verdicts = Counter(claim.judge(alone).verdict for claim in study.CLAIMS)
    assert verdicts == {"undecided": len(study.CLAIMS) - 1, "not run at this tier": 1}  # of longer inputs
    study.figure(alone).savefig("/dev/null", format="png")


def test_what_table_2_implies():
    for line in study.TABLE_2.values():
        n = np.repeat(np.arange(4.0, 31), 10)
        noise = np.random.default_rng(0).normal(size=len(n))
        noise -= np.polyval(np.polyfit(n, noise, 1), n)
        found = stats.linregress(n, line.slope * n + noise * study.implied_spread(line) / noise.std())
        assert (found.slope, found.rvalue) == pytest.approx((line.slope, line.r))


def table(spreads, head=0.13, off=1.0):
    """Runs about Table 2's lines, with these spreads by column for all functions but PARITY."""
    n = np.repeat(np.arange(4, 29, 3), 4)
    noise = np.random.default_rng(1).normal(size=len(n))
    noise -= np.polyval(np.polyfit(n, noise, 1), n)
    noise /= math.sqrt(float(noise @ noise) / (len(n) - 2))
    rows = []
    for name, line in study.TABLE_2.items():
        own = {
            column: line.slope * off * n + (0.02 if name != "parity" else -0.05)
            + (0 if column == "sharpness_body" else head) + noise * spreads[column] * study.implied_spread(line)
            for column in study.ACCOUNTS.values()
        }  # fmt: skip
        rows.append(pd.DataFrame({"n": n, "function": name, "sharpness_head_endless": head, **own}))
    return pd.concat(rows, ignore_index=True).assign(variant="released", converged=True)


LIKE = {"sharpness": 16.0, "sharpness_body": 1.0, "sharpness_endless": 0.8}


def test_a_spread_is_told_by_its_power_of_ten():
    found = study.against_table_2("mean", "sharpness")(table(LIKE))
    assert found.value == pytest.approx(math.log10(16), rel=1e-6)
    ends = [math.log10(16 * math.sqrt(34 / stats.chi2.ppf(q, 34))) for q in (0.975, 0.025)]
    assert (found.low, found.high, found.n) == pytest.approx((*ends, 36))
    none = table(LIKE).assign(sharpness=0.1)
    assert study.against_table_2("mean", "sharpness")(none).value == -6
    assert study.against_table_2("mean", "sharpness")(none.iloc[:0]).half_width == 6


def judged(found):
    return {claim.claim.split(" (")[0]: claim.judge(found).verdict for claim in study.CLAIMS}


def test_verdicts_on_runs_as_we_expect_them():
    verdicts = judged(table(LIKE))
    assert len(verdicts) == 9 + 8 + 3
    unlike = {claim for claim, verdict in verdicts.items() if verdict != "reproduced"}
    assert unlike == {
        f"{name}, all weights, ten draws: log10 of the spread about its line over Table 2's"
        for name in ("MAJORITY", "FIRST", "MEAN")
    }
    assert {verdicts[claim] for claim in unlike} == {"not reproduced"}


def test_verdicts_on_runs_that_are_otherwise():
    wide = judged(table({**LIKE, "sharpness_body": 1.8, "sharpness_endless": 4.0}, head=0.001))
    assert wide["MEAN, all but the head, ten draws: log10 of the spread about its line over Table 2's"] == "undecided"
    assert (
        wide["MEAN, all weights, endless draws: log10 of the spread about its line over Table 2's"] == "not reproduced"
    )
    assert wide["MEAN, all weights, endless draws: slope of sharpness over n"] == "undecided"  # 4 times as wide
    assert wide["MEAN: share of the head in its sharpness"] == "not reproduced"
    assert (
        judged(table(LIKE, off=2.0))["PARITY, all but the head, ten draws: slope of sharpness over n"]
        == "not reproduced"
    )
    heavy = table(LIKE, head=2.0)
    assert judged(heavy)["PARITY: share of the head in its sharpness at n of 22 and more"] == "not reproduced"


def test_a_share_is_the_mean_over_runs():
    found = table(LIKE).assign(sharpness_endless=0.52)
    found.loc[found["n"] >= study.LONG, "sharpness_endless"] = 0.26
    assert study.head_share("parity", study.LONG)(found).value == pytest.approx(0.5)
    assert study.head_share("parity")(found).value == pytest.approx((6 * 0.25 + 3 * 0.5) / 9)
    assert study.head_share("parity", study.LONG)(found).n == 12


def test_what_is_drawn():
    """Of runs that converged, of which the smoke tier has none."""
    others = {f"sharpness_{part}": 0.01 * i for i, part in enumerate(study.PARTS, 1) if part != "head"}
    lines, spreads, shares = study.figure(table(LIKE).assign(**others)).axes
    assert (lines.get_yscale(), len(lines.collections), len(lines.lines)) == ("log", 0, 2 * 2 * 4)
    drawn = [bar.lines[0].get_ydata()[0] for bar in spreads.containers]
    implied = [study.implied_spread(study.TABLE_2[name]) for name in ("majority", "first", "mean")]
    assert drawn == pytest.approx([each * unit for each in LIKE.values() for unit in implied], rel=1e-6)
    widths = np.array([[bar.get_width() for bar in part] for part in shares.containers])
    assert widths == pytest.approx(np.repeat([[13], [2], [3], [4], [5]], 4, axis=1) / 27 * 100)


def test_what_is_run():
    assert len(study.PAPER) == 9 * 4 * 4
    assert {s.n for s in study.PAPER} == {4, 7, 10, 13, 16, 19, 22, 25, 28}
    assert {(s.variant, s.dim, s.batch, s.steps, s.rate, s.weight_decay) for s in study.PAPER} == {
        ("released", 128, 1024, 10_000, 3e-4, 0.1)
    }
    groups = Counter(map(study.TOGETHER.key, study.PAPER))
    assert set(groups.values()) == {16} == {study.TOGETHER.most}
    assert {s.function for s in study.SMOKE} == set(FUNCTIONS)
