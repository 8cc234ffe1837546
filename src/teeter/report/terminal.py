"""The claims of a study as a table in the terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from teeter.measure import Estimate
from teeter.report.tiers import about_tier
from teeter.report.words import MARKS, judged_first, measured, number, tally
from teeter.studies import Outcome

__all__ = ["claims_table"]

_COLOURS = {"reproduced": "green", "not reproduced": "red", "undecided": "yellow", "not run at this tier": "dim"}


def claims_table(outcome: Outcome) -> Table:
    """Published beside measured, with the interval and the verdict; below, what the tier can say."""
    study = outcome.study
    table = Table(
        title=f"{study.name} ({outcome.tier}): {study.where}",
        caption="\n".join(filter(None, (tally(outcome.judgements), about_tier(study, outcome.tier)))),
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("claim", overflow="fold")
    table.add_column("published", justify="right", no_wrap=True)
    table.add_column("measured", no_wrap=True)
    table.add_column("", no_wrap=True)
    for judgement in judged_first(outcome.judgements):
        table.add_row(
            Text(judgement.claim.claim),
            number(judgement.claim.published),
            Text(_told(judgement.estimate)),
            Text(MARKS[judgement.verdict], style=_COLOURS[judgement.verdict]),
        )
    return table


def _told(estimate: Estimate | None) -> str:
    value, interval = measured(estimate, ", ")
    return f"{value} [{interval}]" if interval else value
