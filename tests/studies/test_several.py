"""Studies that are run as one."""

import dataclasses

import pytest

from teeter.data.own import Absent
from teeter.errors import UnknownName
from teeter.runs import Store
from teeter.studies import STUDIES, chosen, execute_all
from teeter.studies.several import _side_by_side
from teeter.studies.vasudeva2025 import grokking, language

FUNCTIONS, TABLES = STUDIES["hahn2024/functions"], STUDIES["vasudeva2025/synthetic-tables"]
BOTH = pytest.mark.parametrize("workers", [1, 2])


def held(outcome):
    return outcome.table.drop(columns="seconds")


def test_names_of_studies_and_of_papers():
    of_h = [study for study in STUDIES.values() if study.paper == "hahn2024"]
    assert chosen(["hahn2024"]) == of_h
    assert chosen([TABLES.name, FUNCTIONS.name, "hahn2024"])[:2] == [TABLES, FUNCTIONS]
    assert len(chosen(["hahn2024", "vasudeva2025", FUNCTIONS.name])) == len(STUDIES)
    with pytest.raises(UnknownName, match="did you mean 'hahn2024'"):
        chosen(["han2024"])


@BOTH
def test_as_each_by_itself(workers, tmp_path):
    told: list[int] = []
    alone = [study.execute("smoke", Store(tmp_path / "alone")) for study in (FUNCTIONS, TABLES)]
    half = Store(tmp_path / "half")
    half.save(next(Store(tmp_path / "alone").runs(TABLES.name, TABLES.keys("smoke")[:1])))
    both = execute_all([FUNCTIONS, TABLES], "smoke", half, told.append, workers=workers)
    assert all(held(one).equals(other) for one, other in zip(alone, map(held, both), strict=True))
    assert [each.judgements for each in both] == [each.judgements for each in alone]
    assert told[-1] == len(FUNCTIONS.specs("smoke")) + len(TABLES.specs("smoke"))
    assert told == sorted(told)


def test_what_two_look_at_is_made_once(tmp_path):
    made = []

    def run(spec):
        made.append(spec)
        return FUNCTIONS.run(spec)

    home = dataclasses.replace(FUNCTIONS, run=run)
    some = {"smoke": home.specs("smoke")[2:5]}
    other = dataclasses.replace(home, name="hahn2024/other", shares=home, tiers=some, claims=())
    outcomes = execute_all([other, home], "smoke", Store(tmp_path))
    assert [len(outcome.provenance) for outcome in outcomes] == [3, len(home.specs("smoke"))]
    assert sorted(made, key=str) == sorted(home.specs("smoke"), key=str)


@BOTH
def test_without_its_data_a_study_is_left_out(workers, monkeypatch, tmp_path):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    lacking = dataclasses.replace(language.STUDY, tiers={"smoke": language.SMALL[:4]})
    told: list[tuple[str, str]] = []
    outcomes = execute_all(
        [lacking, TABLES], "smoke", Store(tmp_path), workers=workers, left_out=lambda *each: told.append(each)
    )
    assert [(name, type(problem)) for name, problem in told] == [(language.STUDY.name, Absent)]
    assert [len(outcome.provenance) for outcome in outcomes] == [0, len(TABLES.specs("smoke"))]
    with pytest.raises(Absent):
        execute_all([lacking, TABLES], "smoke", Store(tmp_path), workers=workers)


def test_of_all_studies_in_turn(monkeypatch, tmp_path):
    """A stack of many runs is one piece."""
    seen = []
    monkeypatch.setattr("teeter.studies.several.on_cores", lambda work, pieces, *more: seen.extend(pieces))
    given = [(grokking.STUDY, grokking.SMALL), (FUNCTIONS, FUNCTIONS.specs("smoke")[:4])]
    _side_by_side(given, Store(tmp_path), lambda count: None, workers=3, seconds=None, left_out=None)
    names = [piece[0][0].partition("/")[2] for piece in seen]
    assert names == ["grokking", "functions", "grokking", "functions", "functions", "functions"]
    assert [len(piece) for piece in seen] == [4, 1, 4, 1, 1, 1]


@BOTH
def test_nothing_is_begun_after_its_time(workers, tmp_path):
    outcomes = execute_all([FUNCTIONS, TABLES], "smoke", Store(tmp_path), seconds=-1, workers=workers)
    assert [len(outcome.provenance) for outcome in outcomes] == [0, 0]
