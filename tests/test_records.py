"""Numbers that README, docs and departures name are those of the records and results they stand on."""

import json
import math
import runpy
from pathlib import Path

import pytest
from scipy import stats

from teeter.runs import Store
from teeter.studies import find, over_runs
from teeter.studies.hahn2024 import generalization, parts, scaling, tradeoff
from teeter.studies.hahn2024.dynamics import LEARNED

ROOT = Path(__file__).parents[1]
RUNS = [
    json.loads(place.read_text()) for place in sorted((ROOT / "benchmarks/results").glob("*-sensitivity-h200*.json"))
]


def spread(values):
    return min(values), max(values)


def test_the_table_of_forwards():
    """docs/measure.md shows the run whose file bears no other name."""
    run = json.loads(next((ROOT / "benchmarks/results").glob("*-sensitivity-h200.json")).read_text())
    page = (ROOT / "docs/measure.md").read_text()
    assert len(run["settings"]["given"]) == 6
    for title, row in run["settings"]["given"].items():
        paid = run["settings"]["paid"][title]
        costs = f"{row['paper']:,.0f} | {row['broad']:,.0f} ({paid['broad']:,.0f}) | {row['adaptive']:,.0f} "
        ratios = f"{row['paper_over_broad']:.0f} ({paid['paper_over_broad']:.0f}) | {row['broad_over_adaptive']:.2f} "
        assert f"{title.split('=')[1]} | {row['rate']:.4f} | {costs}({paid['adaptive']:,.0f}) | {ratios}" in page


def test_what_the_readme_says():
    page = (ROOT / "README.md").read_text()
    rows = [row for run in RUNS for row in run["settings"]["given"].values()]
    low, high = spread([row["paper_over_broad"] for row in rows])
    assert f"| {low:.0f} to {high:.0f} times fewer |" in page
    low, high = spread([row["broad_over_adaptive"] for row in rows if row["rate"] < 0.03])
    assert f"| {low:.1f} to {high:.1f} times fewer |" in page
    seconds = [row for run in RUNS for title, row in run["seconds"].items() if title.startswith("vit")]
    low, high = spread([max(row[key] for key in row if "over" in key) for row in seconds])
    assert f"| {low:.0f} to {high:.0f} times faster |" in page


def record(name):
    return json.loads(max((ROOT / "benchmarks/results").glob(f"*-{name}.json")).read_text())


def test_what_is_said_of_the_interval_of_sharpness():
    run, page = record("sharpness"), (ROOT / "docs/measure.md").read_text()
    assert run["repetitions"] == 400 and len(run["rows"]) == 12
    for k in range(0, 12, 3):
        own = run["rows"][k : k + 3]
        shares = " | ".join(f"{100 * row['held']:.1f} %" for row in own)
        assert f"| {own[0]['network']}, {own[0]['rho']:g} | {shares} |" in page
    few = [row for row in run["rows"] if row["draws"] == 10]
    assert min(row["held"] for row in few) < 0.9
    assert all(row["low"] >= 0.9 * (1 - row["held"]) * 400 for row in few)  # misses are too low


def test_what_is_said_of_stacks():
    run, alone = record("training-h200"), record("training-cpu")
    page, readme = (ROOT / "docs/train.md").read_text(), (ROOT / "README.md").read_text()
    rows = run["tables"]["n 20, stack of 64"]
    for kind in ("float32", "tf32", "bf16"):
        row = rows[f"stack {kind} compiled"]
        over, limits = row["over_loop"], row["limits"]
        shares = f"{100 * limits['arithmetic']:.0f} % | {100 * limits['bytes']:.0f} %"
        ratios = f"{over['float32']:.0f} | {over['float32 compiled']:.0f}"
        assert f"compiled, {kind} | {row['ms']:.3f} | {ratios} | {shares} |" in page
    assert f"an `.item()` a step: {rows['loop float32']['ms']:.1f} ms" in page
    assert f"is {run['stacked_over_loop_alone']:.1f} times faster than\nthe loop" in page
    assert f"16 models are {alone['stacked_over_loop_cpu']:.1f} times faster" in page
    both = f"{run['stacked_over_loop']:.0f} times faster (float32), {run['stacked_tf32_over_loop_float32']:.0f} (tf32)"
    assert both in readme


def test_what_is_said_of_epochs():
    run, page = record("epochs-h200"), (ROOT / "docs/train.md").read_text()
    for name, title in (("vit-small", "ViT-small"), ("resnet18", "ResNet-18")):
        rows = {key: row["seconds_an_epoch"] for key, row in run["tables"][name].items()}
        assert f"{title} {rows['bf16, compiled']:.1f} against {rows['eager loop']:.1f}" in page
    vit, resnet = run["vit_small_over_eager"], run["resnet18_over_eager"]
    said = f"{vit:.1f} times faster (ViT-small), {resnet:.1f} (ResNet-18)"
    assert said in (ROOT / "README.md").read_text()


def test_what_is_said_of_measuring():
    run, page = record("training-h200"), (ROOT / "docs/train.md").read_text()
    assert f"steps takes {100 * run['measuring_share']:.0f} % of the time they train" in page
    assert f"it would take {100 * run['measuring_share_one_by_one']:.0f} %" in page


def test_what_is_said_of_arithmetics():
    run, page = record("precision-h200"), (ROOT / "docs/train.md").read_text()
    rows = {(row["function"], row["n"], row["arithmetic"]): row for row in run["rows"]}
    for name in ("parity", "majority"):
        for n in (5, 10, 20):
            cells = [rows[name, n, kind] for kind in ("float32", "tf32", "bf16")]
            told = [f"{r['converged']} of {r['runs']} | {r['sharpness']:.2f} ± {r['sharpness_sd']:.2f}" for r in cells]
            assert f"| {name.upper() if n == 5 else ''} | {n} | {' | '.join(told)} |".replace("|  |", "| |") in page
    failed = [claim for claim, holds in run["verdicts"].items() if not holds]
    assert failed == ["parity n=20 is learned"]
    parity = rows["parity", 20, "tf32"]
    low, high = parity["rate_low"], parity["rate_high"]
    assert f"{parity['converged']} of {parity['runs']} seeds (0.72, 95 %\ninterval {low:.2f} to {high:.2f})" in page
    assert all(rows[name, 20, "tf32"]["converged"] == 10 for name in ("majority", "first", "mean"))


CLAIMED = [("training", "training-h200"), ("training", "training-cpu"), ("epochs", "epochs-h200")]


@pytest.mark.parametrize("script, name", CLAIMED, ids=lambda each: each)
def test_records_bear_their_claims_out(script, name):
    """What a benchmark claims is in its record, and no line that was not committed."""
    made, run = runpy.run_path(str(ROOT / "benchmarks" / f"{script}.py")), record(name)
    bounds = [(key, run[key] >= bound) for key, bound in made["CLAIMS"].items() if key in run]
    bounds += [(key, run[key] <= bound) for key, bound in made.get("AT_MOST", {}).items() if key in run]
    assert bounds
    assert not [key for key, holds in bounds if not holds]
    assert "+" not in run["provenance"]["commit"]


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
