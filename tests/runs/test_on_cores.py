"""Work shared out among processes."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from teeter.errors import InputError, UnknownName
from teeter.runs import Store, on_cores
from teeter.studies import find


def note(folder, piece):
    Path(folder, "-".join(map(str, piece))).write_text(str(os.getpid()))


def note_or_fail(folder, problem, piece):
    if 3 in piece:
        raise UnknownName("piece", "three", ["one"]) if problem == "ours" else KeyError("three")
    note(folder, piece)


def vanish(piece):
    os._exit(1)


def test_every_piece_is_done_once_in_processes_of_its_own(tmp_path):
    told: list[int] = []
    on_cores(partial(note, tmp_path), [[1], [2, 3], [4, 5, 6]], 2, told.append)
    assert {place.name for place in tmp_path.iterdir()} == {"1", "2-3", "4-5-6"}
    assert len(told) == 3 and told[-1] == 6
    assert str(os.getpid()) not in {place.read_text() for place in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "problem, kind, words", [("ours", InputError, "no piece named 'three'"), ("other", RuntimeError, "KeyError")]
)
def test_what_goes_wrong_is_said_here_and_what_was_begun_is_finished(problem, kind, words, tmp_path):
    with pytest.raises(kind, match=words):
        on_cores(partial(note_or_fail, tmp_path, problem), [[1], [3], [4], [5]], 1)
    assert [place.name for place in tmp_path.iterdir()] == ["1"]


def test_a_process_that_vanishes_is_said_so():
    with pytest.raises(InputError, match="without a word"):
        on_cores(vanish, [[1]], 1)


def test_nothing_is_begun_once_time_is_over(tmp_path):
    on_cores(partial(note, tmp_path), [[1], [2]], 2, seconds=-1)
    assert not list(tmp_path.iterdir())


def test_at_least_one():
    with pytest.raises(InputError, match="at least one process, got 0"):
        on_cores(print, [[1]], 0)


def test_a_study_is_the_same_in_two_processes(tmp_path):
    study, told = find("hahn2024/long"), []
    alone = study.execute("smoke", Store(tmp_path / "alone"))
    half = Store(tmp_path / "both")
    half.save(next(Store(tmp_path / "alone").runs(study.name, study.keys("smoke")[:1])))
    both = study.execute("smoke", half, told.append, workers=2)
    assert told[0] == 1 and told[-1] == len(study.specs("smoke"))
    columns = [name for name in alone.table if name != "seconds"]
    assert alone.table[columns].equals(both.table[columns])


def test_interrupted_all_keep_what_they_have(tmp_path):
    how = "study run hahn2024/scratchpad --tier small --workers 2 --store here".split()
    order = [sys.executable, "-m", "teeter", *how]
    run = subprocess.Popen(order, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True)
    place, end = tmp_path / "here/hahn2024/scratchpad", time.monotonic() + 120
    while len(list(place.glob(".*.under-way"))) < 2 and time.monotonic() < end and run.poll() is None:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 130
    assert "the same command goes on" in said and "Traceback" not in said
    assert len(list(place.glob(".*.under-way/*/checkpoint.safetensors"))) == 2
