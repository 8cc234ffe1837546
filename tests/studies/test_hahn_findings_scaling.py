"""Findings that the findings and the departures of `scaling` name are those of the results they stand on."""

import math

import pytest
from scipy import stats

from teeter.runs import Store, elapsed
from teeter.studies import find, over_runs
from teeter.studies.hahn2024 import lengths, parts, scaling
from tests.test_records import FINDINGS, ROOT


def test_what_is_said_of_table_2():
    """As the findings and the departures of `scaling` have it."""
    study = find("hahn2024/scaling")
    outcome = study.outcome("paper", Store(ROOT / "results"))
    found = {each.claim.claim.split(" (")[0]: each.estimate for each in outcome.judgements}
    slope, lost = (
        {kind: found[f"PARITY, {kind}: {what}"] for kind in ("text", "released")}
        for what in ("slope of sharpness over n", "share of runs discarded")
    )
    said = " ".join(study.departures)
    assert f"slope of {slope['released'].value:.3f} and loses {100 * lost['released'].value:.0f} % of its runs" in said
    assert f"the latter {slope['text'].value:.3f} and {100 * lost['text'].value:.0f} %" in said
    assert slope["released"].low < 0.05 < slope["released"].high
    assert slope["text"].low > 0.05
    assert f"released code's model ({slope['released'].value:.3f})" in FINDINGS
    assert f"describes ({slope['text'].value:.3f})" in FINDINGS
    for kind in ("text", "released"):
        assert round(1 / found[f"MAJORITY, {kind}: slope over PARITY's"].value) == 17
        for name in ("FIRST", "MEAN"):
            flat = found[f"{name}, {kind}: slope of sharpness over n"]
            assert flat.low < 0 < flat.high
        words = "sharpness over PARITY's at n of 17 to 30"
        majority, *flat = (found[f"{name}, {kind}: {words}"] for name in ("MAJORITY", "FIRST", "MEAN"))
        assert round(1 / majority.value) == 6 and majority.low > 0.1
        assert all(round(1 / each.value) in (8, 9) and each.low < 0.1 < each.high for each in flat)
    table = outcome.table
    less = [
        lengths.ratio(name, "parity", kind, 17, "sharpness_100")(table)
        for kind in ("released", "text")
        for name in ("first", "mean")
    ]
    words = "model, {:.3f} ({:.3f} to {:.3f}) and {:.3f} ({:.3f} to {:.3f}), while the text's has"
    words += " {:.3f} ({:.3f} to {:.3f}) and {:.3f} ({:.3f} to {:.3f})."
    assert words.format(*(number for each in less for number in (each.value, each.low, each.high))) in said
    assert [each.low > 0.1 for each in less] == [True, True, False, False]
    off = (table.sharpness / table.sharpness_100).loc[table.converged.astype(bool)]
    off = off.groupby([table.variant, table.function]).std()
    assert (round(100 * off.min()), off.idxmin()[1]) == (16, "parity") and (
        round(100 * off.max()),
        off.idxmax()[1],
    ) == (39, "mean")
    for kind in ("text", "released"):
        for name, implied in (("first", 0.003), ("mean", 0.002)):
            own = table.loc[(table.function == name) & (table.variant == kind)]
            assert own.sharpness_100.mean() == pytest.approx(0.13, abs=0.01)
            assert own.groupby("n").sharpness_100.mean().between(0.11, 0.145).all()
            assert over_runs.spread(own.n, own.sharpness).value == pytest.approx(0.05, abs=0.006)
            assert over_runs.spread(own.n, own.sharpness_100).value == pytest.approx(0.013, abs=0.0015)
            assert round(parts.implied_spread(scaling.TABLE_2[name]), 3) == implied
    words = "{:.4f} ({:.4f} to {:.4f}) and {}{:.2f} ({:.2f} to {:.2f})"
    for kind, r in (("released", "r = "), ("text", "")):
        own = table.loc[(table.function == "majority") & (table.variant == kind)]
        rise, with_n = (each(own.n, own.sharpness_100) for each in (over_runs.slope, over_runs.correlation))
        assert words.format(rise.value, rise.low, rise.high, r, with_n.value, with_n.low, with_n.high) in said
        assert (rise.low < 0.0018 < rise.high and with_n.low < 0.67 < with_n.high) is (kind == "released")
    at_20 = (
        table.loc[(table.function == "parity") & (table.n == 20) & table.converged].groupby("variant").sharpness.mean()
    )
    assert at_20.between(0.95, 1.05).all() and "near 1 at 20 bits" in FINDINGS
    last = table.loc[(table.function == "parity") & (table.n >= 24) & table.converged].groupby("variant").sharpness_100
    assert last.agg(["count", "min", "max"]).round(2).T.to_dict("list") == {
        "released": [5, 0.97, 1.16],
        "text": [4, 1.13, 2.32],
    }


def test_two_models_at_the_same_lengths():
    """PARITY at even ones, and the text's without its last two runs, as the departures of `scaling` have it."""
    study = find("hahn2024/scaling")
    table = study.outcome("paper", Store(ROOT / "results")).table
    table = table.loc[table.function == "parity"]
    own = table.loc[(table.variant == "text") & table.converged]
    assert sorted(own.n[own.n > 24]) == [27, 29]
    assert round(over_runs.slope(own.n[own.n <= 24], own.sharpness[own.n <= 24]).value, 3) == 0.061
    table = table.loc[table.n % 2 == 0]
    every = {kind: table.loc[table.variant == kind] for kind in ("text", "released")}
    text, released = (over_runs.line(own.n[own.converged], own.sharpness[own.converged]) for own in every.values())
    assert 0 < text.value - released.value < 1.96 * math.hypot(text.error, released.error)
    lost = [[int((~own.converged).sum()), int(own.converged.sum())] for own in every.values()]
    assert stats.fisher_exact(lost).pvalue > 0.05
    said = f"the text's model has a slope of {text.value:.3f} and loses {100 * lost[0][0] / sum(lost[0]):.0f} %"
    assert said in " ".join(study.departures)


def test_two_cores_show_figure_1_in_minutes():
    """PARITY's slope is ten times MAJORITY's at least, and significant, at the small tier of `scaling`."""
    outcome = find("hahn2024/scaling").outcome("small", Store(ROOT / "results"))
    steep = {name: lengths.slope(name, "text")(outcome.table) for name in ("parity", "majority")}
    assert steep["parity"].low > 0
    assert steep["parity"].value > 10 * steep["majority"].value > 0
    assert {(each["cores"], each["accelerator"]) for each in outcome.provenance} == {(2, None)}
    assert elapsed(outcome.provenance) < 8 * 60
