"""Redraw docs/images and docs/studies from results/: pictures and tables come from stored runs, not from hands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from teeter import cube
from teeter.report import cube_figure, save
from teeter.report.tiers import called
from teeter.report.words import MARKS, measured, number, tally
from teeter.runs import Store, elapsed
from teeter.studies import PAPERS, STUDIES, Judgement, Outcome, Study

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
LOOP = json.loads(max((DOCS.parent / "benchmarks/results").glob("*-training-h200.json")).read_text())

ELSEWHERE = {"vasudeva2025/svhn"}  # our runs say nothing of it: its small tier is part of that of `cifar10`
SMALLER = "a smaller experiment of the same kind, and the verdicts, either way, are on that."


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
        *([] if outcome.tier == "paper" else [f"**{so_far(study)} This is {SMALLER}{other_data(outcome)}**", ""]),
        f"At the {outcome.tier} tier: {tally(outcome.judgements)}. {spent(outcome)}{papers_own(study)}.",
    ]
    waiting = [each for each in outcome.judgements if each.estimate is None]
    judged = [each for each in outcome.judgements if each.estimate is not None]
    if judged:
        lines += ["", "| claim | published | measured | interval | verdict |", "|---|---:|---:|---:|---|"]
    for judgement in judged:
        cells = [judgement.claim.claim, number(judgement.claim.published), *measured(judgement.estimate)]
        lines.append(f"| {' | '.join(cells)} | {MARKS[judgement.verdict]} {judgement.verdict} |")
    if waiting:  # of which there is nothing to see in the table but the claims themselves
        lines += ["", f"Not run at this tier, with what the paper has: {'; '.join(map(told, waiting))}."]
    if study.beside is not None:
        title, made = study.beside
        beside = made(outcome.table)
        lines += ["", f"## {title}", "", f"| {' | '.join(beside.columns)} |", "|---" * beside.shape[1] + "|"]
        lines += [f"| {' | '.join(row)} |" for row in beside.itertuples(index=False)]
    lines += ["", "## Where paper and measurement part", ""]
    lines += [] if outcome.tier == "paper" else ["Of the paper tier, where no other is named.", ""]
    lines += [*(f"- {text}" for text in study.departures), ""]
    return "\n".join(lines)


def told(judgement: Judgement) -> str:
    """A claim and the number that is published, if there is one."""
    published = number(judgement.claim.published)
    return judgement.claim.claim + (f" ({published})" if published else "")


def so_far(study: Study) -> str:
    """What has been run of a paper tier that is not whole."""
    store, keys = Store(RESULTS), study.keys("paper")
    there = sum(store.has(study.home.name, key) for key in keys)
    if not there:
        return "The paper tier has not been run here."
    return f"Of the paper tier, {there} of {len(keys)} runs have been made, and only a whole tier is judged."


def other_data(outcome: Outcome) -> str:
    """The data where they are not the paper's."""
    here, there = (
        {getattr(spec, "data", "") for spec in outcome.study.tiers[tier]} for tier in (outcome.tier, "paper")
    )
    said = " and ".join(re.sub(r"^\S+", r"`\g<0>`", called(each)) for each in sorted(here))
    return f" It is on {said} ([data](../data.md))." if here - there else ""


def spent(outcome: Outcome) -> str:
    """How many runs, how long and where; of models trained on a GPU also what the plain loop would have taken."""
    machines = {each["accelerator"] or f"{each['cores']} CPU cores" for each in outcome.provenance}
    whose = f" of `{outcome.study.home.name}`" if outcome.study.shares else ""
    took = duration(elapsed(outcome.provenance))
    said = f"{len(outcome.provenance)} runs{whose} in {took} on {' and '.join(sorted(machines))}"
    steps = sum(getattr(spec, "steps", 0) * getattr(spec, "models", 1) for spec in tier_of(outcome))
    if not steps or machines != {LOOP["device"]}:
        return said
    ms = LOOP["tables"]["n 20, stack of 64"]["loop float32"]["ms"]
    # A step of much longer inputs has as many kernels, and larger ones.
    longer = max(getattr(spec, "n", 0) for spec in tier_of(outcome)) > 30
    return (
        f"{said}; one model after the other, at the {ms:.1f} ms a step of a plain loop (an encoder of 20 bits), "
        f"{'more than ' if longer else ''}{duration(ms / 1000 * steps)}"
    )


def papers_own(study: Study) -> str:
    return f"; the paper's own took {study.took}" if study.took else ""


def tier_of(outcome: Outcome) -> Sequence[Any]:
    return outcome.study.tiers[outcome.tier]


def duration(seconds: float) -> str:
    """
    >>> duration(3.14), duration(100), duration(7000), duration(36000)
    ('3.1 seconds', '100 seconds', '117 minutes', '10 hours')
    """
    units = [(3600, "hours"), (60, "minutes")]
    size, unit = next((each for each in units if seconds >= 2 * each[0]), (1, "seconds"))
    return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"


def index(outcomes: list[Outcome]) -> str:
    """A line a study, those with the papers' own settings first."""
    lines = ["# Both papers, rerun", ""]
    for words, some in (
        (
            "At the paper tier (time counts while any run of a study is under way, and studies may have shared a GPU):",
            [each for each in outcomes if each.tier == "paper"],
        ),
        (
            f"Those whose paper tier has not been run here, or not to its end: each is {SMALLER}",
            [each for each in outcomes if each.tier != "paper"],
        ),
    ):
        if some:
            lines += [words, "", "| study | rerun of | verdicts | what it took |", "|---|---|---|---|"]
            lines += [*map(line, some), ""]
    return "\n".join(lines)


def line(outcome: Outcome) -> str:
    study = outcome.study
    link = f"[{study.title}]({slug(study.name)}.md)"
    cells = [link, f"{PAPERS[study.paper].short}, {study.where}", tally(outcome.judgements), spent(outcome)]
    return f"| {' | '.join(cells)} |"


def slug(name: str) -> str:
    return name.replace("/", "-")


def main() -> None:
    store, outcomes = Store(RESULTS), []
    for name, study in STUDIES.items():
        outcome = None if name in ELSEWHERE else study.best(store)
        if outcome is None:
            print(f"results/ holds no complete tier of {name}: no page")
            continue
        save(lambda study=study, outcome=outcome: study.figure(outcome.table), DOCS / "images" / f"{slug(name)}.svg")
        place = DOCS / "studies" / f"{slug(name)}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text(study_page(outcome), encoding="utf-8")
        outcomes.append(outcome)
    (DOCS / "studies" / "README.md").write_text(index(outcomes), encoding="utf-8")
    for name in ("majority", "random_function"):
        result = cube.analyse(cube.truth_table(cube.function(name), 15))
        save(lambda result=result, name=name: cube_figure(result, f"{name}, n = 15"), DOCS / "images" / f"{name}.svg")


if __name__ == "__main__":
    main()
