"""Findings that the findings and the departures of studies of H name are those of the results they stand on."""

import math

import pytest
from scipy import stats

from teeter.runs import Store
from teeter.studies import find, over_runs
from teeter.studies.hahn2024 import generalization, tradeoff
from teeter.studies.hahn2024.dynamics import LEARNED
from tests.test_records import FINDINGS, ROOT, spread


def test_how_many_runs_learn_parity():
    """As the findings and the departures of `dynamics` have it."""
    study = find("hahn2024/dynamics")
    table = study.outcome("paper", Store(ROOT / "results")).table
    runs = table.assign(learned=table.step.where(table.mse < LEARNED)).groupby(
        ["variant", "steps", "weight_decay", "seed"]
    )
    ends = runs.agg(learned=("learned", "min"), last=("learned", "max"), converged=("converged", "first"))
    text, released, long = (ends.loc[key] for key in (("text", 20_000), ("released", 20_000), ("text", 100_000)))
    assert (text.converged.sum(), len(text)) == (4, 40)
    assert (released.learned.notna().sum(), released.converged.sum(), len(released)) == (9, 8, 20)
    assert (long.learned.dropna().tolist(), long["last"].dropna().tolist(), len(long)) == ([3500], [6000], 10)
    assert (ends.learned.dropna() >= 6000).sum() == 1
    said = " ".join(study.departures)
    assert "4 of 40" in said and "9 of 20" in said and "at 3,500, and lost it at 6,000" in said
    counts = [[int(each) for each in kind.converged.groupby("weight_decay").sum()] for kind in (text, released)]
    assert counts == [[0, 1, 3, 0], [3, 5]]
    assert "(none, 1, 3 and none of ten at weight decays 0, 0.1, 0.2 and 0.3)" in said
    assert "(3 and 5 of ten are left at 0 and 0.1)" in said
    bends = [
        each.estimate
        for each in study.outcome("paper", Store(ROOT / "results")).judgements
        if "later half" in each.claim.claim
    ]
    words = (
        "by a factor of {:.1f} ({:.1f} to {:.1f}) in the later half of the way against the earlier; of the released "
    )
    words += "model, {:.1f} ({:.1f} to {:.1f})."
    assert words.format(*(2**end for each in bends for end in (each.value, each.low, each.high))) in said
    assert "4 runs of 40 learn PARITY" in FINDINGS


def test_what_is_said_of_the_tradeoff():
    """With the square of the norm in the regression, as the last departure has it."""
    study = find("hahn2024/tradeoff")
    table = study.outcome("paper", Store(ROOT / "results")).table
    said = study.departures[-1]

    found = [tradeoff.at_fixed_length(table, "text", name).value for name in tradeoff.FUNCTIONS]
    assert f"correlate by {max(found):.2f} to {min(found):.2f})" in FINDINGS

    def rise(name):
        runs = tradeoff.kept(table, "text", [name])
        return over_runs.regression(runs.log_blowup, [runs.norm, runs.norm**2, runs.n])[2]

    first, mean, majority = (over_runs.ratio(rise(name), rise("parity")) for name in ("first", "mean", "majority"))
    assert f"by {first.value:.2f} and {mean.value:.2f} of what" in said
    assert all(-0.25 < each.low <= each.high < 0.25 for each in (first, mean))
    assert f"it falls, by {-majority.value:.2f} ({-majority.high:.2f} to {-majority.low:.2f})" in said
    above = {}
    for n in (5, 20):
        runs = tradeoff.kept(table[table.n == n], "text")
        fit = over_runs.regression(runs.log_blowup, [runs.norm, runs.norm**2, runs.function == "parity"])[2]
        assert fit.value > 4 * fit.error
        above[n] = math.exp(fit.value)
    assert f"a factor of {above[5]:.1f} in the blow-up, against one of {above[20]:.0f} at n = 20" in said
    assert f"by a factor of {above[5]:.1f} in the blow-up at 5 bits and of {above[20]:.0f} at 20" in FINDINGS


def test_what_is_said_of_generalization():
    study = find("hahn2024/generalization")
    table = study.outcome("paper", Store(ROOT / "results")).table
    text, released = (table.loc[table.variant == name] for name in ("text", "released"))
    means = generalization.converged(text).groupby(["size", "function"]).mean(numeric_only=True).groupby("size").mean()
    few, some, half, whole = means.sensitivity
    assert f"sensitivity is {whole:.1f}," in FINDINGS
    assert f"functions of sensitivity {few:.1f}, {some:.1f} and {half:.1f}," in FINDINGS
    few, some, half = (means.sharpness[1024] / means.sharpness[size] for size in (128, 256, 512))
    assert f"by factors of {few:.1f}, {some:.1f} and {half:.1f} " in FINDINGS

    def higher(found):
        return [100 * (each - 1) for each in (found.value, found.low, found.high)]

    said = "by {:.0f} % ({:.1f} to {:.1f} %; the released model {:.0f} %, {:.1f} to {:.1f} %)"
    both = generalization.alike(text, "sharpness"), generalization.alike(released, "sharpness_released")
    assert said.format(*higher(both[0]), *higher(both[1])) in " ".join(study.departures)


def test_a_scratchpad_that_guesses_its_first_step():
    study, store = find("hahn2024/scratchpad"), Store(ROOT / "results")
    there = [key for key in study.keys("paper") if store.has(study.name, key)]
    table = store.table(study.name, there)
    (one,) = table.loc[(table.variant == "text") & (table.own_accuracy < 0.99)].itertuples()
    assert one.fate == "converged" and one.mse == pytest.approx(1 / (4 * one.n), rel=0.05)
    assert one.own_last == one.own_accuracy  # so it is the first that goes wrong, and every other with it
    said = f"at n = {one.n}: it never learned t_1, which is x_1, is right on {100 * one.accuracy:.1f} %"
    assert said in " ".join(study.departures)
    assert f"and on {100 * one.own_accuracy:.0f} % where" in " ".join(study.departures)


def test_how_sharp_a_scratchpad_is():
    """As the findings and the departures of `scratchpad` have it."""
    study = find("hahn2024/scratchpad")
    table, said = study.outcome("paper", Store(ROOT / "results")).table, " ".join(study.departures)
    assert (table.fate == "converged").all()
    words = "({}{:.2f}, {:.2f} to {:.2f}"
    for kind, column, sort in (
        ("text", "sharpness", "a correlation of "),
        ("released", "sharpness_released", ""),
    ):
        own = table.loc[table.variant == kind]
        means, rest = own.groupby("n")[column].mean(), own.loc[own.n > 4]
        assert round(means[4], 2) == 0.12 and own[column].max() < 0.25
        assert (means > means[4]).sum() == (1 if kind == "text" else 0)
        found = over_runs.correlation(rest.n, rest[column])
        assert words.format(sort, found.value, found.low, found.high) in said
        assert (found.low > 0) is (kind == "text") and found.high > 0
    text = table.loc[table.variant == "text"]
    means, rest = text.groupby("n").sharpness.mean(), text.loc[text.n > 4]
    assert f"rises, from {means[39]:.2f} to {means[320]:.2f} at 320" in said
    rise = over_runs.slope(rest.n, rest.sharpness).value
    assert f"{rise:.5f} a bit, where" in said and f"sharper by {rise:.4f} a bit, just measurably" in FINDINGS
    last, most = (text.loc[text.n == 320, column].mean() for column in ("sharpness_last", "sharpness_most"))
    assert f"the last step has {last:.2f} and the sharpest {most:.2f}" in said
    assert "on average {:.2f} to {:.2f} at all lengths".format(*spread(means)) in FINDINGS
    assert table.sensitivity_last[table.n > 4].round(2).eq(2).all()
    assert f"but for one run of {len(table)}" in FINDINGS and (table.own_accuracy < 0.99).sum() == 1
    without = find("hahn2024/scaling").outcome("paper", Store(ROOT / "results")).table
    without = without.loc[(without.function == "parity") & (without.variant == "text") & without.converged]
    assert without.sharpness[without.n >= 27].min() > 1
    steep = over_runs.slope(without.n, without.sharpness).value
    assert f"without a scratchpad has {steep:.3f}" in said and f"PARITY without one does by {steep:.3f}" in FINDINGS


def test_what_is_said_of_random_networks():
    """As the findings and the departures of `initialization` have it."""
    study = find("hahn2024/initialization")
    outcome = study.outcome("paper", Store(ROOT / "results"))
    base = outcome.table.loc[(outcome.table.layers == 2) & (outcome.table.dim == 64)]
    said = " ".join(study.departures)
    last = base.loc[(base.model == "encoder") & (base.n == 10)].groupby("scale")["last"].mean()
    assert f"{last[1.0]:.2f} of a transformer's sensitivity is due to the last bit" in said
    assert f"it is {last[4.0]:.2f} of it" in said
    verdicts = {each.claim.claim.split(":")[0]: each for each in outcome.judgements if "lower flip" in each.claim.claim}
    assert [verdicts[f"{kind}, scale 1"].verdict for kind in ("LSTM", "GRU", "MLP")] == ["reproduced"] * 3
    assert [verdicts[f"{kind}, scale 4"].verdict for kind in ("LSTM", "GRU")] == ["not reproduced"] * 2
    gru, lstm = (20 * (1 - verdicts[f"{kind}, scale 4"].estimate.value) for kind in ("GRU", "LSTM"))
    assert f"than GRUs in {gru:.0f} of 20 pairs at 128 bits, than LSTMs in {lstm:.0f}, and" in said
    _, square = (each.estimate for each in outcome.judgements if each.claim.claim.startswith("LSTM, scale 4: pairs in"))
    assert f"in {20 * (1 - square.value):.0f} by `square`" in said
    usual, _ = (each for each in outcome.judgements if "lower square" in each.claim.claim)
    assert usual.verdict == "undecided"
    assert square.high < 0.5 < verdicts["LSTM, scale 4"].estimate.high
    assert "than GRUs, and than LSTMs by that other measure (by the first the two are not told apart)" in FINDINGS
    long = base.loc[(base.n == 128) & base.scale.isin([1.0, 4.0])]
    for name, words in (("flip", "{:.0f} to {:.0f} % of flip"), ("square", "{:.0f} to {:.0f} % of square")):
        widths = 50 * (long[f"{name}_high"] - long[f"{name}_low"]) / long[name]
        assert words.format(*spread(widths.groupby([long.model, long.scale]).mean())) in said


def test_what_is_said_of_an_lstm():
    """As the findings have it, beside encoders of the small tier of `scaling`."""
    store = Store(ROOT / "results")
    table = find("hahn2024/recurrent").outcome("small", store).table
    parity = table.loc[table.function == "parity"]
    mixed, fixed = (parity.loc[parity.variant == variant] for variant in ("mixed", "fixed"))
    assert mixed.converged.all() and (mixed.n.max(), mixed.dim.max(), mixed.right_twice.min()) == (32, 32, 1)
    assert "costs them {:.3f} to {:.3f}, whatever".format(*spread(mixed.groupby("n").sharpness.mean())) in FINDINGS
    assert stats.linregress(mixed.n, mixed.sharpness).pvalue > 0.05
    assert fixed.groupby("n").converged.mean().to_dict() == {4: 1, 8: 0, 16: 0}
    encoders = find("hahn2024/scaling").outcome("small", store).table
    encoders = encoders.loc[(encoders.function == "parity") & encoders.converged]
    assert set(encoders.dim) == {64}
    means = encoders.groupby("n").sharpness.mean()
    assert f"encoders of 64 dimensions lose {means[4]:.2f} at 4 bits and {means[8]:.2f} at 8" in FINDINGS


def test_how_many_networks_fit_random_functions():
    study = find("hahn2024/generalization")
    table = study.outcome("paper", Store(ROOT / "results")).table
    text = table.loc[table.variant == "text"]
    kept = generalization.converged(text)
    counts, every = (each.groupby("size").size().tolist() for each in (kept, text))
    assert every == [500, 500, 500, 100]
    said = " ".join(study.departures)
    assert "{}, {} and {} of 500 converge".format(*counts) in said and f"and {counts[-1]} of 100 of" in said
    whole = text.loc[text["size"] == 1024]
    lost, left = (whole.sharpness[whole.index.isin(kept.index) == there].median() for there in (False, True))
    assert f"(a median of {lost:.2f} against {left:.2f})" in said
