"""The experiments of both papers, one file each, by name."""

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
from teeter.studies.study import TIERS, Claim, Judgement, Outcome, Study
from teeter.studies.vasudeva2025 import (
    cifar10,
    depth_heads,
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

__all__ = ["PAPERS", "STUDIES", "TIERS", "Claim", "Judgement", "Outcome", "Study", "find"]

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
