"""The experiments of both papers, one file each, by name."""

from collections.abc import Iterable

from teeter.errors import UnknownName
from teeter.studies.hahn2024 import (
    causal,
    dynamics,
    functions,
    generalization,
    initialization,
    length_generalization,
    long,
    parts,
    recurrent,
    scaling,
    scratchpad,
    tradeoff,
)
from teeter.studies.papers import PAPERS
from teeter.studies.several import LACKING, execute_all
from teeter.studies.study import TIERS, Claim, Judgement, Outcome, Study
from teeter.studies.vasudeva2025 import (
    cifar10,
    depth_heads,
    dropout,
    early_warning,
    enlarged,
    fashion,
    flatness,
    grokking,
    imagenet,
    language,
    mnist,
    optimizer,
    random_noise,
    regularisers,
    robustness,
    sparse_parity,
    svhn,
    synthetic,
    synthetic_tables,
    variance,
)

__all__ = [
    "LACKING",
    "PAPERS",
    "STUDIES",
    "TIERS",
    "Claim",
    "Judgement",
    "Outcome",
    "Study",
    "chosen",
    "execute_all",
    "find",
]

_ALL = (
    functions,
    scaling,
    long,
    tradeoff,
    dynamics,
    generalization,
    scratchpad,
    initialization,
    length_generalization,
    causal,
    recurrent,
    parts,
    synthetic,
    synthetic_tables,
    mnist,
    fashion,
    cifar10,
    variance,
    random_noise,
    optimizer,
    depth_heads,
    dropout,
    svhn,
    imagenet,
    enlarged,
    language,
    robustness,
    flatness,
    regularisers,
    grokking,
    early_warning,
    sparse_parity,
)
STUDIES: dict[str, Study] = {each.STUDY.name: each.STUDY for each in _ALL}


def find(name: str) -> Study:
    """A study by name, or an error that suggests the nearest one."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    return STUDIES[name]


def chosen(names: Iterable[str]) -> list[Study]:
    """Studies by name, and by the name of their paper all of a paper; none twice.

    >>> [study.name for study in chosen(["hahn2024/long", "hahn2024"])][:2]
    ['hahn2024/long', 'hahn2024/functions']
    """
    papers = list(dict.fromkeys(study.paper for study in STUDIES.values()))
    found: dict[str, Study] = {}
    for name in names:
        if name not in STUDIES and name not in papers:
            raise UnknownName("study", name, [*STUDIES, *papers])
        found |= {each.name: each for each in STUDIES.values() if name in (each.name, each.paper)}
    return list(found.values())
