"""Intervals of rates and means over inputs, by hand and at their edges; coverage is tried in tests/coverage."""

import math

import pytest
import torch
from scipy import stats

from teeter.errors import InputError
from teeter.measure import Tally


def flips(values):
    values = torch.as_tensor(values, dtype=torch.float64)
    return Tally(values, torch.ones_like(values))


def test_one_draw_an_input_is_clopper_and_pearson():
    estimate = flips([1.0] * 30 + [0.0] * 70).estimate()
    exact = stats.binomtest(30, 100).proportion_ci(0.95, "exact")
    assert estimate.value == 0.3
    assert estimate.low == pytest.approx(exact.low, abs=0.002)
    assert estimate.high == pytest.approx(exact.high, abs=0.002)


def test_all_or_none_is_not_helped_by_more_draws():
    one = flips([1.0] * 30 + [0.0] * 70).estimate()
    ten = Tally(torch.tensor([10.0] * 30 + [0.0] * 70).double(), torch.full((100,), 10.0).double()).estimate()
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


def test_inputs_that_agree_are_still_only_so_many_inputs():
    for value in (0.0, 0.5, 1.0):
        estimate = flips([value] * 40).estimate()
        assert estimate.low < estimate.high
        assert estimate.low <= value <= estimate.high
        assert estimate.high - estimate.low > 0.08
    assert (1 - flips([0.0] * 50).estimate().high) ** 50 == pytest.approx(0.025)


@pytest.mark.parametrize("draws", [1, 10])
def test_a_flip_more_never_lowers_the_ends(draws):
    counts = torch.full((1000,), float(draws), dtype=torch.float64)
    ends = [Tally(torch.cat([torch.ones(k), torch.zeros(1000 - k)]).double(), counts).estimate() for k in range(12)]
    assert all(a.low <= b.low and a.high <= b.high for a, b in zip(ends, ends[1:], strict=False))


def test_truth_values_are_a_rate_in_whatever_type():
    for changes in (torch.tensor([True, False]), torch.tensor([1.0, 0.0])):
        tally = Tally.empty(2)
        tally.add(torch.arange(2), changes)
        assert tally.rate
    tally.add(torch.arange(2), torch.tensor([0.5, 0.0]))
    assert not tally.rate


@pytest.mark.parametrize(("flipping", "inputs"), [(3, 100), (8, 400)])
def test_few_flips_are_covered(flipping, inputs):
    rate = flipping / inputs
    torch.manual_seed(0)
    runs = (torch.rand(1000, inputs, dtype=torch.float64) < rate).double()
    covered = sum((e := flips(run).estimate()).low <= rate <= e.high for run in runs)
    assert covered >= 940


def test_means_are_student():
    estimate = Tally(torch.tensor([0.0, 0.5, 1.0]).double(), torch.ones(3).double(), rate=False).estimate()
    assert estimate.half_width == pytest.approx(4.302652729911275 * 0.5 / math.sqrt(3))


def test_by_input_gives_every_input_one_vote_and_remembers_its_draws():
    tally = Tally(torch.tensor([2.0, 0.0, 0.0]).double(), torch.tensor([2.0, 8.0, 0.0]).double())
    once = tally.by_input()
    assert once.estimate().value == 0.5
    assert once.estimate().n == 2
    assert once.draws == 10


def test_merging_is_adding():
    a, b = flips([1.0, 0.0]), Tally(torch.tensor([0.5, 0.5]).double(), torch.ones(2).double(), rate=False)
    both = a + b
    assert both.sums.tolist() == [1.5, 0.5]
    assert both.counts.tolist() == [2, 2]
    assert not both.rate


def test_bad_input():
    with pytest.raises(InputError, match="at least two inputs, got 1"):
        flips([1.0]).estimate()
    with pytest.raises(InputError, match="confidence lies in"):
        flips([1.0, 0.0]).estimate(1.0)
