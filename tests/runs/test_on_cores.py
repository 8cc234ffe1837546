"""Work shared out among processes."""

import os
import signal
import subprocess
import sys
import time
import weakref
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from teeter.data import FetchFailed
from teeter.errors import InputError, RunsFailed, TooLarge, UnknownName
from teeter.runs import Store, execute, on_cores
from teeter.studies import execute_all, find
from teeter.train import Diverged


def note(folder, piece):
    Path(folder, "-".join(map(str, piece))).write_text(str(os.getpid()))


PROBLEMS = {
    "name": UnknownName("piece", "three", ["one"]),  # which cannot be made anew from its words
    "large": TooLarge("too large"),
    "disk": OSError(28, "no space left"),
    "bug": KeyError("three"),
    "diverged": Diverged("no longer finite", []),
    "exit": SystemExit(3),
}


def slow_or_fail(folder, problem, piece):
    """A piece that fails once the other one is under way, and one that says when it is interrupted."""
    if 3 in piece:
        while not Path(folder, "begun").exists():
            time.sleep(0.05)
        raise PROBLEMS[problem]
    try:
        Path(folder, "begun").touch()
        time.sleep(60)
    except KeyboardInterrupt:
        Path(folder, "interrupted").touch()
        raise


def slow(folder, piece):
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)


def vanish(piece):
    os._exit(1)


def test_every_piece_is_done_once_in_processes_of_its_own(tmp_path):
    told: list[int] = []
    on_cores(partial(note, tmp_path), [[1], [2, 3], [4, 5, 6]], 2, told.append)
    assert {place.name for place in tmp_path.iterdir()} == {"1", "2-3", "4-5-6"}
    assert len(told) == 3 and told[-1] == 6
    assert str(os.getpid()) not in {place.read_text() for place in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "problem, kind, words",
    [
        ("name", InputError, "no piece named 'three'"),
        ("disk", OSError, "no space left"),
    ],
)
def test_what_can_be_mended_is_said_at_once_and_interrupts_the_others(problem, kind, words, tmp_path):
    start = time.monotonic()
    with pytest.raises(kind, match=words):
        on_cores(partial(slow_or_fail, tmp_path, problem), [[1], [3], [4]], 2)
    assert time.monotonic() - start < 40
    assert {place.name for place in tmp_path.iterdir()} == {"begun", "interrupted"}


def fail_or_note(folder, problem, piece):
    if 3 in piece:
        raise PROBLEMS[problem]
    note(folder, piece)


@pytest.mark.parametrize(
    "problem, words",
    [
        ("bug", "KeyError: 'three'"),
        ("exit", "SystemExit: 3"),
        ("large", "TooLarge: too large"),
        ("diverged", "NotFinite: no longer finite"),
    ],
)
def test_what_else_goes_wrong_is_raised_once_the_others_are_done(problem, words, tmp_path):
    told: list[int] = []
    with (
        pytest.raises(RunsFailed, match=f"^1 of 3 .* the first with {words};"),
        pytest.warns(RuntimeWarning, match=f"^3 and 1 more failed: {words}$"),
    ):
        on_cores(partial(fail_or_note, tmp_path, problem), [[3, 4], [1], [2]], 1, told.append)
    assert {place.name for place in tmp_path.iterdir()} == {"1", "2"} and told == [1, 2]


def hold(folder, piece):
    """Fails, and says whether what it had at its last failure is still there."""
    large = torch.zeros(3)
    before = [ref() for ref in HELD]
    HELD.append(weakref.ref(large))
    if any(each is not None for each in before):
        Path(folder, "held").touch()
    raise TooLarge("too large") if piece[0] % 2 else KeyError("three")


HELD: list[Any] = []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_worker_lets_go_of_what_failed(tmp_path):
    with pytest.raises(RunsFailed, match="^4 of 4"):
        on_cores(partial(hold, tmp_path), [[1], [2], [3], [4]], 1)
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Spec:
    n: int


def hold_in_a_run(folder, piece):
    """`hold`, of a run that the store is to keep."""
    execute(Store(folder / "store"), "room/study", 1, lambda spec: hold(folder, [spec.n]), [Spec(piece[0])])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_worker_lets_go_of_a_run_that_failed(tmp_path):
    with pytest.raises(RunsFailed, match="^4 of 4"):
        on_cores(partial(hold_in_a_run, tmp_path), [[1], [2], [3], [4]], 1)
    assert [place.name for place in tmp_path.iterdir()] == ["store"]


def test_a_process_that_vanishes_is_said_so():
    with pytest.raises(InputError, match="without a word"):
        on_cores(vanish, [[1]], 1)


def test_nothing_is_begun_once_time_is_over(tmp_path):
    on_cores(partial(note, tmp_path), [[1], [2]], 2, seconds=-1)
    assert not list(tmp_path.iterdir())


def test_time_that_runs_out_midway(tmp_path):
    told: list[int] = []
    less = 0.5  # than a process takes to start
    on_cores(partial(note, tmp_path), [[1], [2, 3], [4]], 1, told.append, less)
    assert [place.name for place in tmp_path.iterdir()] == ["1"] and told == [1]


def test_more_workers_than_pieces(tmp_path):
    on_cores(partial(note, tmp_path), [[1]], 8)
    on_cores(partial(note, tmp_path), [], 8)
    assert [place.name for place in tmp_path.iterdir()] == ["1"]


def gone(pid):
    """Whether a process has ended; one that nobody asks after any more has too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_end_with_their_parent(tmp_path):
    code = "from functools import partial\nfrom runs.test_on_cores import slow\n"
    code += "from teeter.runs import on_cores\nif __name__ == '__main__':\n"
    code += f"    on_cores(partial(slow, {str(tmp_path)!r}), [[1], [2]], 2)\n"
    script = tmp_path / "script.py"
    script.write_text(code)
    around = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    run = subprocess.Popen([sys.executable, script], env=around)
    wait_for(lambda: len(list(tmp_path.glob("[0-9]*"))) == 2, run)
    run.kill()
    run.wait()
    workers = [place.name for place in tmp_path.glob("[0-9]*")]
    wait_for(lambda: all(map(gone, workers)), None)


def wait_for(what, run):
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end and (run is None or run.poll() is None)
        time.sleep(0.05)


def fetch_or_note(folder, piece):
    if isinstance(piece[0], str):
        raise FetchFailed("npm could not get it")
    note(folder, piece)


def test_what_else_to_leave_out_because_of_a_problem(tmp_path):
    told, asked = [], []

    def without(problem, piece):
        asked.append((type(problem), piece))
        return lambda other: isinstance(other[0], str)

    on_cores(partial(fetch_or_note, tmp_path), [[1], ["a"], ["b", "c"], [2]], 1, told.append, without=without)
    assert asked == [(FetchFailed, ["a"])]
    assert {place.name for place in tmp_path.iterdir()} == {"1", "2"}
    assert told == [1, 2]


def test_at_least_one():
    with pytest.raises(InputError, match="at least one process, got 0"):
        on_cores(print, [[1]], 0)


def test_a_study_is_the_same_in_two_processes(tmp_path):
    study, told = find("hahn2024/long"), []
    alone = study.execute("smoke", Store(tmp_path / "alone"))
    half = Store(tmp_path / "both")
    half.save(next(Store(tmp_path / "alone").runs(study.name, study.keys("smoke")[:1])))
    (both,) = execute_all([study], "smoke", half, told.append, workers=2)
    assert told[0] == 1 and told[-1] == len(study.specs("smoke"))
    columns = [name for name in alone.table if name != "seconds"]
    assert alone.table[columns].equals(both.table[columns])


ORDER = "study run hahn2024/scratchpad --tier small --workers 2 --store here".split()


def started(tmp_path):
    how: dict[str, Any] = dict(cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen([sys.executable, "-m", "teeter", *ORDER], **how)


@pytest.mark.parametrize("to_all", [True, False], ids=["the terminal", "one process"])
def test_interrupted_all_keep_what_they_have(to_all, tmp_path):
    run, place = started(tmp_path), tmp_path / "here/hahn2024/scratchpad"
    wait_for(lambda: len(list(place.glob(".*.under-way"))) == 2, run)
    (os.killpg if to_all else os.kill)(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 130
    assert "the same command goes on" in said and "Traceback" not in said
    assert len(list(place.glob(".*.under-way/*/checkpoint.safetensors"))) == 2


@pytest.mark.parametrize("after", [0.3, 1.5, 4.0])
def test_interrupted_while_processes_start(after, tmp_path):
    """Nothing is begun, and nothing is said but that it was stopped."""
    run, place = started(tmp_path), tmp_path / "here/hahn2024/scratchpad"
    wait_for(place.exists, run)  # made before any process is
    time.sleep(after)
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "the same command goes on" in said and "Traceback" not in said
    assert not list(place.glob("[!.]*.json"))
