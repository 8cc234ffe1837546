"""How numbers and verdicts are written, in the terminal and on the page alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from teeter.measure import Estimate
from teeter.studies import Judgement

__all__ = ["MARKS", "interval_heading", "judged_first", "measured", "number", "tally"]

MARKS = {"reproduced": "✓", "not reproduced": "✗", "undecided": "?", "not run at this tier": "–"}


def number(value: float | None) -> str:
    """Four significant digits, and no more zeros than that; nothing where there is no number.

    >>> number(0.13152542), number(1.0000000000000004), number(0.0), number(None)
    ('0.1315', '1', '0', '')
    """
    return "" if value is None else f"{value:.4g}"


def measured(estimate: Estimate | None, between: str = " to ") -> tuple[str, str]:
    """A value and its interval: nothing where there is none, and nothing where no run says anything of it.

    >>> measured(Estimate(0.5, 0.25, 0.75, n=10)), measured(Estimate(2.0, 2.0, 2.0, n=10))
    (('0.5', '0.25 to 0.75'), ('2', ''))
    >>> from teeter.studies.over_runs import unknown
    >>> measured(unknown((0.0, 1.0)))
    ('', '')
    """
    if estimate is None or estimate.n == 0:
        return "", ""
    interval = f"{number(estimate.low)}{between}{number(estimate.high)}" if estimate.half_width else ""
    return number(estimate.value), interval


def tally(judgements: Iterable[Judgement]) -> str:
    """How many claims came out which way."""
    verdicts = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{mark} {verdicts[verdict]} {verdict}" for verdict, mark in MARKS.items() if verdicts[verdict])


def judged_first(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Those that no run of the tier says anything of come last, and else all as they are."""
    return sorted(judgements, key=lambda judgement: judgement.estimate is None)


def interval_heading(judgements: Iterable[Judgement]) -> str:
    """What to write above the intervals: the confidence they hold with."""
    held = {j.estimate.confidence for j in judgements if j.estimate and j.estimate.n and j.estimate.half_width}
    return f"{' and '.join(f'{100 * c:.3g} %' for c in sorted(held))} interval" if held else "interval"
