"""Intervals over runs against scipy's and against tables with a known answer."""

import numpy as np
import pytest
from scipy import stats

from teeter.studies.hahn2024.over_runs import ANYTHING, mean, partial_correlation, ratio, regression, share, unknown

DRAW = np.random.default_rng(0)


def test_correlation_is_scipys_where_nothing_is_given():
    x = DRAW.normal(size=30)
    y = x + DRAW.normal(size=30)
    found, known = partial_correlation(x, y), stats.pearsonr(x, y)
    interval = known.confidence_interval()
    assert (found.value, found.low, found.high) == pytest.approx((known.statistic, interval.low, interval.high))
    assert found.n == 30


def test_partial_correlation_by_its_formula():
    x, y, z = DRAW.normal(size=(3, 50)) + DRAW.normal(size=50)
    r = np.corrcoef([x, y, z])
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    found = partial_correlation(x, y, [z])
    assert found.value == pytest.approx(expected)
    assert np.arctanh(found.high) - np.arctanh(found.low) == pytest.approx(2 * 1.959964 / np.sqrt(50 - 1 - 3))


@pytest.mark.parametrize(
    ("x", "y", "given"),
    [
        ([], [], []),
        ([1.0], [2.0], []),
        ([1.0, 2.0, 4.0], [1.0, 0.0, 2.0], []),  # three points leave no doubt to be told
        ([1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 5.0, 4.0], []),
        ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 5.0, 3.0, 5.0], [[2.0, 4.0, 6.0, 8.0, 10.0]]),
    ],
)
def test_a_correlation_that_cannot_be_known(x, y, given):
    found = partial_correlation(x, y, given)
    assert (found.value, found.low, found.high, found.n) == (0, -1, 1, len(x))


def test_regression_is_scipys():
    x = DRAW.normal(size=12)
    y = 2 * x + DRAW.normal(size=12)
    slopes, errors, free = regression(y, [x])
    known = stats.linregress(x, y)
    assert (slopes[0], errors[0], free) == pytest.approx((known.slope, known.stderr, 10))
    assert regression([1.0, 2.0], [[0.0, 1.0]]) is None
    assert regression([1.0, 2.0, 3.0, 4.0], [[1.0, 1.0, 1.0, 1.0]]) is None


def test_two_slopes_at_once():
    a, b = DRAW.normal(size=(2, 20))
    slopes, errors, free = regression(3 * a - 2 * b + 7, [a, b])
    assert slopes == pytest.approx([3, -2])
    assert errors == pytest.approx([0, 0], abs=1e-12)
    assert free == 17


def test_means_and_shares():
    values = [0.1, 0.4, 0.3, 0.7]
    known = stats.ttest_1samp(values, 0).confidence_interval()
    found = mean(values)
    assert (found.low, found.high) == pytest.approx((known.low, known.high))
    assert mean(values, low=0).low == 0
    assert mean([3.0], low=0, high=9) == unknown(1, 0, 9)
    assert (unknown(0).value, unknown(0).high, unknown(0, 2, 3).value) == (0, ANYTHING, 2)
    assert (share(0, 0).low, share(0, 0).high) == (0, 1)
    assert share(0, 10).high == pytest.approx(1 - 0.025**0.1)


def test_a_ratio_covers_as_often_as_it_says():
    draw = np.random.default_rng(1)
    top, bottom = draw.normal(1.0, 0.2, 4000), draw.normal(5.0, 0.3, 4000)
    held = [(e := ratio((t, 0.2), (b, 0.3), 10)).low <= 0.2 <= e.high for t, b in zip(top, bottom, strict=True)]
    assert 0.94 < np.mean(held) < 0.96
    assert ratio((1.0, 0.1), (0.1, 0.1), 7) == unknown(7)
