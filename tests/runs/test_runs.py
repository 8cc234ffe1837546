"""Specs, the store and what fills it."""

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import teeter
import teeter.runs.store as store_module
from teeter.errors import InputError
from teeter.runs import Run, Store, Together, digest, execute, fields_of, provenance


@dataclass(frozen=True)
class Spec:
    n: int
    rate: float = 0.5
    name: str = "x"


@dataclass(frozen=True)
class Swapped:
    name: str = "x"
    rate: float = 0.5
    n: int = 3


@dataclass
class Loose:
    n: int = 3


def a_run(key="a", n=3, rows=None):
    return Run("room/study", key, {"n": n}, [{"value": 0.1 + 0.2}] if rows is None else rows, {"seconds": 1.5})


def test_digest_stands_for_every_field_and_nothing_else():
    assert digest("s", 1, Spec(3)) == digest("s", 1, Spec(3, 0.5, "x")) == digest("s", 1, Swapped())
    assert len({digest("s", 1, Spec(n, rate)) for n in range(10) for rate in (0.1, 0.2)}) == 20
    assert digest("s", 1, Spec(3)) != digest("s", 2, Spec(3))
    assert digest("s", 1, Spec(3)) != digest("t", 1, Spec(3))


@pytest.mark.parametrize("spec", [Loose(), Spec, {"n": 3}, Spec([1]), Spec(3, math.nan)])  # pyright: ignore
def test_a_spec_is_a_frozen_dataclass_of_scalars(spec):
    with pytest.raises(InputError, match="a spec"):
        fields_of(spec)


def test_what_is_saved_comes_back_to_the_last_digit(tmp_path):
    store = Store(tmp_path / "store")
    run = a_run(rows=[{"value": 0.1 + 0.2, "big": 1e308, "missing": None, "word": "≤", "inf": math.inf}])
    assert not store.has(run.study, run.key)
    place = store.save(run)
    assert place == tmp_path / "store" / "room" / "study" / "a.json"
    assert store.has(run.study, run.key)
    assert store.load(run.study, run.key) == run


def test_table_is_tidy(tmp_path):
    store = Store(tmp_path)
    store.save(a_run("b", 4, [{"value": 1.0}, {"value": 2.0}]))
    store.save(a_run("a", 3, [{"value": 3.0}]))
    table = store.table("room/study")
    assert list(table.columns) == ["run", "n", "value", "seconds"]
    assert table.values.tolist() == [["a", 3, 3.0, 1.5], ["b", 4, 1.0, 1.5], ["b", 4, 2.0, 1.5]]
    assert store.table("room/study", ["b"]).n.tolist() == [4, 4]
    assert store.table("room/other").empty


def test_unfinished_files_do_not_count_and_are_swept_when_old(tmp_path):
    store = Store(tmp_path)
    store.save(a_run())
    folder = tmp_path / "room" / "study"
    fresh, old = folder / f".b.{'0' * 32}.part", folder / f".c.{'1' * 32}.part"
    others = [folder / ".movie.part", tmp_path / f".c.{'1' * 32}.part"]
    for part in (fresh, old, *others):
        part.write_text('{"study": "room/stu')
        if part is not fresh:
            os.utime(part, (time.time() - 90_000,) * 2)
    assert [run.key for run in store.runs("room/study")] == ["a"]
    execute(store, "room/study", 1, lambda spec: [{"value": 1}], [])
    assert not old.exists()
    assert all(part.exists() for part in (fresh, *others))  # a writer may be at work on one; the others are not ours


def test_a_file_finished_while_it_is_looked_at_is_no_error(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.save(a_run())
    gone = tmp_path / "room" / "study" / f".b.{'0' * 32}.part"
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [gone])
    store.prepare("room/study")


def test_a_failed_write_leaves_nothing(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(TypeError):
        store.save(a_run(rows=[{"value": object()}]))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_damage_by_others_is_named(tmp_path):
    store = Store(tmp_path)
    place = store.save(a_run())
    whole = place.read_text()
    broken = [
        json.dumps({**json.loads(whole), **part}) for part in ({"rows": []}, {"rows": ["x"]}, {"provenance": None})
    ]
    for text in (whole[: len(whole) // 2], "[]", "{}", *broken):
        place.write_text(text)
        with pytest.raises(InputError, match="a.json is damaged .* delete it"):
            store.load("room/study", "a")
    place.with_name("z.json").write_text(whole)
    with pytest.raises(InputError, match="put it back"):
        store.load("room/study", "z")
    with pytest.raises(InputError, match="no run q"):
        store.load("room/study", "q")


def test_a_store_is_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a store is a folder"):
        Store(tmp_path / "file")


def test_a_row_may_not_hide_another_column():
    for column in ("n", "run", "seconds"):
        with pytest.raises(InputError, match=f"the column {column} is already taken"):
            a_run(rows=[{column: 4}])
    with pytest.raises(InputError, match="the column run is already taken"):
        Run("room/study", "a", {"run": 1}, [{"value": 1}], {})


WRITER = """
import sys
from teeter.runs import Run, Store
for i in range(40):
    rows = [{"value": float(i), "filler": "x" * 20_000}]
    Store(sys.argv[1]).prepare("room/study")
    Store(sys.argv[1]).save(Run("room/study", f"{i:02d}", {"n": i}, rows, {"worker": sys.argv[2]}))
"""


def test_many_writers_of_the_same_runs(tmp_path):
    """Four processes save the same forty runs at once while this one reads: every file is whole at every moment."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(worker)]) for worker in range(4)]
    while any(writer.poll() is None for writer in writers):
        for run in Store(tmp_path).runs("room/study"):
            assert run.rows[0]["value"] == run.spec["n"]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(Store(tmp_path).table("room/study")) == 40
    assert list(tmp_path.rglob("*.part")) == []


def test_execute_runs_only_what_is_missing(tmp_path):
    store, asked = Store(tmp_path), []

    def run(spec):
        asked.append(spec.n)
        return [{"value": spec.n * 2}]

    specs = [Spec(1), Spec(2), Spec(3)]
    execute(store, "room/study", 1, run, specs[:1])
    keys = execute(store, "room/study", 1, run, specs)
    assert asked == [1, 2, 3]
    assert store.table("room/study", keys).value.tolist() == [2, 4, 6]
    execute(store, "room/study", 2, run, specs)
    assert asked == [1, 2, 3, 1, 2, 3]  # a new revision asks again


def test_provenance_says_where_a_number_came_from():
    facts = provenance.capture()
    assert facts["teeter"] == teeter.__version__
    assert str(facts["torch"]).startswith("2.")
    assert facts["processor"]
    assert int(facts["cores"] or 0) >= 1
    json.dumps(facts)
    text = json.dumps(facts)
    assert os.path.expanduser("~") not in text
    assert str(Path(teeter.__file__).parent) not in text


def test_commit_is_that_of_the_checkout_and_of_no_other_repository(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init", "-q")
    package = tmp_path / "teeter"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert provenance._commit(package) is None  # inside a repository, but not tracked by it
    git("add", ".")
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")
    clean = provenance._commit(package)
    assert clean is not None
    assert len(clean) == 12
    (package / "__init__.py").write_text("changed = True\n")
    assert provenance._commit(package) == clean + "+"
    assert provenance._version("no-such-package") is None


def doubled(asked):
    def run(specs, folder):
        asked.append([spec.n for spec in specs])
        folder.mkdir()
        return [[{"value": spec.n * 2}] for spec in specs]

    return Together(key=lambda spec: spec.n % 2, run=run, most=2)


def test_specs_of_one_kind_are_run_together(tmp_path):
    store, asked = Store(tmp_path), []
    alone = lambda spec: pytest.fail("not one by one")  # noqa: E731
    specs = [Spec(n) for n in range(1, 7)]
    keys = execute(store, "room/study", 1, alone, specs, doubled(asked))
    assert asked == [[1, 3], [5], [2, 4], [6]]
    assert store.table("room/study", keys).value.tolist() == [2, 4, 6, 8, 10, 12]
    assert [run.provenance["together"] for run in store.runs("room/study", keys)] == [2, 2, 2, 2, 1, 1]
    assert not list(tmp_path.rglob("*under-way*"))


def test_what_is_under_way_stays_for_the_next_call(tmp_path):
    store, seen = Store(tmp_path), []

    def run(specs, folder):
        seen.append(folder.exists())
        folder.mkdir(exist_ok=True)
        time.sleep(0.05 * len(seen))
        if len(seen) < 3:
            raise RuntimeError("lightning")
        return [[{"value": 0}] for _ in specs]

    together = Together(key=lambda spec: 0, run=run, most=3)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="lightning"):
            execute(store, "room/study", 1, list, [Spec(1), Spec(2)], together=together)
    keys = execute(store, "room/study", 1, list, [Spec(1), Spec(2)], together=together)
    assert seen == [False, True, True]
    assert not list(tmp_path.rglob("*under-way*"))
    found = [run.provenance for run in store.runs("room/study", keys)]
    for each in found:  # all slices count
        (first, second, third), whens = [seconds for _, seconds in each["slices"]], [when for when, _ in each["slices"]]
        assert first >= 0.05 and second >= 0.1 and third >= 0.15
        assert each["seconds"] == pytest.approx((first + second + third) / 2, abs=0.002)
        assert whens == sorted(whens) and whens[-1] == each["when"]
    assert provenance.elapsed(found) == pytest.approx(2 * found[0]["seconds"], abs=0.02)


def test_what_kept_nothing_has_no_slices(tmp_path):
    store, tries = Store(tmp_path), []

    def run(specs, folder):
        tries.append(folder)
        if len(tries) == 1:
            raise RuntimeError("lightning")
        return [[{"value": 0}] for _ in specs]

    together = Together(key=lambda spec: 0, run=run, most=3)
    with pytest.raises(RuntimeError, match="lightning"):
        execute(store, "room/study", 1, list, [Spec(1)], together=together)
    [key] = execute(store, "room/study", 1, list, [Spec(1)], together=together)
    assert "slices" not in store.load("room/study", key).provenance


def test_packed_runs_are_read_as_before(tmp_path):
    store = Store(tmp_path)
    keys = execute(store, "room/study", 1, lambda spec: [{"value": spec.n}], [Spec(1), Spec(2)])
    before = list(store.runs("room/study"))
    place = store.pack("room/study")
    assert [found.name for found in place.parent.iterdir()] == [place.name]
    assert place.match("runs-*.jsonl.gz")
    for each in (store, Store(tmp_path)):
        assert list(each.runs("room/study")) == before
        assert each.has("room/study", keys[1]) and not each.has("room/study", "0" * 16)
        assert each.load("room/study", keys[0]) == store.load("room/study", keys[0])
    more = execute(store, "room/study", 1, lambda spec: [{"value": spec.n}], [Spec(2), Spec(3)])
    assert [found.stem for found in place.parent.glob("*.json")] == more[1:]  # only what was missing
    later = store.pack("room/study")
    assert store.table("room/study", [keys[0], *more]).value.tolist() == [1, 2, 3]
    assert later != place and not place.exists()
    again = later.read_bytes()
    assert store.pack("room/study") == later and later.read_bytes() == again
    with pytest.raises(InputError, match="no run 0000000000000000"):
        store.load("room/study", "0" * 16)


def test_a_damaged_pack_is_named(tmp_path):
    store = Store(tmp_path)
    execute(store, "room/study", 1, lambda spec: [{"value": 1}], [Spec(1)])
    place = store.pack("room/study")
    whole = place.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:20], whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]):
        place.write_bytes(damaged)
        with pytest.raises(InputError, match=r"runs-\w+.jsonl.gz is damaged"):
            list(Store(tmp_path).runs("room/study"))


def test_two_who_pack_at_once_lose_nothing(tmp_path, monkeypatch):
    """The first has listed two runs when a third is saved and all are packed by another."""
    store, other = Store(tmp_path), Store(tmp_path)
    execute(store, "room/study", 1, lambda spec: [{"value": spec.n}], [Spec(1), Spec(2)])
    plain = store_module.write_pack

    def late(folder, runs):
        monkeypatch.setattr(store_module, "write_pack", plain)
        execute(other, "room/study", 1, lambda spec: [{"value": spec.n}], [Spec(3)])
        other.pack("room/study")
        return plain(folder, runs)

    monkeypatch.setattr(store_module, "write_pack", late)
    store.pack("room/study")
    for each in (store, other, Store(tmp_path)):
        assert each.table("room/study").value.sort_values().tolist() == [1, 2, 3]


def test_what_is_under_way_is_of_these_very_runs(tmp_path):
    store, folders = Store(tmp_path), []

    def run(specs, folder):
        folders.append(folder)
        raise RuntimeError("lightning")

    together = Together(key=lambda spec: 0, run=run, most=9)
    for specs in ([Spec(1), Spec(5)], [Spec(1), Spec(2), Spec(5)], [Spec(1), Spec(5)]):
        with pytest.raises(RuntimeError, match="lightning"):
            execute(store, "room/study", 1, list, specs, together=together)
    assert folders[0] == folders[2] != folders[1]


def test_rows_for_every_spec(tmp_path):
    together = Together(key=lambda spec: 0, run=lambda specs, folder: [[{"value": 1}]], most=9)
    with pytest.raises(InputError, match="2 specs were run together and gave rows for 1"):
        execute(Store(tmp_path), "room/study", 1, list, [Spec(1), Spec(2)], together=together)
    assert not Store(tmp_path).table("room/study").shape[0]


def test_what_was_abandoned_is_swept(tmp_path):
    store = Store(tmp_path)
    for name, age in (("old", 31 * 24 * 3600), ("new", 0)):
        place = store.under_way("room/study", name)
        place.mkdir(parents=True)
        os.utime(place, (time.time() - age,) * 2)
    store.prepare("room/study")
    assert [place.name for place in (tmp_path / "room" / "study").iterdir()] == [".new.under-way"]
