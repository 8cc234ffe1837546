"""The rule that decides."""

import pandas as pd
import pytest

from teeter.measure import Estimate
from teeter.studies import Claim

TABLE = pd.DataFrame({"x": [1]})


def verdict(estimate, published=0.3, tolerance=0.0005, resolution=None):
    return Claim("c", published, lambda table: estimate, tolerance, resolution).judge(TABLE).verdict


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate.exact(0.3), "reproduced"),
        (Estimate.exact(0.3004), "reproduced"),
        (Estimate.exact(0.3006), "not reproduced"),
        (Estimate.exact(0.2994), "not reproduced"),
        (Estimate(0.31, 0.29, 0.33, 10), "reproduced"),
        (Estimate(0.33, 0.31, 0.35, 10), "not reproduced"),
        (Estimate(0.27, 0.25, 0.29, 10), "not reproduced"),
        (Estimate(0.31, 0.21, 0.41, 10), "undecided"),
        (None, "not run at this tier"),
    ],
)
def test_verdicts(estimate, expected):
    assert verdict(estimate) == expected


def test_resolution_is_the_claims_own_where_it_is_given():
    wide = Estimate(0.0, 0.0, 0.02, 10)
    assert verdict(wide, published=0.0, resolution=0.02) == "reproduced"
    assert verdict(wide, published=0.0, resolution=0.005) == "undecided"


def test_an_empty_table_is_not_measured():
    claim = Claim("c", 1.0, lambda table: Estimate.exact(table.x.iloc[0]))
    assert claim.judge(TABLE.iloc[:0]).verdict == "not run at this tier"
    assert claim.judge(TABLE).record() == {
        "claim": "c",
        "published": 1.0,
        "measured": 1,
        "low": 1,
        "high": 1,
        "verdict": "reproduced",
    }


@pytest.mark.parametrize(
    ("value", "strict", "expected"),
    [(0.2, True, "reproduced"), (0.4, True, "undecided"), (0.4, False, "reproduced"), (0.9, True, "not reproduced")],
)
def test_of_what_is_absent_the_value_itself_is_small(value, strict, expected):
    claim = Claim("no effect", 0, lambda table: Estimate(value, value - 0.2, value + 0.2, 9), 0.3, 0.3, strict)
    assert claim.judge(pd.DataFrame({"x": [1]})).verdict == expected
