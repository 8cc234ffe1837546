"""Every study: it declares what a study declares, and runs at smoke."""

import dataclasses
import sys

import pytest

from teeter import cli
from teeter.errors import UnknownName
from teeter.report.drawing import svg
from teeter.runs import Store
from teeter.studies import PAPERS, STUDIES, TIERS, find
from teeter.studies.hahn2024 import functions

ALL = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two, each with the smoke runs of the studies so far: some studies look at the same runs."""
    return [Store(tmp_path_factory.mktemp("store")) for _ in range(2)]


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


LONGER = {"hahn2024/parts", "hahn2024/recurrent"}


@ALL
def test_smoke(study, stores, monkeypatch):
    store, other = stores
    outcome = study.execute("smoke", store)
    assert len(outcome.provenance) == len(study.specs("smoke"))
    data = [{getattr(spec, "data", "") for spec in study.specs(tier)} for tier in ("smoke", "paper")]
    # V's numbers are about V's images, and some of ours about longer inputs.
    unlike = {"not run at this tier"} if data[0] != data[1] or study.name in LONGER else set()
    assert {j.verdict for j in outcome.judgements} <= {"reproduced", "not reproduced", "undecided"} | unlike
    assert "<svg" in svg(lambda: study.figure(outcome.table), study.name)  # not all can be drawn that can be made
    best = study.best(store)
    assert best is not None
    assert best.tier == "smoke"
    monkeypatch.setattr(
        sys, "argv", ["teeter", *f"study run {study.name} --tier smoke --store".split(), str(other.folder)]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    again = study.outcome("smoke", other)
    assert outcome.table.drop(columns="seconds").equals(again.table.drop(columns="seconds"))  # same seed, same rows


@ALL
def test_half_a_grid_decides_nothing(study, stores, tmp_path):
    store = Store(tmp_path)
    assert study.best(store) is None
    study.execute("smoke", stores[0])
    for run in stores[0].runs(study.home.name, study.keys("smoke")[:1]):
        store.save(run)
    outcome = study.outcome("smoke", store)
    assert len(outcome.provenance) == 1
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


def test_a_study_may_look_at_the_runs_of_another(tmp_path):
    """Its runs are the other's, made by the other and kept under its name; its claims are its own."""
    made = []

    def run(spec):
        made.append(spec)
        return functions.STUDY.run(spec)

    home = dataclasses.replace(functions.STUDY, run=run)
    specs = home.specs("smoke")
    claims = functions.STUDY.claims[:1]
    other = dataclasses.replace(
        home, name="hahn2024/other", shares=home, run=None, revision=7, tiers={"smoke": specs[:3]}, claims=claims
    )
    assert (other.home, home.home) == (home, home)
    assert other.keys("smoke") == home.keys("smoke")[:3]
    store = Store(tmp_path)
    assert len(other.execute("smoke", store).provenance) == 3
    assert made == list(specs[:3])
    assert [place.name for place in (tmp_path / "hahn2024").iterdir()] == ["functions"]
    assert len(home.execute("smoke", store).provenance) == len(specs)
    assert made == list(specs)  # none of them twice
    assert len(other.execute("smoke", store).judgements) == 1
    assert len(made) == len(specs)
    raised = dataclasses.replace(home, revision=home.revision + 1)
    assert dataclasses.replace(other, shares=raised).outcome("smoke", store).provenance == []


def test_who_shares_runs_has_none_of_its_own():
    shared = [study for study in STUDIES.values() if study.shares]
    assert shared
    for study in shared:
        assert study.home is STUDIES[study.home.name]
        assert study.home.shares is None
        assert {type(spec) for spec in study.specs("paper")} == {type(spec) for spec in study.home.specs("paper")}
