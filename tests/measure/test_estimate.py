import math

import pytest
import torch

from teeter.errors import InputError
from teeter.measure import Estimate, mean_of_inputs


def test_an_exact_value_has_no_doubt():
    exact = Estimate.exact(0.25, n=8)
    assert (exact.low, exact.high, exact.half_width, exact.confidence, exact.n) == (0.25, 0.25, 0.0, 1.0, 8)


@pytest.mark.parametrize(
    ("value", "low", "high"), [(0.5, 0.6, 0.7), (0.8, 0.6, 0.7), (math.nan, 0, 1), (0.5, 0, math.nan)]
)
def test_a_value_outside_its_interval_is_refused(value, low, high):
    with pytest.raises(InputError, match="lies within its interval"):
        Estimate(value, low, high, 1)


def test_bad_confidence_is_refused():
    with pytest.raises(InputError, match="confidence"):
        Estimate(0.5, 0.4, 0.6, 1, confidence=0.0)
    with pytest.raises(InputError, match="confidence"):
        mean_of_inputs(torch.rand(10), confidence=1.0)


def test_student_interval_by_hand():
    estimate = mean_of_inputs(torch.tensor([0.0, 0.5, 1.0]))
    assert estimate.value == 0.5
    half = 4.302652729911275 * 0.5 / math.sqrt(3)  # t quantile with two degrees of freedom
    assert (estimate.low, estimate.high) == (max(0, 0.5 - half), min(1, 0.5 + half))
    narrow = mean_of_inputs(torch.tensor([0.4, 0.5, 0.6]))
    assert narrow.half_width == pytest.approx(4.302652729911275 * 0.1 / math.sqrt(3), rel=1e-6)


def test_all_zeros_and_all_ones_still_have_doubt():
    zero, one = mean_of_inputs(torch.zeros(50)), mean_of_inputs(torch.ones(50))
    assert zero.low == 0
    assert (1 - zero.high) ** 50 == pytest.approx(0.025)
    assert (one.low, one.high) == (pytest.approx(1 - zero.high), 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.tensor([0.5]), "at least two inputs, got shape \\(1,\\)"),
        (torch.rand(2, 2), "at least two inputs"),
        (torch.tensor([0.5, 1.5]), "lie in \\[0, 1\\]"),
        (torch.tensor([0.5, math.nan]), "lie in \\[0, 1\\]"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(InputError, match=message):
        mean_of_inputs(values)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_intervals_cover_when_flips_cluster_in_inputs(rate):
    """Inputs differ in their own rate (a beta law), so draws on one input are far from independent."""
    generator = torch.Generator().manual_seed(0)
    runs, inputs, tokens, covered = 2000, 400, 50, 0
    spread = 2.0
    gamma = torch.distributions.Beta(spread * rate, spread * (1 - rate))
    torch.manual_seed(0)
    own = gamma.sample((runs, inputs))
    flips = torch.binomial(torch.full_like(own, tokens), own, generator=generator) / tokens
    for row in flips:
        estimate = mean_of_inputs(row)
        covered += estimate.low <= rate <= estimate.high
    assert covered / runs >= 0.935  # 0.95 less three standard errors of 2,000 runs
    naive = 1.96 * (rate * (1 - rate) / (inputs * tokens)) ** 0.5
    assert mean_of_inputs(flips[0]).half_width > 2 * naive  # what treating draws as independent would have claimed
