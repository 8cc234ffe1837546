"""Norm against blow-up: what is drawn for a run, what is measured on tables with a known answer, and the grid."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from teeter.studies.hahn2024 import tradeoff as study

FUNCTIONS = ("parity", "majority", "first", "mean")


def made(lift=0.5, noise=0.05, lengths=(5, 10, 15, 20), runs=8, variants=("text", "released")):
    """log blow-up = 10 - norm / 2, and for PARITY `lift` more with each bit above 5; norms vary with the length too."""
    draw = np.random.default_rng(0)
    rows = []
    for variant in variants:
        for n in lengths:
            for name in FUNCTIONS:
                for seed in range(runs):
                    norm = draw.uniform(10, 20) + n / 5
                    blowup = 10 - norm / 2 + (lift * (n - 5) if name == "parity" else 0) + noise * draw.normal()
                    one = {"function": name, "n": n, "seed": seed, "variant": variant, "mse": 1e-5, "norm": norm}
                    both = {"blowup": blowup, "blowup_released": blowup + 3}
                    rows.append({**one, **both, "converged": True})
    return pd.DataFrame(rows)


def verdicts(table):
    return {claim.claim: claim.judge(table).verdict for claim in study.CLAIMS}


def test_what_the_paper_says_is_reproduced_where_it_is_true():
    assert set(verdicts(made(runs=40)).values()) == {"reproduced"}


def test_and_not_where_it_is_not():
    found = verdicts(made(lift=0.0, runs=40))
    assert found["PARITY: correlation of log blow-up and n at equal norm"] == "not reproduced"
    assert found["n = 20: correlation of log blow-up at equal norm with being PARITY"] == "not reproduced"
    assert found["n = 5: correlation of log blow-up at equal norm with being PARITY"] == "reproduced"
    blind = made(noise=50.0)
    assert verdicts(blind)["FIRST: correlation of log blow-up and norm at fixed n"] == "not reproduced"


def test_each_variant_has_its_own_blowup():
    table = made(variants=("text",))
    table["blowup_released"] = 0.0
    assert study.at_fixed_length(table, "text", "mean").value < -0.99
    assert study.at_fixed_length(made(), "released", "mean").value < -0.99
    table = made()
    assert study.kept(table, "released").log_blowup.equals(table.blowup_released[table.variant == "released"])


def test_the_length_of_the_tradeoff_is_not_the_tradeoff():
    """Over all lengths norm and blow-up rise together; at fixed n one falls with the other."""
    table = made(lift=5.0, noise=0.01)
    table.loc[:, "norm"] += 3 * table.n
    runs = study.kept(table, "text", ["parity"])
    assert np.corrcoef(runs.norm, runs.log_blowup)[0, 1] > 0.9
    assert study.at_fixed_length(table, "text", "parity").value == pytest.approx(-1, abs=1e-3)


def test_the_rise_of_others_as_a_share_of_paritys():
    table = made(noise=1e-3)
    here = table.function == "mean"
    table.loc[here, ["blowup", "blowup_released"]] += 0.1 * table.n[here].to_numpy()[:, None]
    estimate = study.beside_parity(table, "text", "mean")
    assert estimate.value == pytest.approx(0.2, abs=1e-3)
    assert estimate.low < 0.2 < estimate.high
    assert estimate.n == 64


def test_without_converged_runs_nothing_is_decided():
    table = made().assign(converged=False)
    assert set(verdicts(table).values()) == {"undecided"}
    assert isinstance(study.figure(table), Figure)
    one = made().assign(converged=lambda rows: rows.index == 3)
    assert set(verdicts(one).values()) == {"undecided"}


def test_a_length_that_was_not_run_is_not_judged():
    found = verdicts(made(lengths=(5, 10), runs=40))
    assert found["n = 20: correlation of log blow-up at equal norm with being PARITY"] == "not run at this tier"
    assert found["n = 5: correlation of log blow-up at equal norm with being PARITY"] == "reproduced"


def test_draws_are_uniform_and_the_runs_own():
    drawn = [study.drawn(seed) for seed in range(2000)]
    decay, rate = ([each[name] for each in drawn] for name in ("weight_decay", "rate"))
    assert 0 <= min(decay) < 0.005 < 0.395 < max(decay) <= 0.4
    assert 1e-4 <= min(rate) < 1.05e-4 < 4.95e-4 < max(rate) <= 5e-4
    assert abs(np.mean(decay) - 0.2) < 0.01
    assert abs(np.corrcoef(decay, rate)[0, 1]) < 0.07
    assert study.drawn(7, faster=10)["rate"] == pytest.approx(10 * study.drawn(7)["rate"], rel=1e-3)
    for spec in study.PAPER:
        assert {"weight_decay": spec.weight_decay, "rate": spec.rate} == study.drawn(spec.seed)


def test_the_paper_tier():
    specs = study.STUDY.specs("paper")
    assert len(specs) == 504
    of_text = [spec for spec in specs if spec.variant == "text"]
    assert len({spec.seed for spec in of_text}) == len(of_text) == 376  # no two runs share weights, strings or rates
    assert {spec.n for spec in specs} == {4, 5, 6, 8, 10, 12, 15, 18, 20, 25}
    cells = Counter((spec.variant, spec.function, spec.n) for spec in specs)
    assert cells["text", "parity", 20] == 16
    assert cells["text", "mean", 25] == 5
    assert cells["released", "first", 5] == 8
    assert {(spec.dim, spec.batch, spec.steps) for spec in specs} == {(128, 1024, 10_000)}


def test_lengths_that_are_shown():
    assert study.shown(pd.DataFrame({"n": [4, 5, 10, 15, 20, 25]})) == [5, 10, 15, 20]
    assert study.shown(pd.DataFrame({"n": [2, 4, 5]})) == [2, 4, 5]
