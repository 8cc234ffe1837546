"""Random networks: the measures on functions whose sensitivity is known, and the claims on hand-made tables."""

import numpy as np
import pandas as pd
import pytest
import torch

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
    assert np.unique([spec.n for spec in study.PAPER]).tolist() == [4, 6, 8, 10, 12, 16, 32, 64, 128]
