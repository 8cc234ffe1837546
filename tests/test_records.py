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
