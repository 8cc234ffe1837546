"""Random networks: the measures on functions whose sensitivity is known, and the claims on hand-made tables."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.backends import cudnn

from teeter import cube
from teeter.studies.hahn2024 import initialization as study

CPU = torch.device("cpu")


@pytest.mark.parametrize("n", [6, 14])  # exact, and sampled: PARITY and FIRST are the same at every string
def test_measures_of_known_functions(n):
    parity = study.measured(cube.parity, n, 256, CPU)
    assert (parity["flip"], parity["square"], parity["last"]) == pytest.approx((n, n, 1 / n), rel=0.02)
    assert parity["constant"] == 0
    if n == 6:
        last = study.measured(lambda x: 5 + 0.01 * x[:, -1], n, 256, CPU)
        assert (last["flip"], last["square"], last["last"], last["constant"]) == pytest.approx((1, 1, 1, 1))
        assert last["variance"] == pytest.approx(1e-4, rel=1e-3)


def test_a_sum_of_degrees():
    """Half of the weight at degree 1, half at degree 3: the mean degree is 2, wherever the function is centred."""
    found = study.measured(lambda x: 7 + x[:, 0] + x[:, 0] * x[:, 1] * x[:, 2], 5, 0, CPU)
    assert found["square"] == pytest.approx(2)


def test_a_sampled_measure_near_the_exact_one():
    f = lambda x: x[:, :9].sum(-1)  # noqa: E731
    found = study.measured(f, 20, 4096, CPU)
    assert found["square"] == pytest.approx(1, abs=0.1)
    assert found["flip"] == pytest.approx(cube.average_sensitivity(cube.truth_table(cube.majority, 9)), abs=0.3)


def test_intervals_hold_the_exact_values():
    """Of MAJORITY of 9 bits of 14, and of a sum of unequal bits and a product; from 16 times as many strings, a quarter
    as wide. One in twenty may miss."""
    exact = cube.average_sensitivity(cube.truth_table(cube.majority, 9))
    f = lambda x: x[:, :9].sum(-1)  # noqa: E731
    few, many = (study.measured(f, 14, strings, CPU) for strings in (512, 8192))
    for found in (few, many):
        assert found["flip_low"] < exact < found["flip_high"]
        assert found["square_low"] < 1 < found["square_high"]
    for name in ("flip", "square"):
        widths = [found[f"{name}_high"] - found[f"{name}_low"] for found in (few, many)]
        assert widths[1] == pytest.approx(widths[0] / 4, rel=0.2)
    alone = study.measured(cube.majority, 9, 0, CPU)
    assert alone["flip_low"] == alone["flip"] == alone["flip_high"] == pytest.approx(exact)

    g = lambda x: x[:, 0] + 2 * x[:, 1] + 3 * x[:, 2] * x[:, 3]  # noqa: E731
    truth, hits = (1 + 4 + 2 * 9) / (1 + 4 + 9), 0  # the mean degree
    for k in range(40):
        chosen = torch.randperm(14, generator=torch.Generator().manual_seed(k))  # other strings for the same function
        found = study.measured(lambda x, chosen=chosen: g(x[:, chosen]), 14, 128, CPU)
        hits += found["square_low"] < truth < found["square_high"]
    assert hits >= 34


def test_the_last_bit_is_flipped_in_every_string():
    """A function that is nearly that bit alone is known well from few strings, and others know it otherwise."""
    f = lambda x: x[:, -1] + 0.1 * x[:, 0]  # noqa: E731
    found = [study.measured(f, 40, 512, CPU, seed) for seed in range(8)]
    squares = np.array([each["square"] for each in found])
    assert len(set(squares)) == 8  # each of other strings
    assert squares == pytest.approx(1, abs=0.03)
    assert all(each["square_high"] - each["square_low"] < 0.1 for each in found)
    assert sum(each["square_low"] <= 1 <= each["square_high"] for each in found) >= 6
    assert [each["last"] for each in found] == pytest.approx([1 / 1.01] * 8, abs=0.03)
    assert all(each["flip_low"] <= 1 <= each["flip_high"] for each in found)


def test_measured_in_float32_whatever_cudnn_would_do(monkeypatch):
    seen, model = [], study.random_model(study.Spec("gru", 4, dim=4), 0)
    model.register_forward_pre_hook(lambda *given: seen.append(cudnn.allow_tf32))
    monkeypatch.setattr(study, "random_model", lambda spec, seed: model)
    study.run(study.Spec("gru", 4, dim=4, models=1))
    assert cudnn.allow_tf32
    assert set(seen) == {False}


def test_a_constant_has_no_sensitivity():
    found = study.measured(lambda x: torch.full((len(x),), 0.1), 4, 0, CPU)
    assert (found["flip"], found["square"], found["last"], found["constant"]) == (0, 0, 0, 1)


@pytest.mark.parametrize("kind", study.KINDS)
def test_models_are_scaled_and_seeded(kind):
    one, four = (study.random_model(study.Spec(kind, 5, scale, dim=8), seed=3) for scale in (1.0, 4.0))
    for (name, a), b in zip(one.named_parameters(), four.parameters(), strict=True):
        assert torch.equal(b, 4 * a if a.ndim > 1 else a), name
    assert one(torch.ones(2, 5)).shape == (2,)
    again = study.random_model(study.Spec(kind, 5, dim=8), seed=3)
    assert all(map(torch.equal, one.parameters(), again.parameters()))


def table(**columns):
    rows = []
    for kind, power in (("encoder", 0.5), ("lstm", 1.0)):
        for n in (8, 16, 32):
            rows += [
                {"model": kind, "n": n, "seed": seed, "square": n**power, "flip": n**power, "variance": 1 / n}
                for seed in range(10)
            ]
    return pd.DataFrame(rows).assign(scale=1.0, layers=2, dim=64, **columns)


def test_claims_on_a_table():
    assert study.lower("lstm", "flip", 1.0)(table()).value == 1
    assert study.exponent("encoder", 1.0)(table()).value == pytest.approx(0.5)
    assert study.exponent("encoder", 1.0, raw=True)(table()).value == pytest.approx(-0.5)
    assert study.exponent("lstm", 1.0)(table()).half_width == pytest.approx(0, abs=1e-9)
    nothing = study.exponent("encoder", 1.0)(table(square=0.0))
    assert (nothing.low, nothing.high) == (-3, 3)


def test_the_grid():
    assert len(study.PAPER) == 4 * (9 * 2 + 5 + 3 * 2 + 5 * 2)
    assert {spec.models for spec in study.PAPER} == {20}
    assert {spec.strings for spec in study.PAPER} == {4_096}
    assert max(spec.strings for spec in study.SMOKE + study.SMALL) == 512
    assert np.unique([spec.n for spec in study.PAPER]).tolist() == [4, 6, 8, 10, 12, 16, 32, 64, 128]


def test_what_is_bounded_is_so_with_all_of_its_interval():
    bounds = [claim for claim in study.CLAIMS if "exponent" in claim.claim]
    assert len(bounds) == 5
    assert all(claim.strict for claim in bounds)
