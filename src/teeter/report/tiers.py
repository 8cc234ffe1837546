"""What a tier that is not the paper's can say."""

from __future__ import annotations

from teeter.studies import Study
from teeter.studies.vasudeva2025.settings import SETTINGS

__all__ = ["LESSER", "about_tier", "called"]

LESSER = {
    "smoke": "only shows that the study runs: its verdicts mean nothing",
    "small": "is a smaller experiment of the same kind, and the verdicts, either way, are on that",
}


def about_tier(study: Study, tier: str) -> str:
    """That it is less than the paper's experiment, and on which data where they are others; nothing of the paper tier.

    >>> from teeter.studies import find
    >>> about_tier(find("vasudeva2025/svhn"), "smoke")
    'The smoke tier only shows that the study runs: its verdicts mean nothing. It is on digits, the paper tier on svhn.'
    >>> about_tier(find("vasudeva2025/cifar10"), "small").rpartition(". ")[-1]
    'It is on cifar10 with small models, the paper tier on cifar10.'
    >>> about_tier(find("vasudeva2025/svhn"), "paper")
    ''
    """
    if tier == "paper":
        return ""
    here, there = (
        sorted({called(spec.data) for spec in study.specs(each) if hasattr(spec, "data")}) for each in (tier, "paper")
    )
    other = "" if here == there else f" It is on {' and '.join(here)}, the paper tier on {' and '.join(there)}."
    return f"The {tier} tier {LESSER[tier]}.{other}"


def called(data: str) -> str:
    """A study's data in words, which begin with their own name.

    >>> called("digits"), called("cifar10-96"), called("cifar10-small")
    ('digits', 'cifar10 enlarged to 96 x 96 pixels', 'cifar10 with small models')
    """
    size = SETTINGS[data].size if data in SETTINGS else 0
    how = f" enlarged to {size} x {size} pixels" if size else " with small models" if data.endswith("-small") else ""
    return data.removesuffix(f"-{size}").removesuffix("-small") + how
