"""How numbers and verdicts are written, in the terminal and on the page alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from teeter.studies import Judgement

__all__ = ["MARKS", "interval_heading", "number", "tally"]

MARKS = {"reproduced": "✓", "not reproduced": "✗", "undecided": "?", "not run at this tier": "–"}


def number(value: float) -> str:
    """Four significant digits, and no more zeros than that.

    >>> number(0.13152542), number(1.0000000000000004), number(0.0)
    ('0.1315', '1', '0')
    """
    return f"{value:.4g}"


def tally(judgements: Iterable[Judgement]) -> str:
    """How many claims came out which way."""
    verdicts = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{mark} {verdicts[verdict]} {verdict}" for verdict, mark in MARKS.items() if verdicts[verdict])


def interval_heading(judgements: Iterable[Judgement]) -> str:
    """What to write above the intervals: the confidence they hold with."""
    held = {j.estimate.confidence for j in judgements if j.estimate and j.estimate.half_width}
    return f"{' and '.join(f'{100 * c:.3g} %' for c in sorted(held))} interval" if held else "interval"
