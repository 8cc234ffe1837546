"""The report: one HTML file that needs nothing beside it and nothing from the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path

import teeter
from teeter.report.drawing import replace_file, svg
from teeter.report.tiers import LESSER, about_tier
from teeter.report.words import MARKS, interval_heading, judged_first, measured, number, tally
from teeter.runs import Store, elapsed
from teeter.studies import PAPERS, STUDIES, TIERS, Judgement, Outcome, Study

__all__ = ["render", "write_page"]

_CSS = """
:root { color-scheme: light; --ink: #1c1c1c; --soft: #5f6368; --line: #e3e3e3; --paper: #fff; --wash: #f7f7f5; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--wash); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 2rem; margin: 0 0 .25rem; } h2 { font-size: 1.3rem; margin: 0 0 .25rem; }
p { max-width: 46rem; } .soft { color: var(--soft); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem; }
section { padding: 1.5rem; margin: 1.5rem 0; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .4rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; } .n { text-align: right; white-space: nowrap; }
.v { white-space: nowrap; font-weight: 600; }
.reproduced { color: #0a6b3d; } .not-reproduced { color: #a8200d; } .undecided { color: #8a6100; }
.not-run-at-this-tier { color: var(--soft); }
code { background: var(--wash); padding: .05rem .3rem; border-radius: .25rem; }
footer table { font-size: .85rem; } details { margin-top: 1rem; } summary { cursor: pointer; font-weight: 600; }
@media print { body { background: #fff; } section { break-inside: avoid; border: none; padding: 0; } }
"""


def render(store: Store, studies: Iterable[Study] = STUDIES.values()) -> str:
    """Every study at the highest tier the store holds in full, and what has not been run."""
    shown: list[Outcome] = []
    absent: list[Study] = []
    for study in studies:
        outcome = study.best(store)
        if outcome is None:
            absent.append(study)
        else:
            shown.append(outcome)
    parts = [_head(shown), *map(_study, shown)]
    if absent:
        rows = "".join(f"<li><code>{escape(s.name)}</code> {escape(s.title)}</li>" for s in absent)
        parts.append(f"<section><h2>Not run</h2><ul>{rows}</ul></section>")
    parts.append(_foot(shown))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>teeter report</title><style>{_CSS}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def write_page(store: Store, out: Path | str) -> Path:
    """The page as index.html in the folder `out`, replaced in one step."""
    place = Path(out) / "index.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    return replace_file(place, render(store).encode())


_VERDICTS = (
    "Each verdict is computed. The published value has a tolerance: half a unit of its last printed digit, or what the "
    "rule of the claim allows. <em>Reproduced</em> means that the interval meets the value with its tolerance, and "
    "that half its width is at most a tenth of the value, or what the rule asks for, so that it could have told "
    "otherwise; a claim that something is absent is reproduced only where all of the interval is within the tolerance. "
    "<em>Undecided</em> means that the interval meets it but is too wide for that, <em>not reproduced</em> that it "
    "misses it."
)


def _head(shown: list[Outcome]) -> str:
    lines = [_count(tier, [each for each in shown if each.tier == tier]) for tier in reversed(TIERS)]
    return (
        "<h1>How easily does it change its mind?</h1>"
        f'<p class="soft">Published numbers beside measured ones, with intervals. {_VERDICTS}</p>'
        + ("".join(lines) or "<p><strong>0 claims</strong>.</p>")
    )


def _count(tier: str, outcomes: list[Outcome]) -> str:
    """How many claims came out which way at one tier; tiers are never added up."""
    judgements = [judgement for outcome in outcomes for judgement in outcome.judgements]
    if not judgements:
        return ""
    lesser = f" This tier {LESSER[tier]}." if tier in LESSER else ""
    return f"<p><strong>{len(judgements)} claims at the {tier} tier</strong>: {tally(judgements)}.{lesser}</p>"


def _study(outcome: Outcome) -> str:
    study = outcome.study
    paper = PAPERS[study.paper]
    about = "".join(f"<p>{escape(text)}</p>" for text in study.about.strip().split("\n\n"))
    seconds = elapsed(outcome.provenance)
    departures = "".join(f"<li>{escape(text)}</li>" for text in study.departures)
    whose = f" of <code>{escape(study.home.name)}</code>" if study.shares else ""
    took = f" (the paper's own: {escape(study.took)})" if study.took else ""
    lesser = about_tier(study, outcome.tier)
    warning = f"<p><strong>{escape(lesser)}</strong></p>" if lesser else ""
    picture = svg(lambda: study.figure(outcome.table), study.name)
    return (
        f'<section id="{escape(study.name)}"><h2>{escape(study.title)}</h2>'
        f'<p class="soft">{escape(paper.short)}, {escape(study.where)} · <code>{escape(study.name)}</code> · '
        f"tier <em>{escape(outcome.tier)}</em> · {len(outcome.provenance)} runs{whose}, {seconds:.1f} s{took}</p>"
        f"{warning}{about}"
        f'<figure role="img" aria-label="{escape(study.title)}">{picture}</figure>{_claims(outcome.judgements)}'
        f"{_beside(outcome)}"
        f"<details open><summary>Where paper and measurement part</summary><ul>{departures}</ul></details></section>"
    )


def _claims(judgements: list[Judgement]) -> str:
    lines = []
    for judgement in judged_first(judgements):
        estimate, verdict = judgement.estimate, judgement.verdict
        value, interval = measured(estimate)
        lines.append(
            f"<tr><td>{escape(judgement.claim.claim)}</td>"
            f'<td class="n">{number(judgement.claim.published)}</td>'
            f'<td class="n">{value}</td><td class="n">{interval}</td>'
            f'<td class="v {verdict.replace(" ", "-")}">{MARKS[verdict]} {verdict}</td></tr>'
        )
    return (
        '<div class="wide"><table><thead><tr><th>claim</th><th class="n">published</th><th class="n">measured</th>'
        f'<th class="n">{interval_heading(judgements)}</th><th>verdict</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _beside(outcome: Outcome) -> str:
    """A table of the paper's with ours beside it, where the study has one."""
    if outcome.study.beside is None:
        return ""
    title, made = outcome.study.beside
    table = made(outcome.table)
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in table.itertuples(index=False))
    return (
        f'<h3>{escape(title)}</h3><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table></div>"
    )


def _foot(shown: list[Outcome]) -> str:
    """Each setting that any of the shown runs came from, once, with how many runs it accounts for."""
    settings: Counter[tuple[tuple[str, str], ...]] = Counter()
    runs = {  # some studies look at the same ones
        key: provenance
        for outcome in shown
        for key, provenance in zip(outcome.table["run"].unique(), outcome.provenance, strict=True)
    }
    for provenance in runs.values():
        kept = {
            k: v for k, v in provenance.items() if k not in ("seconds", "slices", "when", "revision") and v is not None
        }
        settings[tuple((k, str(v)) for k, v in kept.items())] += 1
    blocks = []
    for setting, count in settings.most_common():
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in setting)
        blocks.append(f"<table><tbody><tr><th>runs</th><td>{count}</td></tr>{rows}</tbody></table>")
    return (
        f'<footer class="soft"><h2>Provenance</h2><p>Page by teeter {escape(teeter.__version__)} from the store '
        f"alone; every number on it was measured as stated here.</p>{'<hr>'.join(blocks)}</footer>"
    )
