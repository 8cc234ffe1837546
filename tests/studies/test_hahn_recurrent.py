"""LSTMs: batches of many lengths, and the claims on hand-made tables."""

from dataclasses import asdict

import pandas as pd
import pytest
import torch
from torch.backends import cudnn

from teeter.studies.hahn2024 import recurrent as study
from teeter.studies.hahn2024.learning import Learner, zero_one

CPU = torch.device("cpu")


def test_mixed_lengths_are_all_there_and_a_pure_function_of_the_step():
    spec = Learner("parity", 6, 2, study.MIXED, "lstm", batch=16)
    stream = study.mixed_or_fixed(spec, CPU)
    lengths = [stream(step)[0].shape[1] for step in range(600)]
    assert set(lengths) == {1, 2, 3, 4, 5, 6}
    assert min(lengths.count(n) for n in range(1, 7)) > 60
    (x, y), again = stream(41), study.mixed_or_fixed(spec, CPU)(41)
    assert torch.equal(x, again[0])
    assert torch.equal(y, zero_one("parity")(x))
    fixed = study.mixed_or_fixed(Learner("parity", 6, 2, study.FIXED, "lstm", batch=16), CPU)
    assert {fixed(step)[0].shape for step in range(20)} == {(16, 6)}


def test_a_run_has_what_the_claims_need():
    spec = Learner("first", 3, 0, study.MIXED, "lstm", dim=4, batch=16, steps=3)
    (row,) = study.run(spec)
    assert 0 <= row["right"] <= 1
    assert 0 <= row["right_twice"] <= 1
    assert row["sharpness_low"] <= row["sharpness"] <= row["sharpness_high"]
    assert not row["converged"]
    assert row["fate"] == "not learned"
    assert not {"step", "loss", "rate", "right_3", "right_6"} & set(row)


def test_a_run_that_diverges_has_no_measures(tmp_path):
    specs = [
        Learner("first", 3, s, study.MIXED, "lstm", dim=4, batch=16, steps=3, rate=rate)
        for s, rate in ((0, 1e38), (1, 1e-4))
    ]
    (bad,), (good,) = study.TOGETHER.run(specs, tmp_path)
    assert bad == {**dict.fromkeys(good), "fate": "diverged", "converged": False}
    assert study.TOGETHER.run(specs, tmp_path) == [[bad], [good]]
    alone = pd.DataFrame([{**asdict(specs[0]), **bad}])
    assert len([claim.judge(alone) for claim in study.CLAIMS]) == len(study.CLAIMS)
    study.figure(alone).savefig("/dev/null", format="png")


def test_measured_in_float32_whatever_cudnn_would_do(monkeypatch):
    seen, right = [], study.AtLengths.__call__
    monkeypatch.setattr(study.AtLengths, "__call__", lambda *a: seen.append(cudnn.allow_tf32) or right(*a))
    assert cudnn.allow_tf32
    study.run(Learner("first", 3, 0, study.MIXED, "lstm", dim=4, batch=16, steps=2))
    assert seen == [False, False]
    assert cudnn.allow_tf32


def table(converged=True, sharp=0.05, fixed=True):
    rows = [
        {"function": name, "variant": study.MIXED, "n": n, "sharpness": sharp * n + wobble, "converged": converged}
        for name in study.FUNCTIONS
        for n in (5, 10, 20)
        for wobble in (0, 1e-3, 2e-3, 3e-3, 4e-3)
    ]
    rows += [
        {"function": "parity", "variant": study.FIXED, "n": n, "sharpness": 0.1, "converged": fixed}
        for n in (5, 10, 20)
        for _ in range(9)
    ]
    return pd.DataFrame(rows).assign(mse=0.1, right_twice=0.99)


def test_claims_on_a_table():
    assert study.steepness("parity")(table()).value == pytest.approx(0.05)
    assert study.average("parity", "sharpness", (0, 2), longest=True)(table()).value == pytest.approx(1.002)
    assert study.average("parity", "right_twice", (0, 1), longest=False)(table()).value == pytest.approx(0.99)
    assert study.fitted("parity", study.FIXED, 10)(table()).n == 18
    assert {claim.judge(table()).verdict for claim in study.CLAIMS} == {"reproduced"}
    flat = [claim.judge(table(sharp=0.001, fixed=False)).verdict for claim in study.CLAIMS]
    assert [i for i, verdict in enumerate(flat) if verdict == "not reproduced"] == [2, 3, 4]


def test_with_no_converged_run():
    nothing = [claim.judge(table(converged=False)).verdict for claim in study.CLAIMS]
    assert nothing == ["not reproduced", "undecided", "reproduced", "undecided", "undecided"] + ["not reproduced"] * 3
    study.figure(table(converged=False, fixed=False)).savefig("/dev/null", format="png")


def test_the_grid():
    assert len(study.PAPER) == 4 * 4 * 3 + 3 * 6
    fixed = [spec for spec in study.PAPER if spec.variant == study.FIXED]
    assert {(spec.function, spec.steps) for spec in fixed} == {("parity", 10_000)}
    assert {spec.n for spec in fixed} == {5, 10, 20}
    all_of_them = pd.DataFrame([asdict(spec) for spec in fixed]).assign(converged=True)
    assert study.fitted("parity", study.FIXED, 10)(all_of_them).n == 12
    assert study.CLAIMS[2].judge(all_of_them).verdict == "reproduced"
