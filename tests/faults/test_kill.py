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


@pytest.mark.parametrize("name", ["hahn2024/functions", "vasudeva2025/synthetic-tables"])
def test_killed_at_random_moments(name, tmp_path, kills=10):
    study = find(name)
    reference = study.execute("smoke", Store(tmp_path / "undisturbed"))
    expected = rows_of(tmp_path / "undisturbed", study)
    moments = random.Random(name)
    folders = (tmp_path / f"store{number}" for number in range(1000))
    store, finished, struck = next(folders), {}, 0
    while struck < kills:
        if len(finished) == len(expected):  # all done: a fresh one, so that there is work to be killed at
            store, finished = next(folders), {}
        process = started(name, store)
        if struck % 5:  # most kills strike while runs are being made and saved, the others while it starts
            while process.poll() is None and len(list(store.rglob("*.json"))) <= len(finished):
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.02))
        else:
            time.sleep(moments.uniform(0, 3))
        process.send_signal(signal.SIGKILL)
        struck += process.wait() == -signal.SIGKILL
        process.communicate()
        left = rows_of(store, study)
        assert finished.items() <= left.items()  # nothing that was finished is gone or changed
        assert left.items() <= expected.items()  # and nothing is there that is not right
        finished = left
    last = started(name, store)
    out, _ = last.communicate()
    assert last.returncode == 0
    assert json.loads(out)["claims"] == [judgement.record() for judgement in reference.judgements]
    assert rows_of(store, study) == expected
