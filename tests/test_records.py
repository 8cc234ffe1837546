"""Numbers that README, docs and departures name are those of the records they stand on."""

import json
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from teeter.runs import Store

ROOT = Path(__file__).parents[1]
FINDINGS = " ".join((ROOT / "docs/findings.md").read_text().split())
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


def test_what_the_readme_finds_is_in_the_findings():
    """Each of those few names a section of the findings. Its numbers stand there too, with the same word before or
    after them, and so do those of the figures or sections that it names."""
    page = (ROOT / "README.md").read_text()
    listed = page.partition("what rerunning them has shown")[2].partition("\n\n- ")[2].partition("\n\n")[0]
    bullets = listed.split("\n- ")
    sections = {}
    for part in (ROOT / "docs/findings.md").read_text().split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        place = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        sections[place] = title, " ".join(text.partition("\n## ")[0].split())
    assert len(bullets) >= 6
    for bullet in bullets:
        lead, anchor, said = re.fullmatch(r"\[(.*?)\]\(docs/findings.md#(.*?)\)(.*)", bullet, re.DOTALL).groups()
        title, text = sections[anchor]
        assert title.startswith(" ".join(lead.split()))
        where = re.findall(r"\([VH], ([^()]*\d[^()]*)\)", said)
        for number in re.findall(r"[\d.]+", " ".join(where)):
            assert re.search(rf"(?<![\w.]){re.escape(number)}\b", text), (number, bullet)
        said = " ".join(re.sub(r"\([VH], [^()]*\d[^()]*\)", "", said).split())
        for before, number, after in re.findall(r"(\w+ )(?=(-?\d+(?:,\d{3})*(?:\.\d+)?)( \w+)?)", said):
            beside = [before + number] + ([number + after] if after else [])
            assert any(re.search(rf"(?<![\w.]){re.escape(each)}(?!\w|[.,]\d)", text) for each in beside), (
                number,
                bullet,
            )


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


def test_what_is_claimed_of_processors():
    run, script = record("processor"), runpy.run_path(str(ROOT / "benchmarks/processor.py"))
    assert all(run[name] >= claim for name, claim in script["CLAIMS"].items())
    whats = ("attention", "memory", "products", "modular_products", "tables")
    told = [f"{run[f'{what}_{way}']:.1f}x" for what in whats for way in ("forward", "step")]
    words = "{} and {}, {} and {}, {} and {} (a + b mod 113: {} and {}), {} and {}."
    assert words.format(*told) in " ".join(script["__doc__"].split())
    assert "+" not in run["provenance"]["commit"]
    page = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    words = "{} times as fast forward, {} times in training"
    assert "of ViT-small on two cores " + words.format(*(each[:-1] for each in told[:2])) in page
    assert words.format(*(each[:-1] for each in told[2:4])) + ", of ViT-small on two cores" in page
    assert words.format(*(each[:-1] for each in told[4:6])) + ", of ViT-small on two cores, and " in page
    assert "{} and {} of a + b mod 113.".format(*(each[:-1] for each in told[6:8])) in page
    assert words.format(*(each[:-1] for each in told[8:])) + ", of p = 113 on two cores" in page
    page = " ".join((ROOT / "docs/store.md").read_text().split())
    assert f"(on two cores a ViT trains {told[3][:-1]} times as fast)" in page
    assert f"there it makes a ViT train {told[5][:-1]} times as fast." in page


NOT_CLEAN = {("vasudeva2025/sparse-parity", None): 1}


def test_runs_are_of_code_that_was_committed():
    """But for one, made before what ran it was committed."""
    found = Counter()
    for place in (ROOT / "results").glob("*/*"):
        for run in Store(ROOT / "results").runs(f"{place.parent.name}/{place.name}"):
            if str(run.provenance["commit"]).endswith("+"):
                found[run.study, run.spec.get("model")] += 1
    assert found == NOT_CLEAN
