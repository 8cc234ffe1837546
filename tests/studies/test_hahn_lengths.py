"""What the studies of length measure, on tables made by hand; what they run; what they draw."""

import math
import runpy
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from scipy import stats

from teeter import measure
from teeter.measure import Estimate
from teeter.models.embedding import token_numbers
from teeter.studies import over_runs
from teeter.studies.hahn2024 import length_panels, lengths, long, scaling
from teeter.studies.hahn2024.learning import FUNCTIONS, Learner, few_strings, model_of, zero_one
from teeter.studies.study import Claim

VARIANTS = ("text", "released")


def table_of(values, converged=True, function="parity", variant="text"):
    """One run for each (n, value), with a seed that no other of its length has."""
    lengths = [n for n, _ in values]
    rows = [
        {"function": function, "variant": variant, "n": n, "converged": converged, "seed": lengths[:i].count(n)}
        for i, n in enumerate(lengths)
    ]
    return pd.DataFrame(rows).assign(**{name: [v for _, v in values] for name in ("sharpness", "sharpness_released")})


NOISY = [(4, 0.1), (4, 0.3), (10, 0.5), (10, 0.4), (20, 1.2), (20, 0.9)]


def test_slope_and_correlation_by_their_formulas():
    x, y = np.array(NOISY).T
    sxx, sxy, syy = ((x - x.mean()) @ (x - x.mean()), (x - x.mean()) @ (y - y.mean()), (y - y.mean()) @ (y - y.mean()))
    slope, r = sxy / sxx, sxy / math.sqrt(sxx * syy)
    half = stats.t.ppf(0.975, 4) * math.sqrt((syy - slope * sxy) / 4 / sxx)
    found = lengths.slope("parity", "text")(table_of(NOISY))
    assert (found.value, found.low, found.high, found.n) == pytest.approx((slope, slope - half, slope + half, 6))
    found = lengths.correlation("parity", "text")(table_of(NOISY))
    half = 1.959964 / math.sqrt(3)
    ends = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    assert (found.value, found.low, found.high) == pytest.approx((r, *ends))


def test_a_perfect_line_is_found_whatever_its_rounding():
    table = table_of([(n, 0.05 * n - 0.2) for n in range(4, 31) for _ in range(2)])
    found = lengths.slope("parity", "text")(table)
    assert found.value == pytest.approx(0.05)
    assert found.half_width < 1e-9
    assert lengths.correlation("parity", "text")(table).value == pytest.approx(1)


def test_each_variant_has_its_own_sharpness_and_rows():
    table = table_of(NOISY).assign(sharpness_released=[2 * value for _, value in NOISY])
    both = pd.concat([table, table.assign(variant="released")])
    once, twice = (lengths.slope("parity", variant)(both).value for variant in VARIANTS)
    assert twice == pytest.approx(2 * once)
    assert lengths.slope("parity", "text")(table).value == once


def test_runs_that_did_not_converge_count_only_as_discarded():
    table = pd.concat([table_of(NOISY), table_of([(4, 9.0), (30, -9.0)], converged=False)])
    assert lengths.slope("parity", "text")(table) == lengths.slope("parity", "text")(table_of(NOISY))
    assert lengths.level("parity", "text", 20)(table).n == 2
    lost = lengths.discarded("parity", "text")(table)
    assert lost == over_runs.share([True] * 2 + [False] * 6)
    assert length_panels.count(table, "parity") == "PARITY: discarded 2/8"
    both = pd.concat([table, table.assign(variant="released", converged=True)])
    assert length_panels.count(both, "parity") == "PARITY: discarded 2/8, released 0/8"


def test_significance_and_what_its_absence_needs():
    flat = [(n, 0.5 + 0.1 * sign) for n in range(4, 31) for sign in (-1, 1)]
    rising, level = table_of(NOISY), table_of(flat)
    width = lengths.slope("parity", "text")(level).half_width
    assert lengths.significant("parity", "text", doubt=0.0)(rising).value == 1
    assert lengths.significant("parity", "text", doubt=1.01 * width)(level) == Estimate.exact(0.0, 54)
    assert lengths.significant("parity", "text", doubt=0.99 * width)(level).half_width == 0.5
    assert lengths.rises("parity", "text")(rising).value == 1
    assert lengths.rises("parity", "text")(table_of([(n, -v) for n, v in NOISY])).value == 0
    assert lengths.rises("parity", "text")(level).half_width == 0.5


def test_level_is_a_t_interval():
    found = lengths.level("parity", "text", 20)(table_of(NOISY))
    half = stats.t.ppf(0.975, 1) * 0.15  # two values, 0.3 apart
    assert (found.value, found.low, found.high, found.n) == pytest.approx((1.05, 1.05 - half, 1.05 + half, 2))


def test_ratio_is_over_seeds_and_between_runs_of_one_seed_and_length():
    rng, parts = np.random.default_rng(0), []
    for seed in range(4):
        sharp = [(n, float(rng.normal(n, 0.2) if n >= 17 else 500)) for n in range(4, 21)]
        soft = [(n, (0.05 + 0.01 * seed) * n + (n > 20) * 100) for n in range(4, 31)]  # PARITY has none beyond 20
        parts += [table_of(sharp).assign(seed=seed), table_of(soft, function="mean").assign(seed=seed)]
    one = parts[-2].assign(seed=9)  # which the other function has not
    found = lengths.ratio("mean", "parity", "text", 17)(pd.concat([*parts, one]))
    ratios = [
        soft.sharpness[13:17].mean() / sharp.sharpness[13:].mean()
        for sharp, soft in zip(parts[::2], parts[1::2], strict=True)
    ]
    by_hand = over_runs.mean(ratios)
    assert (found.value, found.low, found.high, found.n) == pytest.approx((by_hand.value, by_hand.low, by_hand.high, 4))
    assert found.low < 0.065 < found.high
    again = [part.assign(finer=part.sharpness, sharpness=1.0) for part in parts]
    assert lengths.ratio("mean", "parity", "text", 17, "finer")(pd.concat(again)).value == pytest.approx(found.value)


def test_table_2_beside_the_published_one():
    rng = np.random.default_rng(0)
    lines = [table_of([(n, 0.05 * n + float(rng.normal(0, 0.1))) for n in range(4, 31)])]
    lines += [table_of([(30, 0.0)] * 3, False), table_of([(n, 0.1) for n in (4, 5)], function="mean")]
    table = pd.concat(lines).assign(fate=lambda rows: rows.converged.map({True: "converged", False: "not exact"}))
    found = scaling.table_2(table)
    published = found.loc[found.model == "published"].set_index("function")
    assert list(published.index) == ["PARITY", "MAJORITY", "FIRST", "MEAN"]
    assert list(published.loc["FIRST", ["slope", "r", "p"]]) == ["6.4e-05", "0.16", "0.0075"]
    (ours,) = found.loc[found.model == "text"].itertuples()  # two lengths of MEAN make no line with a doubt
    x, y = lines[0].n, lines[0].sharpness
    fit = stats.linregress(x, y)
    assert (ours.slope, ours.r, ours.p) == (f"{fit.slope:.1e}", f"{fit.rvalue:.2f}", f"{fit.pvalue:.2g}")
    assert (ours.runs, ours.discarded) == ("27 of 30", "3 not exact")
    exact = table_of([(n, 0.5 * n) for n in (4, 6, 8, 10)]).assign(fate="converged")
    assert scaling.table_2(exact).set_index("model").loc["text", "p"] == "0"


@pytest.mark.parametrize("converged", [True, False])
def test_too_few_runs_decide_nothing(converged):
    """One run that converged, or none: every claim is measured, and none that needs more is decided."""
    table = pd.concat([table_of([(4, 0.5)], converged, name, v) for name in FUNCTIONS for v in VARIANTS])
    for claim in scaling.CLAIMS + long.CLAIMS:
        judgement = claim.judge(table)
        assert judgement.estimate is not None
        assert all(map(math.isfinite, (judgement.estimate.low, judgement.estimate.high)))
        if "discarded" not in claim.claim:
            assert judgement.verdict == "undecided", claim.claim


def test_a_table_like_the_papers_reproduces_it():
    """Runs drawn around Table 2's own lines, with the spread that its correlations imply."""
    rng, rows = np.random.default_rng(2), []
    for name, line in scaling.TABLE_2.items():
        for variant in VARIANTS:
            n = np.repeat(np.arange(4, 31), 10)
            noise = rng.normal(size=270)
            noise -= np.polyval(np.polyfit(n, noise, 1), n)  # so that the line is met
            noise *= abs(line.slope) * n.std() * math.sqrt(1 / line.r**2 - 1) / noise.std()
            offset = {"parity": -0.5, "majority": 0.0}.get(name, 0.002)
            values = offset + line.slope * n + noise
            rows.append(table_of(list(zip(n, values, strict=True)), True, name, variant))
    table = pd.concat(rows, ignore_index=True)
    lost = table.index[(table["function"] == "parity")][::5]
    verdicts = {claim.claim: claim.judge(table).verdict for claim in scaling.CLAIMS}
    assert {v for c, v in verdicts.items() if "PARITY" not in c or "discarded" not in c} == {"reproduced"}
    table.loc[lost, "converged"] = False
    claims = [claim for claim in scaling.CLAIMS if "PARITY" in claim.claim and "discarded" in claim.claim]
    assert [claim.judge(table).verdict for claim in claims] == ["reproduced"] * 2


def test_a_wrong_slope_is_not_reproduced():
    table = table_of([(n, 0.01 * n + 0.01 * (-1) ** n) for n in range(4, 31) for _ in range(10)])
    first = scaling.CLAIMS[0]
    assert isinstance(first, Claim)
    assert first.judge(table).verdict == "not reproduced"


def test_what_table_2_implies():
    for name, line in scaling.TABLE_2.items():
        assert (name == "parity") == (line.runs < scaling.RUNS)
    x = stats.norm.ppf((np.arange(219) + 0.5) / 219)  # a sample with r = 0.88 exactly
    residual = np.sin(np.arange(219.0))
    residual -= np.polyval(np.polyfit(x, residual, 1), x)
    y = 0.88 * x / x.std() + math.sqrt(1 - 0.88**2) * residual / residual.std()
    found = stats.linregress(x, y)
    assert found.rvalue == pytest.approx(0.88)
    assert found.pvalue == pytest.approx(6e-72, rel=0.4)  # one run more or less makes it half or double
    assert scaling.implied_runs(0.88, found.pvalue) == 219
    half = stats.t.ppf(0.975, 217) * found.stderr
    assert lengths.slope_doubt(found.slope, 0.88, 219) == pytest.approx(half)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_variance_against_all_strings(name):
    from teeter import cube

    for n in (3, 4, 7, 8):
        assert lengths.variance(name, n) == pytest.approx(float(zero_one(name)(cube.points(n)).var(correction=0)))


def test_why_a_run_is_discarded():
    spec = Learner("mean", 300, 0)
    last = dict.fromkeys(("sharpness", "sharpness_released", "blowup", "blowup_released", "norm"), 1.0)

    def fate(mse, spec=spec, stopped="done"):
        made = SimpleNamespace(rows=[{"mse": 9.0}, {"mse": mse, "step": 1, "rate": 1, **last}], stopped=stopped)
        (row,) = lengths.final_row(spec, made)
        assert row["converged"] == (row["fate"] == "converged")
        assert row["mse"] == (None if stopped == "diverged" else pytest.approx(mse, rel=1e-5))
        return row["fate"], None if row["unexplained"] is None else round(row["unexplained"], 5)

    assert fate(1 / 1200) == ("converged", 1)  # the constant 1/2, which the cut lets pass from n = 250 on
    assert fate(1e-3) == ("converged", 1.2)
    assert fate(1.1e-3, Learner("parity", 8, 0)) == ("not exact", 0.0044)
    assert fate(0.125, Learner("parity", 8, 0)) == ("not learned", 0.5)
    assert fate(0.0, stopped="diverged") == ("diverged", None)  # its last row is from before


def test_what_is_run():
    paper = scaling.STUDY.specs("paper")
    assert len(paper) == 4 * (27 + 14) * 5
    assert {(s.dim, s.batch, s.steps, s.rate, s.weight_decay) for s in paper} == {(128, 1024, 10_000, 3e-4, 0.1)}
    every = {kind: {s.n for s in paper if s.variant == kind} for kind in VARIANTS}
    assert every == {"text": set(range(4, 31)), "released": set(range(4, 31, 2))}
    paper = long.STUDY.specs("paper")
    assert len(paper) == 3 * (20 + 10) * 5
    assert {s.n for s in paper if s.variant == "text"} == set(long.LENGTHS)
    released = {s.n for s in paper if s.variant == "released"}
    assert released < set(long.LENGTHS) and {min(released), max(released)} == {4, 512}
    assert {(s.dim, s.batch, s.steps) for s in paper} == {(4, 128, 10_000)}
    assert "parity" not in {s.function for s in paper}
    evenly = np.linspace(4, 512, 20)
    assert np.abs(np.array(long.LENGTHS) - evenly).max() <= 0.5


def test_all_models_of_a_length_are_one_program():
    for study, models in ((scaling.STUDY, 20), (long.STUDY, 15)):
        groups = Counter(study.together.key(spec) for spec in study.specs("paper"))
        assert set(groups.values()) == {models} == {study.together.most}


@pytest.mark.parametrize("study", [scaling.STUDY, long.STUDY], ids=lambda study: study.name)
def test_figures_of_one_variant_and_of_none_converged(study):
    names = list(FUNCTIONS)
    more = dict(blowup=1.0, norm=2.0)
    table = pd.concat([table_of(NOISY, function=name).assign(**more) for name in names])
    texts = [text.get_text() for text in study.figure(table).legends[0].get_texts()]
    assert texts[-2:] == ["text", "two standard deviations"]
    assert "released code" not in texts
    drawn = study.figure(table.assign(converged=False))
    assert sum(t.get_text() == "no run converged" for axes in drawn.axes for t in axes.texts) == len(texts) - 2


def test_lengths_without_a_run_that_converged_are_gaps():
    table = table_of(NOISY, function="majority")
    axes = Figure().subplots()
    length_panels.curves(axes, table, "majority")
    assert not len(axes.lines[1].get_xdata())
    axes = Figure().subplots()
    length_panels.curves(axes, table.assign(converged=table.n != 10), "majority")
    assert axes.lines[0].get_ydata() == pytest.approx([0.2, np.nan, 1.05], nan_ok=True)
    assert axes.lines[1].get_xdata().tolist() == [4, 20]  # each a dash, since no line reaches it


def test_a_look_at_what_layer_norms_divide_by():
    script = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/profiles/first.py"))
    model = model_of(Learner("first", 5, 0, dim=4)).eval()
    x = few_strings(5, torch.device("cpu"))
    assert len(script["parts"](model)) == 1 + 2 * (4 + 4) + 1  # tokens, layers, head
    found = script["divisors"](model, x)
    assert list(found) == ["layers.0.norm1", "layers.0.norm2"]
    with torch.no_grad():
        given = model.embedding(token_numbers(x))
        before = given + model.layers[0].attention(given)
        spread = before.var(-1, correction=0).sqrt()
    assert found["layers.0.norm1"] == pytest.approx((float(spread[:, 0].min()), float(spread.median())), rel=1e-5)
    skip = [name for name, _ in model.named_parameters() if not name.startswith("head")]
    head = 4 * measure.sharpness(model, x, skip=skip).value
    assert script["sharpness_of"](model, x, "head") == pytest.approx(head)
