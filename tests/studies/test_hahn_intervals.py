"""What runs say together, against scipy and by hand."""

import numpy as np
import pytest
from scipy import stats

from teeter.studies.hahn2024.intervals import Line, line, mean, rank_correlation, ratio, share, slope

X, Y = np.array([4.0, 4, 6, 8, 10, 10]), np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.7])


def test_a_line_is_that_of_scipy():
    found, known = line(X, Y), stats.linregress(X, Y)
    assert found is not None
    assert (found.slope, found.error) == pytest.approx((known.slope, known.stderr))
    half = stats.t.ppf(0.975, 4) * known.stderr
    assert (slope(X, Y).low, slope(X, Y).high) == pytest.approx((known.slope - half, known.slope + half))


def test_slopes_that_are_exact():
    assert slope([1, 2, 3], [0.5, 0.6, 0.7]).value == pytest.approx(0.1)
    assert slope([1, 2, 3], [0.5, 0.6, 0.7]).half_width == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("x", "y"), [([], []), ([1, 2], [1, 2]), ([3, 3, 3], [1, 2, 3])])
def test_too_little_for_a_line(x, y):
    assert line(x, y) is None
    assert (slope(x, y).low, slope(x, y).high) == (-1, 1)


def test_a_ratio_of_slopes():
    found = ratio(Line(0.06, 0.003, 30), Line(0.03, 0.001, 20), (-10, 10))
    half = stats.t.ppf(0.975, 18) * 2 * np.hypot(0.003 / 0.06, 0.001 / 0.03)
    assert (found.value, found.half_width, found.n) == pytest.approx((2, half, 50))
    assert ratio(Line(0.06, 0.003, 30), Line(0.001, 0.001, 20), (-10, 10)).half_width == 10  # no slope to divide by
    assert ratio(None, Line(0.03, 0.001, 20), (-10, 10)).half_width == 10
    assert ratio(Line(5.0, 0.0, 9), Line(0.1, 0.0, 9), (-10, 10)).value == pytest.approx(50)  # beyond the limits


def test_means_and_shares():
    known = stats.ttest_1samp(Y, 0).confidence_interval()
    assert (mean(Y, (-9, 9)).low, mean(Y, (-9, 9)).high) == pytest.approx((known.low, known.high))
    assert mean(Y, (0.3, 0.4)).low == 0.3
    assert (mean([], (0, 2)).low, mean([], (0, 2)).high) == (0, 2)
    assert share([True] * 12).low == pytest.approx(0.025 ** (1 / 12))


def test_rank_correlation():
    found = rank_correlation(X, Y)
    assert found.value == pytest.approx(stats.spearmanr(X, Y).statistic)
    assert -1 <= found.low < found.value < found.high <= 1
    assert rank_correlation(X, Y) == found
    assert rank_correlation(X, -(Y**3)).value == pytest.approx(-found.value)
    for x, y in (([1, 2, 3], [1, 2, 3]), (np.ones(9), np.arange(9))):
        assert (rank_correlation(x, y).low, rank_correlation(x, y).high) == (-1, 1)
