import math

import pytest

from teeter.errors import InputError
from teeter.measure import Estimate


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
