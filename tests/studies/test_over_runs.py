"""What runs say together, against scipy, by hand, and by how often its intervals hold the truth."""

import numpy as np
import pytest
from scipy import stats

from teeter.studies.over_runs import (
    FAR,
    POSITIVE,
    Fitted,
    correlation,
    line,
    mean,
    rank_correlation,
    ratio,
    regression,
    share,
    slope,
    spread,
    unknown,
)

X, Y = np.array([4.0, 4, 6, 8, 10, 10]), np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.7])
DRAW = np.random.default_rng(0)


def ends(found):
    return found.low, found.high


def test_a_line_is_that_of_scipy():
    found, known = line(X, Y), stats.linregress(X, Y)
    assert found is not None
    assert (found.value, found.error, found.free, found.runs) == pytest.approx((known.slope, known.stderr, 4, 6))
    half = stats.t.ppf(0.975, 4) * known.stderr
    assert ends(slope(X, Y)) == pytest.approx((known.slope - half, known.slope + half))
    assert slope(X, Y, (0.01, 0.08)).high == 0.08


@pytest.mark.parametrize("rise", [0.1, 0.0])
def test_slopes_that_are_exact(rise):
    found = slope([1, 2, 3], [0.5, 0.5 + rise, 0.5 + 2 * rise])
    assert found.value == pytest.approx(rise, abs=1e-12)
    assert found.half_width == 0


@pytest.mark.parametrize(("x", "y"), [([], []), ([1, 2], [1, 2]), ([3, 3, 3], [1, 2, 3])])
def test_too_little_for_a_line(x, y):
    assert line(x, y) is None
    assert slope(x, y, (-1, 1)) == unknown((-1, 1))


def test_a_spread_by_its_formula():
    known = stats.linregress(X, Y)
    squares = float(np.square(Y - known.intercept - known.slope * X).sum())
    found = spread(X, Y)
    assert (found.value, found.n) == pytest.approx((np.sqrt(squares / 4), 6))
    assert ends(found) == pytest.approx(tuple(np.sqrt(squares / stats.chi2.ppf([0.975, 0.025], 4))))
    assert spread(X, 3 * X) == spread(X, 0 * X)  # both 0, and exactly
    assert spread([1, 2], [1, 2]) == unknown(POSITIVE)
    assert spread(X, Y, (0, 0.2)).high == 0.2


def test_a_spread_covers_as_often_as_it_says():
    draw = np.random.default_rng(2)
    found = [spread(X, 0.1 * X + draw.normal(0, 0.3, len(X))) for _ in range(4000)]
    held = [each.low <= 0.3 <= each.high for each in found]
    assert 0.94 < np.mean(held) < 0.96


def test_two_slopes_at_once():
    a, b = DRAW.normal(size=(2, 20))
    first, second = regression(3 * a - 2 * b + 7, [a, b])
    assert (first.value, second.value) == pytest.approx((3, -2))
    assert (first.error, second.error, first.free) == (pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-12), 17)
    assert regression(a, [b, 2 * b]) is None


def test_errors_of_two_slopes_by_simulation():
    a = DRAW.normal(size=15)
    b = a + DRAW.normal(size=15)
    fits = [regression(a - b + DRAW.normal(size=15), [a, b]) for _ in range(2000)]
    held = [abs(fit[1].value + 1) <= fit[1].half_width for fit in fits]
    assert 0.935 < np.mean(held) < 0.965


def test_a_ratio_by_hand():
    top, bottom = Fitted(0.06, 0.003, 28, 30), Fitted(0.03, 0.0, 18, 20)
    found = ratio(top, bottom)
    assert (found.value, found.half_width, found.n) == pytest.approx((2, top.half_width / 0.03, 50))
    assert ratio(top, Fitted(0.001, 0.001, 18, 20)) == unknown()  # it may be zero
    assert ratio(None, bottom) == unknown()
    assert ratio(Fitted(5.0, 0.0, 7, 9), Fitted(0.1, 0.0, 7, 9), (-10, 10)).value == pytest.approx(50)  # beyond limits


@pytest.mark.parametrize("below", [0.3, 1.5])  # at 1.5 the delta method would not do
def test_a_ratio_covers_as_often_as_it_says(below):
    draw = np.random.default_rng(1)
    top, bottom = draw.normal(-1.0, 0.2, 4000), draw.normal(5.0, below, 4000)
    found = [ratio(Fitted(t, 0.2, 10**6, 9), Fitted(b, below, 10**6, 9)) for t, b in zip(top, bottom, strict=True)]
    held = [each.low <= -0.2 <= each.high for each in found if each.high < FAR]
    assert len(held) > 3000
    assert np.mean(held) >= 0.94


def test_means_and_shares():
    known = stats.ttest_1samp(Y, 0).confidence_interval()
    assert ends(mean(Y)) == pytest.approx((known.low, known.high))
    assert mean(Y, (0.3, 0.4)).low == 0.3
    assert mean([3.0], (0, 2)) == unknown((0, 2))
    assert share([True] * 12).low == pytest.approx(0.025 ** (1 / 12))
    assert share([False] * 10).high == pytest.approx(1 - 0.025**0.1)


def test_what_is_not_known():
    assert (unknown().value, *ends(unknown()), unknown().n) == (0, -FAR, FAR, 0)
    assert (unknown(POSITIVE).value, unknown((0, 1)).value) == (0, 0.5)


def test_correlation_is_scipys_where_nothing_is_given():
    x = DRAW.normal(size=30)
    y = x + DRAW.normal(size=30)
    found, known = correlation(x, y), stats.pearsonr(x, y)
    interval = known.confidence_interval()
    assert (found.value, *ends(found)) == pytest.approx((known.statistic, interval.low, interval.high))
    assert found.n == 30


def test_partial_correlation_by_its_formula():
    x, y, z = DRAW.normal(size=(3, 50)) + DRAW.normal(size=50)
    r = np.corrcoef([x, y, z])
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    found = correlation(x, y, [z])
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
    assert correlation(x, y, given) == unknown((-1, 1))


def test_rank_correlation():
    found = rank_correlation(X, Y)
    assert found.value == pytest.approx(stats.spearmanr(X, Y).statistic)
    assert -1 <= found.low < found.value < found.high <= 1
    assert rank_correlation(X, Y) == found
    assert rank_correlation(X, -(Y**3)).value == pytest.approx(-found.value)
    for x, y in (([1, 2, 3], [1, 2, 3]), (np.ones(9), np.arange(9))):
        assert ends(rank_correlation(x, y)) == (-1, 1)
