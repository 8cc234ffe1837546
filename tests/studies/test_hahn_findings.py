"""Findings that README and the departures of studies of H name are those of the results they stand on."""

import math
import runpy

import pytest
from scipy import stats

from teeter.runs import Store, elapsed
from teeter.studies import find, over_runs
from teeter.studies.hahn2024 import generalization, lengths, parts, scaling, tradeoff
from teeter.studies.hahn2024.dynamics import LEARNED
from teeter.studies.hahn2024.learning import Learner
from tests.test_records import ROOT, record, spread


def test_how_many_runs_learn_parity():
    """As README and the departures of `dynamics` have it."""
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
    assert "4 runs of 40 learn PARITY" in " ".join((ROOT / "README.md").read_text().split())


def test_what_is_said_of_table_2():
    """As README and the departures of `scaling` have it."""
    study, readme = find("hahn2024/scaling"), " ".join((ROOT / "README.md").read_text().split())
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
    assert f"released code's model ({slope['released'].value:.3f})" in readme
    assert f"describes ({slope['text'].value:.3f})" in readme
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
    assert at_20.between(0.95, 1.05).all() and "near 1 at 20 bits" in readme
    last = table.loc[(table.function == "parity") & (table.n >= 24) & table.converged].groupby("variant").sharpness_100
    assert last.agg(["count", "min", "max"]).round(2).T.to_dict("list") == {
        "released": [5, 0.97, 1.16],
        "text": [4, 1.13, 2.32],
    }


def test_what_is_said_of_the_tradeoff():
    """With the square of the norm in the regression, as the last departure has it."""
    study = find("hahn2024/tradeoff")
    table = study.outcome("paper", Store(ROOT / "results")).table
    said, readme = study.departures[-1], (ROOT / "README.md").read_text()

    found = [tradeoff.at_fixed_length(table, "text", name).value for name in tradeoff.FUNCTIONS]
    assert f"correlate by {max(found):.2f} to {min(found):.2f})" in " ".join(readme.split())

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
    assert f"by a factor of {above[5]:.1f} in the blow-up at 5 bits and of {above[20]:.0f} at 20" in " ".join(
        readme.split()
    )


def test_what_is_said_of_generalization():
    study = find("hahn2024/generalization")
    table = study.outcome("paper", Store(ROOT / "results")).table
    readme = " ".join((ROOT / "README.md").read_text().split())
    text, released = (table.loc[table.variant == name] for name in ("text", "released"))
    means = generalization.converged(text).groupby(["size", "function"]).mean(numeric_only=True).groupby("size").mean()
    few, some, half, whole = means.sensitivity
    assert f"sensitivity is {whole:.1f}," in readme
    assert f"functions of sensitivity {few:.1f}, {some:.1f} and {half:.1f}," in readme
    few, some, half = (means.sharpness[1024] / means.sharpness[size] for size in (128, 256, 512))
    assert f"by factors of {few:.1f}, {some:.1f} and {half:.1f} " in readme

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
    """As README and the departures of `scratchpad` have it."""
    study, readme = find("hahn2024/scratchpad"), " ".join((ROOT / "README.md").read_text().split())
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
    assert f"{rise:.5f} a bit, where" in said and f"sharper by {rise:.4f} a bit, just measurably" in readme
    last, most = (text.loc[text.n == 320, column].mean() for column in ("sharpness_last", "sharpness_most"))
    assert f"the last step has {last:.2f} and the sharpest {most:.2f}" in said
    assert "on average {:.2f} to {:.2f} at all lengths".format(*spread(means)) in readme
    assert table.sensitivity_last[table.n > 4].round(2).eq(2).all()
    assert f"but for one run of {len(table)}" in readme and (table.own_accuracy < 0.99).sum() == 1
    without = find("hahn2024/scaling").outcome("paper", Store(ROOT / "results")).table
    without = without.loc[(without.function == "parity") & (without.variant == "text") & without.converged]
    assert without.sharpness[without.n >= 27].min() > 1
    steep = over_runs.slope(without.n, without.sharpness).value
    assert f"without a scratchpad has {steep:.3f}" in said and f"PARITY without one does by {steep:.3f}" in readme


def test_two_ways_to_learn_first():
    names = ["first-111", "first-164", "first-164-seeds-5-9", "first-164-seeds-10-14"]
    study, runs, store = find("hahn2024/long"), [record(name) for name in names], Store(ROOT / "results")
    rows, said = [row for run in runs for row in run["rows"]], " ".join(study.departures)
    assert all("+" not in run["provenance"]["commit"] for run in runs)
    assert all(row["mse"] < 1e-3 for row in rows)
    flat, sharp = ([row for row in rows if (row["sharpness"] > 0.3) is is_sharp] for is_sharp in (False, True))
    low, high = spread([row["sharpness"] for row in flat])
    assert f"{len(flat)} are flat, with a sharpness of {low:.3f} to {high:.3f}." in said
    assert len(sharp) == 6
    low, high = spread([row["sharpness"] for row in sharp])
    assert f"In the other six, of {low:.2f} to {high:.2f}, a LayerNorm of the first layer divides" in said
    low, high = spread([row["smallest"] for row in sharp])
    assert f"at the first position by as little as {low:.3f} to {high:.3f}," in said
    assert f"the flat ones by no less than {min(row['smallest'] for row in flat):.3f}." in said
    for row in sharp:
        (middle,) = (median for first, median in row["divisors"].values() if first == row["smallest"])
        assert middle > 0.75
    spread_out, *alone = sorted(sharp, key=lambda row: row["parts"]["embedding.token"])
    low, high = spread([row["parts"]["embedding.token"] for row in alone])
    assert f"In five of the six, noise on the token vectors alone costs {low:.2f} to {high:.2f};" in said
    assert f"no part alone costs more than {max(spread_out['parts'].values()):.3f}" in said
    low, high = spread([row["smallest"] for row in sharp])
    assert f"a LayerNorm divides by {low:.2f} to {high:.2f}" in " ".join((ROOT / "README.md").read_text().split())
    # The networks are those of the study, which has trained them on a GPU.
    table = store.table(study.name, [key for key in study.keys("paper") if store.has(study.name, key)])
    for run in runs[:2]:
        own = (table.function == "first") & (table.n == run["bits"]) & (table.variant == "text")
        there = table.loc[own].sort_values("seed").sharpness.tolist()
        assert there == pytest.approx([row["sharpness"] for row in run["rows"]], rel=0.02)


def test_tokens_that_begin_alike_end_sharp():
    """As the departures of `long` have it, of ten seeds that were trained to see whether it is so."""
    said = " ".join(find("hahn2024/long").departures)
    later = [*record("first-164-seeds-5-9")["rows"], *record("first-164-seeds-10-14")["rows"]]
    assert [row["seed"] for row in later] == [*range(5, 15)]
    apart = {row["seed"]: row["apart"] for row in later}
    sharp = [row["apart"] for row in later if row["sharpness"] > 0.3]
    flat = [row["apart"] for row in later if row["sharpness"] < 0.1]
    assert (len(sharp), len(flat)) == (3, 7) and max(sharp) < min(flat)
    assert "{:.1f} to {:.1f} apart where the others have {:.1f} to {:.1f}".format(*spread(sharp), *spread(flat)) in said
    assert f"one case in {math.comb(10, 3)}" in said
    look = runpy.run_path(str(ROOT / "benchmarks/profiles/first.py"))["apart"]
    assert look(Learner("first", 9, 8, dim=4)) == pytest.approx(apart[8])  # at all lengths
    earlier = [look(Learner("first", 9, seed, dim=4)) for seed in range(5)]
    assert min(earlier[0], earlier[4]) > 1.6 * max(earlier[1:4])
    ends = {row["seed"]: row["sharpness"] for row in record("first-164")["rows"]}
    kinds = {round(earlier[seed], 1): ends[seed] > 0.3 for seed in (1, 2, 3)}
    assert kinds == {2.0: False, 2.1: True, 2.4: True}
    assert "at 164 bits those of 2.1 and 2.4 are sharp, and that of 2.0 is flat" in said


def test_how_often_first_is_sharp():
    """As README and the departures of `long` have it."""
    study, readme = find("hahn2024/long"), " ".join((ROOT / "README.md").read_text().split())
    table, said = study.outcome("paper", Store(ROOT / "results")).table, " ".join(study.departures)
    first = table.loc[table.function == "first"]
    own = first.loc[(first.variant == "text") & first.converged]
    flat, sharp = own.loc[own.sharpness <= 0.3], own.loc[own.sharpness > 0.3]
    assert f"Of the {len(own)} networks of the text's model that learned FIRST, {len(flat)} are flat" in said
    assert f"median is {flat.sharpness.median():.2f}, their highest {flat.sharpness.max():.2f}, and" in said
    assert f"the correlation with length {flat.n.corr(flat.sharpness):.2f}." in said
    low, high = spread(sharp.sharpness)
    assert f"The {len(sharp)} sharp ones, of {low:.2f} to {high:.2f}, are" in said
    pieces = [(0, 138), (139, 432), (433, 512)]
    of, all_of = ([int(rows.n.between(*piece).sum()) for piece in pieces] for rows in (sharp, own))
    assert of[2] == 0
    counts = f"{of[0]} of {all_of[0]} up to 138 bits, {of[1]} of {all_of[1]} from there to 432 and none of {all_of[2]} "
    assert counts in said
    assert f"{of[1]} of {all_of[1]} between 164 and 432 bits" in readme
    lost = [first.loc[(first.variant == kind) & ~first.converged, "fate"] for kind in ("text", "released")]
    last = first.loc[(first.variant == "text") & (first.n > 432), "converged"]
    assert f"{(~last).sum()} of {len(last)} runs did not converge" in said
    (none, all_text), (none_too, all_released) = (((fate == "not learned").sum(), len(fate)) for fate in lost)
    assert f"(of all {all_text} that did not, {none} learned nothing; of" in said
    assert f"released code's model, {none_too} of {all_released})" in said
    by_seed = sharp.groupby("seed").size().reindex(range(5), fill_value=0)
    assert "the sharp ones are {}, {}, {}, {} and {} of seeds 0 to 4".format(*by_seed) in said
    near = own.seed.between(1, 3)
    pooled = f"{by_seed[1:4].sum()} of {near.sum()} networks of seeds 1 to 3 are sharp, and {by_seed[[0, 4]].sum()} of "
    assert pooled + f"{(~near).sum()} of seeds 0 and 4" in said
    released = first.loc[(first.variant == "released") & first.converged]
    sharp_too = released.n[released.sharpness_released > 0.3]
    assert (len(released), len(sharp_too), *spread(sharp_too)) == (40, 3, 57, 111)
    majority = table.loc[(table.variant == "text") & (table.function == "majority") & table.converged]
    above = sharp.sharpness[sharp.n.between(139, 432)] > majority.sharpness[majority.n.between(139, 432)].max()
    there = majority.n.between(139, 432).sum()
    assert f"are sharp, {above.sum()} of them sharper than any of the {there} that learned MAJORITY there" in readme


def test_majority_and_mean_of_long_inputs():
    """As README and the departures of `long` have it."""
    study, readme = find("hahn2024/long"), " ".join((ROOT / "README.md").read_text().split())
    outcome, said = study.outcome("paper", Store(ROOT / "results")), " ".join(study.departures)
    verdicts = {each.claim.claim.split(":")[0]: each.verdict for each in outcome.judgements}
    assert [verdicts[f"MAJORITY, {kind}"] for kind in ("text", "released")] == ["reproduced"] * 2
    assert [verdicts[f"{name}, {kind}"] for name in ("FIRST", "MEAN") for kind in ("text", "released")] == [
        "undecided"
    ] * 4
    table = outcome.table
    majority = table.loc[(table.variant == "text") & (table.function == "majority")]
    learned = majority.groupby(majority.n > 218).converged.agg(["sum", "size"])
    assert "in {} of {} runs up to 218 bits and in {} of {} beyond".format(*learned.to_numpy().ravel()) in said
    assert f"the median leaves {100 * majority.unexplained[~majority.converged].median():.1f} % of the variance" in said
    kept = majority.loc[majority.converged]
    assert (kept.mse / kept.unexplained * 0.004).median() == pytest.approx(1e-3, rel=0.01)
    assert "where 0.4 % would count" in said

    def slope(rows, column="sharpness"):
        found = over_runs.slope(rows.n, rows[column])
        return f"{found.value:.4f} a bit ({found.low:.4f} to {found.high:.4f})"

    long = kept.loc[kept.n > 218]
    assert (len(long), long.n.nunique(), (kept.n == 218).sum()) == (7, 4, 1)
    until, since = (slope(rows).replace(" (", ", ") for rows in (kept[kept.n <= 218], long))
    assert f"up to 218 bits ({until}. The seven kept beyond fall ({since}, but are of four lengths" in said
    with_one = over_runs.slope(kept.n[kept.n >= 218], kept.sharpness[kept.n >= 218])
    assert f"with the one of 218 bits the interval is {with_one.low:.4f} to {with_one.high:.4f}." in said
    assert f"of {learned['size'][True]} networks beyond, seven learn it, and among these it does not grow" in readme
    released = table.loc[(table.variant == "released") & (table.function == "majority") & table.converged]
    assert f"without 4 bits it is {slope(released[released.n > 4], 'sharpness_released')}" in said
    assert f"and the text's {slope(kept[kept.n > 4]).replace(' a bit', '')}" in said

    mean = table.loc[(table.function == "mean") & table.converged]
    ignoring = mean.loc[mean.unexplained > 0.9, ["variant", "n"]].to_numpy().tolist()
    assert ignoring == [["text", 432], ["released", 405], ["released", 512]]
    assert (mean.unexplained[mean.unexplained <= 0.9] < 0.12).all()
    for kind, column in (("text", "sharpness"), ("released", "sharpness_released")):
        own = mean.loc[mean.variant == kind]
        assert f"{own.n.corr(own[column]):.2f}, " in said
        found = over_runs.correlation(own.n[own.n > 4], own[column][own.n > 4])
        assert f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})" in said
    own = mean.loc[mean.variant == "text"]
    short, long = (own.sharpness[own.n.eq(4) == is_short].median() for is_short in (True, False))
    assert f"median of {short:.3f} at 4 bits and of {long:.3f} beyond" in said


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


def test_what_is_said_of_random_networks():
    """As README and the departures of `initialization` have it."""
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
    assert "than GRUs, and than LSTMs by that other measure (by the first the two are not told apart)" in " ".join(
        (ROOT / "README.md").read_text().split()
    )
    long = base.loc[(base.n == 128) & base.scale.isin([1.0, 4.0])]
    for name, words in (("flip", "{:.0f} to {:.0f} % of flip"), ("square", "{:.0f} to {:.0f} % of square")):
        widths = 50 * (long[f"{name}_high"] - long[f"{name}_low"]) / long[name]
        assert words.format(*spread(widths.groupby([long.model, long.scale]).mean())) in said


def test_what_is_said_of_an_lstm():
    """As README has it, beside encoders of the small tier of `scaling`."""
    readme, store = " ".join((ROOT / "README.md").read_text().split()), Store(ROOT / "results")
    table = find("hahn2024/recurrent").outcome("small", store).table
    parity = table.loc[table.function == "parity"]
    mixed, fixed = (parity.loc[parity.variant == variant] for variant in ("mixed", "fixed"))
    assert mixed.converged.all() and (mixed.n.max(), mixed.dim.max(), mixed.right_twice.min()) == (32, 32, 1)
    assert "costs them {:.3f} to {:.3f}, whatever".format(*spread(mixed.groupby("n").sharpness.mean())) in readme
    assert stats.linregress(mixed.n, mixed.sharpness).pvalue > 0.05
    assert fixed.groupby("n").converged.mean().to_dict() == {4: 1, 8: 0, 16: 0}
    encoders = find("hahn2024/scaling").outcome("small", store).table
    encoders = encoders.loc[(encoders.function == "parity") & encoders.converged]
    assert set(encoders.dim) == {64}
    means = encoders.groupby("n").sharpness.mean()
    assert f"encoders of 64 dimensions lose {means[4]:.2f} at 4 bits and {means[8]:.2f} at 8" in readme


def test_two_cores_show_figure_1_in_minutes():
    """PARITY's slope is ten times MAJORITY's at least, and significant, at the small tier of `scaling`."""
    outcome = find("hahn2024/scaling").outcome("small", Store(ROOT / "results"))
    steep = {name: lengths.slope(name, "text")(outcome.table) for name in ("parity", "majority")}
    assert steep["parity"].low > 0
    assert steep["parity"].value > 10 * steep["majority"].value > 0
    assert {(each["cores"], each["accelerator"]) for each in outcome.provenance} == {(2, None)}
    assert elapsed(outcome.provenance) < 8 * 60


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
