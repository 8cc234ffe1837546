"""Findings that README and the departures of studies name are those of the results they stand on."""

import math

import pytest
from scipy import stats

from teeter.runs import Store
from teeter.studies import find, over_runs
from teeter.studies.hahn2024 import generalization, parts, scaling, tradeoff
from teeter.studies.hahn2024.dynamics import LEARNED
from teeter.studies.vasudeva2025 import fashion
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
        for name in ("MAJORITY", "FIRST", "MEAN"):
            words = "sharpness over PARITY's at n of 17 to 30"
            assert 5.5 < 1 / found[f"{name}, {kind}: {words}"].value < 10
    table = outcome.table
    for kind in ("text", "released"):
        for name, implied in (("first", 0.003), ("mean", 0.002)):
            own = table.loc[(table.function == name) & (table.variant == kind)]
            assert own.sharpness_100.mean() == pytest.approx(0.13, abs=0.01)
            assert own.groupby("n").sharpness_100.mean().between(0.11, 0.145).all()
            assert over_runs.spread(own.n, own.sharpness).value == pytest.approx(0.05, abs=0.006)
            assert over_runs.spread(own.n, own.sharpness_100).value == pytest.approx(0.013, abs=0.0015)
            assert round(parts.implied_spread(scaling.TABLE_2[name]), 3) == implied
    own = table.loc[(table.function == "majority") & (table.variant == "released")]
    assert f"{over_runs.slope(own.n, own.sharpness_100).value:.4f} (0.0018 in Table 2)" in said
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


def test_which_steps_of_a_scratchpad_are_sharp():
    """As README and the departures of `scratchpad` have it."""
    study, readme = find("hahn2024/scratchpad"), " ".join((ROOT / "README.md").read_text().split())
    table, said = study.outcome("paper", Store(ROOT / "results")).table, " ".join(study.departures)
    assert (table.fate == "converged").all()
    text, released = (table.loc[table.variant == kind] for kind in ("text", "released"))
    longest = text.loc[text.n == 320]
    assert f"at 320 bits, {longest.sharpness.mean():.2f}, is that of some steps" in said
    assert (
        f"the last has {longest.sharpness_last.mean():.2f}, the sharpest {longest.sharpness_most.mean():.2f}." in said
    )
    rises, stays = text.n.corr(text.sharpness_most), released.n.corr(released.sharpness_released_most)
    assert f"(a correlation of {rises:.2f})" in said and f"not measurably ({stays:.2f})" in said
    assert over_runs.correlation(text.n, text.sharpness_most).low > 0
    assert over_runs.correlation(released.n, released.sharpness_released_most).low < 0
    rest = released.loc[released.n > 4]
    assert len(released) - len(rest) == 6
    found = over_runs.correlation(rest.n, rest.sharpness_released)
    assert f"it is {found.value:.2f} ({found.low:.2f} to {found.high:.2f})" in said
    means = text.groupby("n").sharpness.mean()
    assert "up to 320 bits" in readme and "sharpness is about 0.1 at any length" in readme
    assert means.between(0.04, 0.15).all()
    assert text.sensitivity_last[text.n > 4].round(2).eq(2).all()


def test_two_ways_to_learn_first():
    study, runs, store = find("hahn2024/long"), [record("first-111"), record("first-164")], Store(ROOT / "results")
    rows, said = [row for run in runs for row in run["rows"]], " ".join(study.departures)
    flat, sharp = ([row for row in rows if (row["sharpness"] > 0.3) is is_sharp] for is_sharp in (False, True))
    assert (len(flat), len(sharp)) == (7, 3)
    low, high = spread([row["sharpness"] for row in flat])
    assert f"Seven are flat, with a sharpness of {low:.3f} to {high:.3f}." in said
    low, high = spread([row["sharpness"] for row in sharp])
    assert f"In the other three, of {low:.2f} to {high:.2f}, a LayerNorm of the first layer divides" in said
    low, high = spread([row["smallest"] for row in sharp])
    assert f"at the first position by as little as {low:.3f} to {high:.3f}," in said
    assert f"the seven flat ones by no less than {min(row['smallest'] for row in flat):.2f}:" in said
    for row in sharp:
        (middle,) = (median for first, median in row["divisors"].values() if first == row["smallest"])
        assert middle > 0.75
        most = sorted(row["parts"], key=row["parts"].get)[-2:]
        assert {part.split(".attention")[0] for part in most} == {"embedding.token", "layers.0"}
    # The networks are those of the study, which has trained them on a GPU.
    table = store.table(study.name, [key for key in study.keys("paper") if store.has(study.name, key)])
    for run in runs:
        assert "+" not in run["provenance"]["commit"]
        own = (table.function == "first") & (table.n == run["bits"]) & (table.variant == "text")
        there = table.loc[own].sort_values("seed").sharpness.tolist()
        assert there == pytest.approx([row["sharpness"] for row in run["rows"]], rel=0.02)


def test_how_often_first_is_sharp():
    """As README and the departures of `long` have it; and what they say of MEAN and MAJORITY."""
    study, readme = find("hahn2024/long"), " ".join((ROOT / "README.md").read_text().split())
    table, said = study.outcome("paper", Store(ROOT / "results")).table, " ".join(study.departures)
    kept = table.loc[table.converged]
    own = kept.loc[(kept.variant == "text") & (kept.function == "first")]
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
    released = kept.loc[(kept.variant == "released") & (kept.function == "first")].sharpness_released
    assert f"model, {(released > 0.3).sum()} of {len(released)}." in said
    majority = table.loc[(table.variant == "text") & (table.function == "majority")]
    assert sharp.sharpness.median() > majority.sharpness[majority.converged & majority.n.between(139, 432)].max()

    learned = majority.groupby(majority.n > 218).converged.agg(["sum", "size"])
    assert "in {} of {} runs up to 218 bits and in {} of {} beyond".format(*learned.to_numpy().ravel()) in said
    assert f"a median of {100 * majority.unexplained[~majority.converged].median():.0f} % of the variance" in said

    mean = kept.loc[(kept.variant == "text") & (kept.function == "mean")]
    assert f"length, {mean.n.corr(mean.sharpness):.2f}, is" in said
    short, long = mean.loc[mean.n == 4], mean.loc[mean.n > 4]
    assert f"median of {short.sharpness.median():.3f} at 4 bits and of {long.sharpness.median():.3f} beyond" in said
    found = over_runs.correlation(long.n, long.sharpness)
    assert f"correlation is {found.value:.2f} ({found.low:.2f} to {found.high:.2f})" in said


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


def test_how_many_settings_come_out():
    """Accuracy on altered sentences in V's six settings, as README has it; and where the two accounts part."""
    outcome = find("vasudeva2025/synthetic").outcome("paper", Store(ROOT / "results"))
    altered = {each.claim.claim: each for each in outcome.judgements if "accuracy on altered test" in each.claim.claim}
    six = ["(3,3,1,6)", "(3,5,1,16)", "(3,7,1,28)", "(1,7,7,10)", "(1,17,7,20)", "(1,32,7,36)"]
    verdicts = [each.verdict for name in six for claim, each in altered.items() if claim.startswith(f"{name}:")]
    assert verdicts == ["reproduced"] * 5 + ["not reproduced"]
    (ours,) = (each for claim, each in altered.items() if claim.startswith("(1,17,3,20):"))
    assert ours.estimate.value == 0  # as the mean of label times token says
    assert "in five of six settings; in the largest it does not" in " ".join((ROOT / "README.md").read_text().split())


def test_which_is_more_sensitive_on_digits():
    """As README and the departures of `mnist` have it: it hangs on the variance of the noise."""
    study, readme = find("vasudeva2025/mnist"), " ".join((ROOT / "README.md").read_text().split())
    outcome = study.outcome("paper", Store(ROOT / "results"))
    equal = outcome.judgements[0]
    assert equal.verdict == "not reproduced"
    assert f"more sensitive by a factor of {10**-equal.estimate.value:.1f} to noise of variance 1" in readme
    noise = outcome.table.loc[outcome.table.about == "noise"]
    means = noise.pivot_table(index=["noise", "sigma2"], columns="model", values="sensitivity")
    ratios = (means["vit-small-mnist"] / means["mlp-mnist"])["patch"]
    more, less = ratios[[0.25, 1.0, 4.0]], 1 / ratios[[16.0, 64.0]]
    said = " ".join(study.departures)
    assert "{:.1f} at a variance of 0.25, of {:.1f} at 1 and of {:.1f} at 4".format(*more) in said
    assert "less by one of {:.1f} at 16 and of {:.1f} at 64".format(*less) in said
    verdicts = {each.claim.claim.split(" (")[0]: each.verdict for each in outcome.judgements[1:]}
    no, yes, unknown = "not reproduced", "reproduced", "undecided"
    assert list(verdicts.values()) == [no, no, unknown, yes, unknown, no]


def test_which_is_more_sensitive_on_clothes():
    """As README and the departures of `fashion` have it."""
    study, readme = find("vasudeva2025/fashion"), " ".join((ROOT / "README.md").read_text().split())
    outcome, said = study.outcome("paper", Store(ROOT / "results")), " ".join(study.departures)
    verdicts = [each.verdict for each in outcome.judgements[:4]]
    assert verdicts == ["reproduced", "reproduced", "not reproduced", "not reproduced"]  # the MLPs, the CNN, the ViT
    table = outcome.table.rename(columns={"train_accuracy": "accuracy"})
    epochs = table.loc[table.about == "epoch"].groupby(["model", "epoch"])[["sensitivity", "accuracy"]].mean()
    vit, cnn = epochs.loc["vit-small-fashion-mnist"].loc[1:], epochs.loc["cnn"].loc[1:]
    assert f"mean is never below {vit.sensitivity.min():.3f} in any epoch" in said
    assert cnn.sensitivity[1] < fashion.PUBLISHED["cnn"] < cnn.sensitivity[2:].min() and cnn.accuracy[2] < 0.8
    noise = table.loc[table.about == "noise"]
    means = noise.pivot_table(index=["noise", "sigma2"], columns="model", values="sensitivity")
    patch = means.loc["patch"]
    vit = patch["vit-small-fashion-mnist"]
    assert f"and still at {vit[1.25]:.3f} where the noise has a quarter" in said
    assert f"rises to no more than {vit.max():.3f};" in said
    assert patch.cnn[1.25] < fashion.PUBLISHED["cnn"] < patch.cnn[2.5]
    assert all(patch[kind][2.5] < 0.8 * fashion.PUBLISHED[kind] for kind in ("mlp-leaky-relu", "mlp-sigmoid"))
    mlp, cnn = ([(patch[kind] / vit)[sigma2] for sigma2 in (1.25, 5, 40)] for kind in ("mlp-leaky-relu", "cnn"))
    times = "has {:.1f} times its sensitivity at a variance of 1.25, {:.1f} times at 5 and {:.1f} times at 40"
    assert times.format(*mlp) in said and "the CNN has {:.1f}, {:.1f} and {:.1f} times".format(*cnn) in said
    low, high = spread(means.loc["scattered"].iloc[0].drop("cnn"))
    assert high < 1.05 * low
    assert vit[5] == patch.loc[5].min() and f"but {vit[5]:.3f} and not 0.0098" in readme
    assert f"is {mlp[0]:.1f} times as sensitive at a quarter of V's variance, and {mlp[2]:.1f} times at eight" in readme


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
    assert f"than GRUs in {gru:.0f} of 20 pairs at 128 bits, than LSTMs in {lstm:.0f}." in said
    assert "sensitive than GRUs, and not measurably less than LSTMs" in " ".join(
        (ROOT / "README.md").read_text().split()
    )
    long = base.loc[(base.n == 128) & base.scale.isin([1.0, 4.0])]
    for name, words in (("flip", "{:.0f} to {:.0f} % of flip"), ("square", "{:.0f} to {:.0f} % of square")):
        widths = 50 * (long[f"{name}_high"] - long[f"{name}_low"]) / long[name]
        assert words.format(*spread(widths.groupby([long.model, long.scale]).mean())) in said
