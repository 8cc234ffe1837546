"""Redraw docs/images and docs/studies from results/: pictures and tables come from stored runs, not from hands."""

from __future__ import annotations

from pathlib import Path

from teeter import cube
from teeter.report import cube_figure, save
from teeter.report.words import MARKS, number, tally
from teeter.runs import Store
from teeter.studies import PAPERS, STUDIES, Outcome

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"


def study_page(outcome: Outcome) -> str:
    study = outcome.study
    lines = [
        f"# {study.title}",
        "",
        f"{PAPERS[study.paper].short}, {study.where}. `teeter study run {study.name} --tier {outcome.tier}`",
        "",
        study.about.strip(),
        "",
        f"![{study.title}](../images/{slug(study.name)}.svg)",
        "",
        f"At the {outcome.tier} tier: {tally(outcome.judgements)}.",
        "",
        "| claim | published | measured | interval | verdict |",
        "|---|---:|---:|---:|---|",
    ]
    for judgement in outcome.judgements:
        e = judgement.estimate
        interval = f"{number(e.low)} to {number(e.high)}" if e and e.half_width else ""
        cells = [judgement.claim.claim, number(judgement.claim.published), number(e.value) if e else "", interval]
        lines.append(f"| {' | '.join(cells)} | {MARKS[judgement.verdict]} {judgement.verdict} |")
    lines += ["", "## Where paper and measurement part", "", *(f"- {text}" for text in study.departures), ""]
    return "\n".join(lines)


def slug(name: str) -> str:
    return name.replace("/", "-")


def main() -> None:
    store = Store(RESULTS)
    for name, study in STUDIES.items():
        outcome = study.best(store)
        if outcome is None:
            print(f"results/ holds no complete tier of {name}: no page")
            continue
        save(lambda study=study, outcome=outcome: study.figure(outcome.table), DOCS / "images" / f"{slug(name)}.svg")
        place = DOCS / "studies" / f"{slug(name)}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text(study_page(outcome), encoding="utf-8")
    for name in ("majority", "random_function"):
        result = cube.analyse(cube.truth_table(cube.function(name), 15))
        save(lambda result=result, name=name: cube_figure(result, f"{name}, n = 15"), DOCS / "images" / f"{name}.svg")


if __name__ == "__main__":
    main()
