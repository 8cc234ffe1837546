"""Studies that are run as one."""

import dataclasses
import sys
import time
import warnings
from contextlib import suppress

import pytest

from teeter.data.own import Absent
from teeter.errors import RunsFailed, UnknownName
from teeter.runs import Store, Together
from teeter.studies import STUDIES, Study, chosen, execute_all
from teeter.studies.vasudeva2025 import cifar10, grokking, language, reading, svhn

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
    assert told[0] == 1  # what is there counts at once


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


def test_runs_of_two_studies_are_not_made_together(tmp_path):
    """What was under way of the one would not be found when it is run alone, or the other way round."""
    made = []

    def run(specs, folder):
        made.append((len(specs), folder))
        raise MemoryError

    together = Together(key=lambda spec: 0, run=run, most=99)
    home = dataclasses.replace(FUNCTIONS, together=together)
    specs = home.specs("smoke")
    other = dataclasses.replace(home, name="hahn2024/other", shares=home, tiers={"smoke": specs[:5]}, claims=())
    for studies in ([other, home], [other]):
        with suppress(MemoryError, RunsFailed), warnings.catch_warnings(action="ignore"):
            execute_all(studies, "smoke", Store(tmp_path))
    assert [count for count, _ in made] == [5, len(specs) - 5, 5]
    assert made[0] == made[2]


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


@BOTH
@pytest.mark.parametrize("first", [True, False])
def test_others_of_its_home_are_not(first, workers, monkeypatch, tmp_path):
    """Runs on SVHN, which no registry has, are kept beside those on CIFAR-10."""
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    few = {"smoke": cifar10.SMOKE[:2]}
    with_svhn = {"smoke": [*svhn.PAPER[:2], cifar10.SMOKE[0], cifar10.SMOKE[2]]}
    without = dataclasses.replace(cifar10.STUDY, tiers=few)
    lacking = dataclasses.replace(svhn.STUDY, tiers=with_svhn, shares=cifar10.STUDY)
    told: list[str] = []
    execute_all(
        [lacking, without] if first else [without, lacking],
        "smoke",
        Store(tmp_path),
        workers=workers,
        left_out=lambda name, problem: told.append(name),
    )
    assert told == [svhn.STUDY.name]
    assert len(without.outcome("smoke", Store(tmp_path)).provenance) == 2


@pytest.mark.parametrize("first", [True, False])
def test_runs_that_fail_do_not_end_other_studies(first, tmp_path):
    def run(spec):
        if spec.n == 2:
            raise ZeroDivisionError("oops")
        return FUNCTIONS.run(spec)

    broken = dataclasses.replace(FUNCTIONS, run=run)
    both = [broken, TABLES] if first else [TABLES, broken]
    words = r"of 47 groups of runs failed, the first with ZeroDivisionError: oops"
    with pytest.raises(RunsFailed, match=words), pytest.warns(RuntimeWarning, match="hahn2024/functions: .*n=2"):
        execute_all(both, "smoke", Store(tmp_path))
    assert len(TABLES.outcome("smoke", Store(tmp_path)).provenance) == 7
    failed = sum(spec.n == 2 for spec in FUNCTIONS.specs("smoke"))
    assert len(FUNCTIONS.outcome("smoke", Store(tmp_path)).provenance) == 40 - failed > 0


def test_of_all_studies_in_turn(monkeypatch, tmp_path):
    """A stack of many runs is one piece."""
    seen = []
    monkeypatch.setattr("teeter.studies.several.on_cores", lambda work, pieces, *more: seen.extend(pieces))
    monkeypatch.setattr(Study, "outcome", lambda *given: None)
    few = dataclasses.replace(FUNCTIONS, tiers={"small": FUNCTIONS.specs("smoke")[:4]})
    execute_all([grokking.STUDY, few], "small", Store(tmp_path), workers=3)
    names = [piece[0].home.partition("/")[2] for piece in seen]
    assert names == ["grokking", "functions", "grokking", "functions", "functions", "functions"]
    assert [len(piece) for piece in seen] == [4, 1, 4, 1, 1, 1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_failed_is_told_though_time_is_over(tmp_path):
    def run(spec):
        time.sleep(0.05)
        raise RuntimeError("lightning")

    with pytest.raises(RunsFailed, match="^1 of 47"):
        execute_all([dataclasses.replace(FUNCTIONS, run=run), TABLES], "smoke", Store(tmp_path), seconds=0.01)


def test_a_package_that_is_not_installed_is_no_matter_to_others(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    reading.texts_of.cache_clear()  # an earlier test may have read them
    lacking = dataclasses.replace(language.STUDY, tiers={"smoke": language.SMOKE[:2]})
    told: list[tuple[str, str]] = []
    outcomes = execute_all(
        [lacking, TABLES], "smoke", Store(tmp_path), left_out=lambda name, problem: told.append((name, str(problem)))
    )
    assert [len(outcome.provenance) for outcome in outcomes] == [0, len(TABLES.specs("smoke"))]
    [(name, words)] = told
    assert name == language.STUDY.name and "pip install 'teeter[text]'" in words


@BOTH
def test_nothing_is_begun_after_its_time(workers, tmp_path):
    outcomes = execute_all([FUNCTIONS, TABLES], "smoke", Store(tmp_path), seconds=-1, workers=workers)
    assert [len(outcome.provenance) for outcome in outcomes] == [0, 0]
