"""What is freed is kept: shown by the pages that a process asks its system for."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch

from teeter import cli
from teeter.errors import RunsFailed
from teeter.memory import give_back_memory, keep_freed_memory
from teeter.runs import Store, execute, on_cores

resource = pytest.importorskip("resource")

MEBIBYTES, TIMES = 64, 20
LAYERS = (8, 64, 4, 64, 2)  # mebibytes of what is made one after the other, and freed in reverse
ASKED = f"""
import resource, sys, torch
from teeter.memory import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit(3)
torch.set_num_threads(1)
def take():
    layers = [torch.ones(size << 18) for size in {LAYERS}]  # of four bytes each
    while layers:
        layers.pop()
for _ in range(10):  # until there is room for them and for what a border takes
    take()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TIMES}):
    take()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / {TIMES})
"""


def pages(how: str) -> float:
    """How many pages a process asks for at each step of several."""
    done = subprocess.run([sys.executable, "-c", ASKED, how], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library cannot be asked to keep what is freed")
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_a_step_like_others_before_takes_no_new_memory():
    assert pages("kept") < 0.1 * pages("as it is")


def test_unless_it_is_told_not_to(monkeypatch):
    monkeypatch.setenv("TEETER_KEEP_MEMORY", "0")
    assert pages("as it is") > 0
    assert subprocess.run([sys.executable, "-c", ASKED, "kept"], capture_output=True).returncode == 3


HELD = f"""
import resource, sys, torch
from pathlib import Path
from teeter.memory import give_back_memory, keep_freed_memory
if not keep_freed_memory():
    sys.exit(3)
torch.set_num_threads(1)
def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20
before = held()
for _ in range(10):
    torch.ones({MEBIBYTES} << 18)
kept = held()
give_back_memory()
print(kept - before, held() - before)
"""


def test_what_is_kept_can_be_given_back():
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library cannot be asked to keep what is freed")
    kept, left = map(int, done.stdout.split())
    assert kept >= MEBIBYTES > 10 * max(left, 0)


def test_what_nobody_asked_for_is_not_given_back(monkeypatch):
    asked = []
    monkeypatch.setattr("teeter.memory.ctypes.CDLL", lambda name: asked.append(name))
    monkeypatch.setattr("teeter.memory._kept", False)
    give_back_memory()
    assert not asked


def test_other_systems_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


@pytest.mark.parametrize("before", [False, True])
def test_so_are_other_c_libraries(monkeypatch, before):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("teeter.memory._kept", before)  # an earlier test may have asked
    monkeypatch.setattr("teeter.memory.ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()


def test_the_command_line_asks_for_it(monkeypatch):
    asked = []
    monkeypatch.setitem(cli.main.__globals__, "keep_freed_memory", lambda: asked.append(True))
    monkeypatch.setattr(sys, "argv", ["teeter", "--version"])
    with pytest.raises(SystemExit):
        cli.main()
    assert asked


def take(folder: Path, piece: list[int]) -> None:
    """What a worker asks its system for, as `pages` has it."""
    before = 0
    for step in range(10 + TIMES):
        if step == 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        layers = [torch.ones(size << 18) for size in LAYERS]
        while layers:
            layers.pop()
    (folder / "pages").write_text(str((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / TIMES))


def test_workers_ask_for_it(tmp_path):
    kept = pages("kept")  # or this is skipped
    on_cores(partial(take, tmp_path), [[1]], 1)
    assert float((tmp_path / "pages").read_text()) < kept + 0.1 * pages("as it is")


def test_between_two_groups_of_runs_it_is_given_back(monkeypatch, tmp_path):
    @dataclass(frozen=True)
    class Spec:
        n: int

    asked = []
    monkeypatch.setitem(execute.__globals__, "give_back_memory", lambda: asked.append(True))
    execute(Store(tmp_path), "room/study", 1, lambda spec: [{"value": spec.n}], [Spec(1), Spec(2)])
    assert len(asked) == 2

    def too_large(spec):
        raise MemoryError

    with pytest.warns(RuntimeWarning, match="failed: MemoryError"), pytest.raises(RunsFailed):
        execute(Store(tmp_path), "room/study", 1, too_large, [Spec(3), Spec(4)])
    assert len(asked) == 4  # a run for which there was not enough above all
