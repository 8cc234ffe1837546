import math

import pandas as pd
import pytest

from teeter.errors import InputError
from teeter.runs import Store
from teeter.studies.hahn2024.functions import STUDY, Spec, closed_form, run


def test_rows_against_known_values():
    assert run(Spec("parity", 6)) == [{"average": 6.0, "maximum": 6.0, "closed_form": 6.0}]
    assert run(Spec("majority", 5)) == [{"average": 1.875, "maximum": 3.0, "closed_form": 1.875}]
    (mean,) = run(Spec("mean", 8))
    assert list(mean.values()) == pytest.approx([1 / 8] * 3, rel=1e-13)


def test_majority_by_counting_edges():
    for n in range(1, 12):
        plus = [x.bit_count() > n / 2 for x in range(1 << n)]
        edges = sum(plus[x] != plus[x ^ (1 << i)] for x in range(1 << n) for i in range(n))
        assert closed_form("majority", n) == edges / 2**n


def test_claims_at_smoke(tmp_path):
    verdicts = {j.claim.claim.split(" (")[0]: j for j in STUDY.execute("smoke", Store(tmp_path)).judgements}
    for name in ("PARITY: as_n / n", "FIRST: as_n", "MEAN: n as_n", "MAJORITY: as_n over its closed form"):
        assert verdicts[name].verdict == "reproduced"
        assert verdicts[name].estimate.value == pytest.approx(1, abs=1e-12)
    # Two statements of the paper that the definition does not bear out: see the study's departures.
    assert verdicts["MAJORITY: largest s(f,x) / n"].verdict == "not reproduced"
    assert verdicts["MAJORITY: largest s(f,x) / n"].estimate.value == 5 / 9
    assert verdicts["MEAN: exponent of s(f,x) in n"].estimate.value == pytest.approx(-1)


def test_a_missing_value_is_not_passed_over():
    rows = [{"function": spec.function, "n": spec.n, **run(spec)[0]} for spec in STUDY.specs("smoke")]
    rows[6]["average"] = math.nan
    with pytest.raises(InputError, match="got nan"):
        [claim.judge(pd.DataFrame(rows)) for claim in STUDY.claims]
