"""`teeter study run`, killed at twenty random moments, loses no finished run and corrupts nothing."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

from teeter.runs import Store
from teeter.studies import find


def started(name, store):
    words = ["study", "run", name, "--tier", "smoke", "--store", str(store), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "teeter", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def rows_of(store, study):
    return {run.key: (run.spec, run.rows) for run in Store(store).runs(study.name)}  # reads every file whole


@pytest.mark.parametrize(("name", "kills"), [("hahn2024/functions", 10), ("vasudeva2025/synthetic-tables", 10)])
def test_killed_at_random_moments(name, kills, tmp_path):
    study = find(name)
    reference = study.execute("smoke", Store(tmp_path / "undisturbed"))
    expected = rows_of(tmp_path / "undisturbed", study)
    moments = random.Random(name)
    store, finished = tmp_path / "store", {}
    killed_at_work = 0
    for kill in range(kills):
        process = started(name, store)
        if kill % 5:  # most kills strike while runs are being made and saved, the others while it starts
            known = len(finished)
            while process.poll() is None and len(list(store.rglob("*.json"))) <= known:
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.02))
        else:
            time.sleep(moments.uniform(0, 3))
        process.send_signal(signal.SIGKILL)
        killed_at_work += process.wait() == -signal.SIGKILL
        process.communicate()
        left = rows_of(store, study)
        assert finished.items() <= left.items()  # nothing that was finished is gone or changed
        assert left.items() <= expected.items()  # and nothing is there that is not right
        finished = left
    assert killed_at_work >= kills // 2
    last = started(name, store)
    out, _ = last.communicate()
    assert last.returncode == 0
    assert json.loads(out)["claims"] == [judgement.record() for judgement in reference.judgements]
    assert rows_of(store, study) == expected
