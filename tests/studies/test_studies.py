"""Every study: it declares what a study declares, and runs at smoke."""

import dataclasses

import pytest

from teeter.errors import UnknownName
from teeter.report.drawing import svg
from teeter.runs import Store, execute
from teeter.studies import PAPERS, STUDIES, TIERS, find
from teeter.studies.hahn2024 import functions

ALL = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)


@ALL
def test_declaration(study):
    assert study.name.split("/")[0] == study.paper
    assert study.paper in PAPERS
    assert tuple(study.tiers) == TIERS
    assert study.about.strip()
    assert study.where
    for specs in study.tiers.values():
        assert all(1 <= len(dataclasses.fields(spec)) <= 10 for spec in specs)
        assert len(set(specs)) == len(specs)
    names = [claim.claim for claim in study.claims]
    assert names
    assert len(set(names)) == len(names)


@ALL
def test_smoke(study, tmp_path):
    store = Store(tmp_path)
    assert study.best(store) is None
    outcome = study.execute("smoke", store)
    assert len(outcome.provenance) == len(study.specs("smoke"))
    assert {j.verdict for j in outcome.judgements} <= {"reproduced", "not reproduced", "undecided"}
    assert "<svg" in svg(lambda: study.figure(outcome.table), study.name)  # not all can be drawn that can be made
    best = study.best(store)
    assert best is not None
    assert best.tier == "smoke"
    again = study.execute("smoke", Store(tmp_path / "again"))
    assert outcome.table.drop(columns="seconds").equals(again.table.drop(columns="seconds"))  # same seed, same rows


@ALL
def test_half_a_grid_decides_nothing(study, tmp_path):
    store = Store(tmp_path)
    execute(store, study.name, study.revision, study.run, study.specs("smoke")[:2])
    outcome = study.outcome("smoke", store)
    assert len(outcome.provenance) == 2
    assert {j.verdict for j in outcome.judgements} == {"not run at this tier"}
    assert {j.record()["measured"] for j in outcome.judgements} == {None}
    assert study.best(store) is None


def test_a_new_revision_does_not_count_old_runs(tmp_path):
    study = functions.STUDY
    study.execute("smoke", Store(tmp_path))
    assert dataclasses.replace(study, revision=2).best(Store(tmp_path)) is None


def test_unknown_names_are_corrected():
    with pytest.raises(UnknownName, match="did you mean 'hahn2024/functions'"):
        find("hahn2024/function")
    with pytest.raises(UnknownName, match="no tier named 'papers': did you mean 'paper'"):
        functions.STUDY.specs("papers")
