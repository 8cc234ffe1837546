"""Decoders beside encoders: the claims on hand-made tables."""

from dataclasses import asdict

import pandas as pd
import pytest

from teeter.models import Decoder
from teeter.studies.hahn2024 import causal as study
from teeter.studies.hahn2024.learning import Learner, model_of


def test_a_run_that_diverges_has_no_measures(tmp_path):
    specs = [Learner("parity", 3, s, dim=4, batch=16, steps=3, rate=rate) for s, rate in ((0, 1e38), (1, 1e-4))]
    (bad,), (good,) = study.TOGETHER.run(specs, tmp_path)
    assert {"sharpness_low", "sharpness_high", "sharpness_released", "blowup", "blowup_released", "norm"} < set(good)
    assert not {"step", "loss", "rate"} & set(good)
    assert good["fate"] == "not learned"
    assert good["unexplained"] == pytest.approx(4 * good["mse"], rel=1e-4)
    assert bad == {**dict.fromkeys(good), "fate": "diverged", "converged": False}
    alone = pd.DataFrame([{**asdict(specs[0]), **bad}])
    assert {claim.judge(alone).verdict for claim in study.CLAIMS} == {"undecided"}
    study.figure(alone).savefig("/dev/null", format="png")


def table(slopes, converged=True):
    rows = []
    for (name, kind), steep in slopes.items():
        for n in (5, 10, 15):
            rows += [{"function": name, "model": kind, "n": n, "sharpness": steep * n + wobble} for wobble in (0, 1e-4)]
    return pd.DataFrame(rows).assign(converged=converged)


SLOPES = {
    (name, kind): {"parity": 0.05, "majority": 0.002, "first": 0.0, "mean": -1e-5}[name]
    * (1.2 if kind == "decoder" else 1)
    for name in study.FUNCTIONS
    for kind in study.KINDS
}


def test_claims_on_a_table_that_bears_them_out():
    assert study.steepness("parity", "decoder")(table(SLOPES)).value == pytest.approx(0.06)
    found = study.beside(("parity", "decoder"), ("parity", "encoder"), 10)(table(SLOPES))
    assert found.value == pytest.approx(1.2)
    assert study.beside(("majority", "decoder"), ("parity", "decoder"), 1)(table(SLOPES)).value == pytest.approx(0.04)
    verdicts = [claim.judge(table(SLOPES)).verdict for claim in study.CLAIMS]
    assert verdicts[:5] == ["reproduced"] * 5
    assert study.fitted("parity", "decoder")(table(SLOPES)).n == 6


def test_a_steep_majority_is_told():
    steep = table({**SLOPES, ("majority", "decoder"): 0.03})
    (claim,) = (claim for claim in study.CLAIMS if claim.claim.startswith("MAJORITY"))
    assert claim.judge(steep).verdict == "not reproduced"
    doubtful = table({**SLOPES, ("majority", "decoder"): 0.00599})  # of 0.06: a tenth, or a little more
    assert claim.measure(doubtful).low < 0.1 < claim.measure(doubtful).high
    assert claim.judge(doubtful).verdict == "undecided"


def test_with_no_converged_run_slopes_are_undecided():
    judged = [claim.judge(table(SLOPES, converged=False)) for claim in study.CLAIMS]
    assert [each.verdict for each in judged] == ["undecided"] * 5 + ["not reproduced"] * 2
    study.figure(table(SLOPES, converged=False))


def test_the_grid():
    assert len(study.PAPER) == 5 * 2 * 4 * 3
    assert {(spec.steps, spec.batch, spec.dim, spec.rate) for spec in study.PAPER} == {(10_000, 1024, 128, 3e-4)}
    assert {type(model_of(spec)) for spec in study.PAPER if spec.model == "decoder" and spec.n == 5} == {Decoder}
    assert len({study.TOGETHER.key(spec) for spec in study.PAPER}) == 10
