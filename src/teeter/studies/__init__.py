"""The experiments of both papers, one file each, by name."""

from teeter.errors import UnknownName
from teeter.studies.hahn2024 import dynamics, functions, tradeoff
from teeter.studies.papers import PAPERS
from teeter.studies.study import TIERS, Claim, Judgement, Outcome, Study
from teeter.studies.vasudeva2025 import synthetic_tables

__all__ = ["PAPERS", "STUDIES", "TIERS", "Claim", "Judgement", "Outcome", "Study", "find"]

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        functions.STUDY,
        tradeoff.STUDY,
        dynamics.STUDY,
        synthetic_tables.STUDY,
    )
}


def find(name: str) -> Study:
    """A study by name, or an error that suggests the nearest one."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    return STUDIES[name]
