"""What a run that fails does to the others."""

import weakref
from dataclasses import dataclass

import pytest

from teeter.errors import InputError, NotFinite, RunsFailed, TooLarge
from teeter.runs import Store, Together, execute
from teeter.runs.failures import Failures


@dataclass(frozen=True)
class Spec:
    n: int


@pytest.mark.parametrize("kind", [RuntimeError, TooLarge, NotFinite, KeyError], ids=lambda kind: kind.__name__)
def test_a_run_that_fails_leaves_the_others(kind, tmp_path):
    store = Store(tmp_path)

    def run(spec):
        if spec.n in (2, 4):
            raise kind(f"lightning {spec.n}\nand thunder")
        return [{"value": 1}]

    with (
        pytest.raises(RunsFailed, match=r"^2 of 4 .* the first with .*lightning 2.*; what did not is kept") as raised,
        pytest.warns(RuntimeWarning, match=rf"^Spec\(n=[24].* failed: .*{kind.__name__}: .*lightning [24]") as warned,
    ):
        execute(store, "room/study", 1, run, [Spec(n) for n in (1, 2, 3, 4)])
    assert [run.spec["n"] for run in store.runs("room/study")] == [1, 3]
    assert isinstance(raised.value.__cause__, kind)
    assert len(warned) == 2


def test_a_group_that_fails_keeps_what_is_under_way_and_the_time_it_took(tmp_path):
    store, failing = Store(tmp_path), [True]

    def run(specs, folder):
        folder.mkdir(exist_ok=True)
        if specs[0].n == 1 and failing:
            raise RuntimeError("lightning")
        return [[{"value": 0}] for _ in specs]

    together, specs = Together(key=lambda spec: 0, run=run, most=2), [Spec(1), Spec(2), Spec(3)]
    with (
        pytest.raises(RunsFailed, match="^1 of 2 groups"),
        pytest.warns(RuntimeWarning, match=r"^Spec\(n=1.* and 1 more failed"),
    ):
        execute(store, "room/study", 1, list, specs, together=together)
    assert [run.spec["n"] for run in store.runs("room/study")] == [3]
    failing.clear()
    keys = execute(store, "room/study", 1, list, specs, together=together)
    assert len(store.load("room/study", keys[0]).provenance["slices"]) == 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_that_failed_holds_nothing(tmp_path):
    held = []

    class Large:
        pass

    def run(spec):
        if held and held[0]() is not None:
            pytest.fail("what failed is still there")
        large = Large()
        held.append(weakref.ref(large))
        try:
            raise RuntimeError("out of memory")
        except RuntimeError as problem:
            raise TooLarge("too large") from problem

    with pytest.raises(RunsFailed, match="^3 of 3"):
        execute(Store(tmp_path), "room/study", 1, run, [Spec(1), Spec(2), Spec(3)])
    assert len(held) == 3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_memory_is_given_back_once_what_failed_is_gone(monkeypatch):
    held, there = [], []

    class Large:
        pass

    def work():
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError

    monkeypatch.setattr("teeter.runs.failures.give_back_memory", lambda: there.append(held[0]()))
    failures = Failures(2)
    try:
        work()
    except ValueError as problem:
        failures.add(problem, ["spec"])
    assert there == [None]


def test_the_only_run_there_is_says_what_went_wrong_itself(tmp_path):
    with pytest.raises(ZeroDivisionError):
        execute(Store(tmp_path), "room/study", 1, lambda spec: [{"value": 1 / 0}], [Spec(1)])


@pytest.mark.parametrize("problem", [InputError("no such file"), OSError(28, "no space left"), KeyboardInterrupt()])
def test_what_would_meet_the_others_too_ends_all(problem, tmp_path):
    seen = []

    def run(spec):
        seen.append(spec.n)
        raise problem

    with pytest.raises(type(problem)):
        execute(Store(tmp_path), "room/study", 1, run, [Spec(1), Spec(2)])
    assert seen == [1]
