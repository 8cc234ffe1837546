"""Studies of H on a GPU, compiled and in tf32 as their paper tiers are, with few steps: that every shape runs there."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from teeter.studies.hahn2024 import (
    dynamics,
    generalization,
    learning,
    lengths,
    long,
    parts,
    scaling,
    scratchpad,
    tradeoff,
)

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore"),  # of the compiler's own parts
]

GROUPS = {
    "scaling, longest": [spec for spec in scaling.PAPER if spec.n == 30 and spec.variant == "text"],
    "scaling, shortest, as released": [spec for spec in scaling.PAPER if spec.n == 4 and spec.variant == "released"],
    "long, longest": [spec for spec in long.PAPER if spec.n == 512 and spec.variant == "text"],
    "long, as released": [spec for spec in long.PAPER if spec.n == 298 and spec.variant == "released"],
    "tradeoff": [spec for spec in tradeoff.PAPER if spec.n == 10 and spec.variant == "text"],
}
assert all(GROUPS.values())


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_of_the_paper_tier(name, monkeypatch, tmp_path):
    monkeypatch.setattr(learning, "worth_compiling", lambda device, work: True)
    specs = [replace(spec, steps=40) for spec in GROUPS[name]]
    for spec, made in zip(specs, learning.learn(specs, tmp_path), strict=True):
        (row,) = lengths.final_row(spec, made)
        assert row["fate"] != "diverged"
        assert all(np.isfinite(value) for value in row.values() if isinstance(value, float))


def test_parts(monkeypatch, tmp_path):
    monkeypatch.setattr(learning, "worth_compiling", lambda device, work: True)
    specs = [replace(spec, steps=40) for spec in parts.PAPER if spec.n == 28]
    for (row,) in parts.TOGETHER.run(specs, tmp_path):
        assert row["fate"] != "diverged"
        assert all(np.isfinite(value) for value in row.values() if isinstance(value, float))
        assert row["sharpness_head"] == pytest.approx(row["sharpness_head_endless"], rel=1)  # of 50 draws


def test_dynamics(monkeypatch, tmp_path):
    monkeypatch.setattr(learning, "worth_compiling", lambda device, work: True)
    monkeypatch.setattr(dynamics, "every", lambda steps: 20)
    specs = [replace(spec, steps=40) for spec in dynamics.PAPER[:20]]
    for rows in dynamics.run_all(specs, tmp_path):
        assert [row["step"] for row in rows] == [0, 20, 40]


@pytest.mark.parametrize("study", [generalization, scratchpad], ids=["generalization", "scratchpad"])
def test_studies_with_runs_of_their_own(study, monkeypatch, tmp_path):
    monkeypatch.setattr(study, "worth_compiling", lambda device, work: True)
    specs = [replace(spec, steps=40) for spec in study.PAPER[-5:]]
    for rows in study.run_together(specs, tmp_path):
        assert all(np.isfinite(value) for row in rows for value in row.values() if isinstance(value, float))
