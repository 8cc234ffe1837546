"""What is freed is kept: shown by the pages that a process asks its system for."""

import subprocess
import sys

import pytest

from teeter.memory import keep_freed_memory

MEBIBYTES, TIMES = 64, 20
ASKED = f"""
import resource, sys, torch
from teeter.memory import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit(3)
torch.set_num_threads(1)
def take():
    torch.ones({MEBIBYTES} << 18)  # of four bytes each
for _ in range(10):  # until there is room for the tensor and for what a border takes
    take()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TIMES}):
    take()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / {TIMES})
"""


def pages(how: str) -> float:
    """How many pages a process asks for at each of several tensors of one size, each freed before the next."""
    done = subprocess.run([sys.executable, "-c", ASKED, how], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library cannot be asked to keep what is freed")
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_a_tensor_of_a_known_size_takes_no_new_memory():
    assert pages("kept") < 0.1 * pages("as it is")


def test_other_systems_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


def test_so_are_other_c_libraries(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("teeter.memory.ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()
