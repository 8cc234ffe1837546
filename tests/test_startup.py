"""Nobody waits for teeter to start."""

import subprocess
import sys
import time


def seconds_in(code: str) -> float:
    """What the child process prints, the fastest of three."""
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )


def test_importing_teeter_costs_at_most_half_a_second_beyond_torch():
    code = (
        "import time, torch; start = time.perf_counter(); import teeter; teeter.cube; teeter.Estimate; "
        "print(time.perf_counter() - start)"
    )
    assert seconds_in(code) < 0.5


def test_importing_teeter_alone_does_not_import_torch():
    code = "import sys, teeter, teeter.cli; print(float('torch' in sys.modules or 'matplotlib' in sys.modules))"
    assert seconds_in(code) == 0


def test_help_answers_within_a_second():
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "teeter", "--help"], capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - start)
        assert "study" in done.stdout
    assert min(times) < 1
