"""What a tier that is not the paper's can say."""

from __future__ import annotations

from teeter.studies import Study

__all__ = ["LESSER", "about_tier"]

LESSER = {
    "smoke": "only shows that the study runs: its verdicts mean nothing",
    "small": "is a smaller experiment of the same kind, and the verdicts, either way, are on that",
}


def about_tier(study: Study, tier: str) -> str:
    """That it is less than the paper's experiment, and on which data where they are others; nothing of the paper tier.

    >>> from teeter.studies import find
    >>> about_tier(find("vasudeva2025/svhn"), "smoke")
    'The smoke tier only shows that the study runs: its verdicts mean nothing. It is on digits, the paper tier on svhn.'
    >>> about_tier(find("vasudeva2025/svhn"), "paper")
    ''
    """
    if tier == "paper":
        return ""
    here, there = (
        sorted({spec.data for spec in study.specs(each) if hasattr(spec, "data")}) for each in (tier, "paper")
    )
    other = "" if here == there else f" It is on {' and '.join(here)}, the paper tier on {' and '.join(there)}."
    return f"The {tier} tier {LESSER[tier]}.{other}"
