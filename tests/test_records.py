"""Numbers of the benchmarks in README and docs are those of the records they stand on."""

import json
from pathlib import Path

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
