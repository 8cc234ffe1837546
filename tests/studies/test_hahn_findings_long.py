"""Findings that the findings and the departures of `long` name are those of the results they stand on."""

import math
import runpy

import pytest

from teeter.runs import Store
from teeter.studies import find, over_runs
from teeter.studies.hahn2024.learning import Learner
from tests.test_records import FINDINGS, ROOT, record, spread


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
    assert f"a LayerNorm divides by {low:.2f} to {high:.2f}" in FINDINGS
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
    """As the findings and the departures of `long` have it."""
    study = find("hahn2024/long")
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
    assert f"{of[1]} of {all_of[1]} between 164 and 432 bits" in FINDINGS
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
    assert f"are sharp, {above.sum()} of them sharper than any of the {there} that learned MAJORITY there" in FINDINGS


def test_majority_and_mean_of_long_inputs():
    """As the findings and the departures of `long` have it."""
    study = find("hahn2024/long")
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
    assert f"of {learned['size'][True]} networks beyond, seven learn it, and among these it does not grow" in FINDINGS
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
