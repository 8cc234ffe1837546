"""While PARITY is learned: what is read off a run that was made by hand, and claims on runs that do and do not."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from teeter.studies.hahn2024 import course
from teeter.studies.hahn2024 import dynamics as study
from teeter.train import Trained

ROWS = 201


def run(
    decay=0.1,
    seed=0,
    learning=50,
    rising=50,
    variant="text",
    steps=20_000,
    converged=True,
    left=0.6,
    grow=1.0,
    bend=0.0,
):
    """Loss falls after row `learning`, sharpness rises after row `rising` from 0.05 to 1 and falls to `left`."""
    k = np.arange(ROWS)
    late, norm = k > learning, 30 - decay * k / 10
    sharp = np.where(k > rising, left + (1 - left) * np.exp(-np.maximum(k - rising - 4, 0) / 20), 0.05)
    fixed = {"variant": variant, "steps": steps, "weight_decay": decay, "seed": seed, "converged": converged}
    columns = {
        "step": k * (steps // 200),
        "mse": np.where(k == 0, 1.0, np.where(late, 1e-5, 0.25)),
        "sharpness": sharp,
        "norm": norm,
        "blowup": 5 + grow * (0.5 * late - norm) + np.expm1(bend * (30 - norm)),
    }
    released = {
        name: columns[own] for own, name in (("sharpness", "sharpness_released"), ("blowup", "blowup_released"))
    }
    columns |= released if variant == "released" else dict.fromkeys(released, np.nan)
    if variant == "released":
        columns |= {"sharpness": np.nan, "blowup": np.nan}  # what is not the variant's own is not looked at
    return pd.DataFrame({**columns, **fixed})


def everything(**other):
    short = [
        run(decay, seed, variant=variant, **other)
        for variant in ("text", "released")
        for decay in (0.0, 0.1, 0.2, 0.3)
        for seed in range(10)
    ]
    long = [
        run(decay, seed, steps=100_000, **({"left": 0.3 + 0.3 * (decay > 0) + 0.01 * seed} | other))
        for decay in (0.0, 0.1)
        for seed in range(5)
    ]
    return pd.concat([*short, *long], ignore_index=True)


def verdicts(table):
    return {claim.claim: claim.judge(table).verdict for claim in study.CLAIMS}


def test_a_course_by_hand():
    found = course.course_of(run(decay=0.1, rising=53))
    assert found.weight_decay == 0.1
    assert found.lag == 3
    assert found.before == pytest.approx(0.05)
    last = 0.6 + 0.4 * np.exp(-(np.arange(181, 201) - 57) / 20).mean()
    assert (found.end, found.left) == pytest.approx((last, last))
    assert found.jump == pytest.approx(0.5)  # beyond what weight decay adds at every row
    assert found.norm_change == pytest.approx(-0.1 * 149 / 10)
    assert found.blowup_change == pytest.approx(0.1 * 149 / 10)
    assert found.line == pytest.approx(-1)
    assert found.bend == pytest.approx(0)


def test_a_bend():
    """The later half is steeper, by as much as a power of two; no slope, or one that turns, is as far as can be."""
    norm = np.linspace(30, 20, 101)
    assert course._bend(norm, np.where(norm > 25, 30 - norm, 5 + 3 * (25 - norm))) == pytest.approx(np.log2(3))
    assert course._bend(norm, np.where(norm > 25, 3 * (30 - norm), 15 + 25 - norm)) == pytest.approx(-np.log2(3))
    assert course._bend(norm, np.where(norm > 25, 30 - norm, 5.0)) == -4
    assert course._bend(norm, np.abs(norm - 25)) == 4
    rising = norm[::-1]
    assert course._bend(rising, np.where(rising < 25, rising - 20, 5 + 3 * (rising - 25))) == pytest.approx(np.log2(3))
    assert course._bend(np.array([30, 29, 28, 20.0]), np.array([0, 1, 2, 10.0])) is None
    assert course._bend(norm, np.maximum(25 - norm, 0)) == 4


def test_the_fall_to_a_guess_is_not_learning():
    one = run()
    assert one.mse[0] - one.mse[1] > one.mse[50] - one.mse[51]
    assert course.course_of(one).lag == 0


def test_one_noisy_row_is_neither_a_rise_nor_a_peak():
    one = run()
    one.loc[150, "sharpness"] = 2.0
    found = course.course_of(one)
    assert found.lag == 0
    assert found.before == pytest.approx(0.05)


def test_without_weight_decay_there_is_no_line():
    assert course.course_of(run(decay=0.0)).line is None


def test_what_the_paper_says_is_reproduced_where_it_is_true():
    table = everything()
    rest = {words: verdict for words, verdict in verdicts(table).items() if verdict != "reproduced"}
    assert set(rest) == {
        f"with weight decay: correlation of sharpness and log blow-up at the end, over runs{of}"
        for of in ("", " (as released)")
    }  # all ends are alike here, so there is nothing to correlate
    assert set(rest.values()) == {"undecided"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"rising": 60}, "share of runs whose sharpness rises most when the loss falls"),
        ({"left": 1.0}, "sharpness at the end over its peak"),
        ({"left": 0.0}, "sharpness at the end over its peak"),
        ({"grow": -1.0}, "share of runs whose blow-up rises with the fall of loss"),
        ({"grow": -1.0}, "with weight decay: share of runs whose norm falls and blow-up rises once learned"),
        ({"grow": -1.0}, "with weight decay: correlation of log blow-up and norm in the course of a run"),
        (
            {"bend": 2.0},
            "with weight decay: log2 of that dependency's slope in the later half over the earlier (rule: within 1)",
        ),
        ({"left": 0.5}, "long runs: sharpness at the end, weight decay 0 over 0.1"),
        ({"left": 0.02}, "long runs: MAJORITY's sharpness by Table 2 over the end without weight decay"),
    ],
)
def test_and_not_where_it_is_not(other, words):
    (claim,) = (claim for claim in study.CLAIMS if claim.claim == words)
    assert claim.judge(everything(**other)).verdict == "not reproduced"


def test_runs_that_did_not_converge_count_only_as_such():
    table = everything()
    lost = run(decay=0.1, seed=99, rising=150, converged=False)
    more = pd.concat([table, lost])
    of = {claim.claim: claim for claim in study.CLAIMS}
    words = "share of runs whose sharpness rises most when the loss falls"
    assert of[words].judge(more).estimate == of[words].judge(table).estimate
    assert study.converged_runs(study.of_kind(more, "text")) == (40, 41)


def test_without_converged_runs_nothing_is_said():
    table = everything(converged=False)
    assert set(verdicts(table).values()) == {"undecided"}
    assert isinstance(study.figure(table), Figure)


def test_long_runs_that_were_not_made_are_not_judged():
    table = everything()
    found = verdicts(table[table.steps == 20_000])
    assert {words for words, verdict in found.items() if verdict == "not run at this tier"} == {
        words for words in found if words.startswith("long runs")
    }


def test_rows_hold_both_ways_of_measuring_in_six_digits():
    measured = {**dict.fromkeys(study.KEPT, 1 / 3), "step": 0, "rate": 1e-3, "loss": None, "mse": 1e-4}
    (row,) = study.rows(study.PAPER[0], Trained(None, [measured], 100, "done", 0, 0))
    assert row == {**dict.fromkeys(study.KEPT, 0.333333), "step": 0, "loss": None, "mse": 1e-4, "converged": True}
    assert not study.rows(study.PAPER[0], Trained(None, [measured], 100, "diverged", 0, 0))[0]["converged"]


@pytest.mark.parametrize("grows, expected", [(1.0, "reproduced"), (0.0, "not reproduced")])
def test_a_trend_is_no_jump(grows, expected):
    """With weight decay blow-up rises all the time, and noise is on top."""
    draw, table = np.random.default_rng(0), everything()
    drift = table.weight_decay * table.step / 2000 + draw.normal(0, 0.02, len(table))
    table["blowup"] = drift + grows * (table.mse < 0.01)
    (claim,) = (c for c in study.CLAIMS if c.claim == "share of runs whose blow-up rises with the fall of loss")
    assert claim.judge(table).verdict == expected


def test_curves_are_laid_over_one_another():
    both = pd.concat([run(seed=0, learning=50), run(seed=1, learning=80)])
    found = study.aligned(both)
    assert set(found.loc[found.since == 0, "step"]) == {5100, 8100}
    assert (found.mse < 0.01).equals(found.since >= 0)
    assert (found.since.min(), found.since.max()) == (-8000, 14_900)  # one of two is enough
    three = study.aligned(pd.concat([both, run(seed=2, learning=80)]))
    assert (three.since.min(), three.since.max()) == (-8000, 11_900)


def test_runs_are_independent():
    for variant, steps in (("text", 20_000), ("released", 20_000), ("text", 100_000)):
        seeds = [spec.seed for spec in study.PAPER if (spec.variant, spec.steps) == (variant, steps)]
        assert len(seeds) == len(set(seeds))


def test_the_paper_tier():
    specs = study.STUDY.specs("paper")
    counts = pd.DataFrame(map(dataclasses.asdict, specs)).groupby(["variant", "steps"]).size().to_dict()
    assert counts == {("released", 20_000): 20, ("text", 20_000): 40, ("text", 100_000): 10}
    assert {(spec.function, spec.n, spec.rate, spec.dim) for spec in specs} == {("parity", 25, 3e-4, 128)}
    assert (study.every(20_000), study.every(100_000), study.every(4)) == (100, 500, 1)


def test_a_run():
    asked = study.run(study.SMOKE[0])
    assert [row["step"] for row in asked] == [0, 1, 2, 3, 4]
    assert all(np.isfinite([row["sharpness"], row["blowup"]]).all() for row in asked)
