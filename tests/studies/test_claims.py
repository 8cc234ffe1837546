"""The rule that decides."""

import pandas as pd
import pytest

from teeter.errors import InputError
from teeter.measure import Estimate
from teeter.report.words import interval_heading
from teeter.studies import Claim
from teeter.studies.over_runs import unknown

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
    [(-0.05, True, "reproduced"), (0.2, True, "undecided"), (0.2, False, "reproduced"), (0.6, True, "not reproduced")],
)
def test_of_what_is_absent_all_of_the_interval_is_small(value, strict, expected):
    claim = Claim("no effect", 0, lambda table: Estimate(value, value - 0.2, value + 0.2, 9), 0.3, 0.3, strict)
    assert claim.judge(pd.DataFrame({"x": [1]})).verdict == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.1, 0.2, "reproduced"), (0.9, 1.0, "reproduced"), (0.05, 0.2, "undecided"), (0.01, 0.09, "not reproduced")],
)
def test_where_the_paper_has_words_a_range_decides(low, high, expected):
    claim = Claim("some", None, lambda table: Estimate((low + high) / 2, low, high, 9), allows=(0.1, 1.0))
    judged = claim.judge(TABLE)
    assert judged.verdict == expected
    assert judged.record()["published"] is None


def test_more_than_what_is_published_may_be_as_good():
    claim = Claim("less is better", 0.7, lambda table: Estimate(0.3, 0.2, 0.4, 9), allows=(0.0, 0.9))
    assert claim.judge(TABLE).verdict == "reproduced"
    assert claim.judge(TABLE).record()["published"] == 0.7


def test_a_claim_compares_with_something():
    with pytest.raises(InputError, match="or with a range that it allows: nothing"):
        Claim("nothing", None, lambda table: Estimate.exact(1.0))


def test_what_no_run_speaks_to_is_not_told_as_measured():
    claim = Claim("c", 0.5, lambda table: unknown((0.0, 1.0)))
    judged = claim.judge(TABLE)
    assert judged.verdict == "undecided"
    assert [judged.record()[name] for name in ("measured", "low", "high")] == [None] * 3
    assert interval_heading([judged]) == "interval"
    assert Claim("c", 0.5, lambda table: Estimate.exact(0.5)).judge(TABLE).record()["measured"] == 0.5
