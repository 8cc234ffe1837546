"""Benchmarks run: a claim whose script is broken cannot be checked by anyone."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))
EXTRA = {"cube": ("boofun", "numba", "sympy")}  # of `make bench` alone


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_runs(script):
    lacking = [name for name in EXTRA.get(script.stem, ()) if find_spec(name) is None]
    if lacking:
        pytest.skip(f"{script.name} compares with {', '.join(lacking)}, which `make bench` installs")
    words = [sys.executable, str(script), "--quick", "--json"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if "teeter.data.packages.MissingClient" in ran.stderr:
        pytest.skip(ran.stderr.strip().rpartition("\n")[2])  # its data come through a client that is not here
    assert ran.returncode == 0, ran.stderr[-2000:]
    told = json.loads(ran.stdout)  # one object and nothing else
    ratios = [value for value in told.values() if isinstance(value, float)]
    assert (ratios or told["rows"]) and all(value > 0 for value in ratios), told
    assert "commit" in told["provenance"]
