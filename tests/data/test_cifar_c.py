"""The official arrays where they are, generated ones otherwise, and the cache of these."""

import os
import time

import numpy as np
import pytest
import torch

from teeter.data import CorruptedImages, LabelledImages, cifar10_c, cifar_c, corrupted
from teeter.data.progress import listening
from teeter.errors import InputError, UnknownName

PIXELS = torch.randint(0, 256, (12, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
GARBLED = b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((( \n"
TEST = LabelledImages(PIXELS, torch.arange(12) % 10, tuple("abcdefghij"))


@pytest.fixture(autouse=True)
def nothing_owned(monkeypatch):
    monkeypatch.delenv("TEETER_DATA", raising=False)


@pytest.fixture
def no_work(monkeypatch):
    def stop():
        monkeypatch.setattr(cifar_c, "corrupted", lambda *_: pytest.fail("made again"))

    return stop


def kept(cache):
    return sorted(path.name for path in (cache.parent / "corruptions").iterdir())


def test_generated_and_kept(cache, no_work):
    made = cifar10_c("speckle_noise", 3, TEST, seed=4)
    assert isinstance(made, CorruptedImages)
    assert (made.corruption, made.severity, made.source, made.seed) == ("speckle_noise", 3, "generated", 4)
    assert torch.equal(made.images, corrupted(PIXELS, "speckle_noise", 3, seed=4))
    assert torch.equal(made.labels, TEST.labels)
    assert made.classes == TEST.classes
    assert len(kept(cache)) == 1
    no_work()
    again = cifar10_c("speckle_noise", 3, TEST, seed=4)
    assert torch.equal(again.images, made.images)
    assert again.source == "generated"


def test_what_differs_is_kept_apart(cache, monkeypatch):
    other = LabelledImages(PIXELS.flip(0), TEST.labels, TEST.classes)
    calls = [("contrast", 3, TEST, 0), ("contrast", 4, TEST, 0), ("pixelate", 3, TEST, 0), ("contrast", 3, TEST, 1)]
    calls.append(("contrast", 3, other, 0))
    for name, severity, test, seed in calls:
        made = cifar10_c(name, severity, test, seed=seed)
        assert torch.equal(made.images, corrupted(test.images, name, severity, seed))
    assert len(kept(cache)) == 5
    monkeypatch.setattr(cifar_c, "REVISION", 999)
    cifar10_c("contrast", 3, TEST)
    assert len(kept(cache)) == 6


def test_the_test_images_are_cifar10s(cache, monkeypatch):
    monkeypatch.setattr(cifar_c, "cifar10", {"test": TEST}.__getitem__)
    assert torch.equal(cifar10_c("contrast", 1).images, corrupted(PIXELS, "contrast", 1))


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00", b"nonsense" * 100, b"PK\3\4", GARBLED])
def test_a_damaged_file_is_made_again(damage, cache):
    made = cifar10_c("contrast", 2, TEST)
    (path,) = (cache.parent / "corruptions").iterdir()
    path.write_bytes(damage or path.read_bytes()[:-5])
    assert torch.equal(cifar10_c("contrast", 2, TEST).images, made.images)
    assert np.array_equal(np.load(path), made.images.numpy())


def test_a_file_of_another_shape_is_made_again(cache):
    made = cifar10_c("contrast", 2, TEST)
    (path,) = (cache.parent / "corruptions").iterdir()
    np.save(path, made.images[:3].numpy())
    assert torch.equal(cifar10_c("contrast", 2, TEST).images, made.images)


def test_leftovers_are_swept(cache):
    folder = cache.parent / "corruptions"
    folder.mkdir(parents=True)
    for name, age in ((".old.part", 25 * 3600), (".new.part", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    cifar10_c("contrast", 2, TEST)
    assert not (folder / ".old.part").exists()
    assert (folder / ".new.part").exists()
    assert len(kept(cache)) == 2


def test_nowhere_to_keep_them(tmp_path, monkeypatch):
    """They are there all the same, and that they are not kept is told once."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path / "file"))
    said = []
    with listening(lambda words, *_: said.append(words)):
        for severity in (2, 3):
            made = cifar10_c("contrast", severity, TEST)
            assert torch.equal(made.images, corrupted(PIXELS, "contrast", severity))
    where = tmp_path / "file" / "corruptions"
    assert said == [f"nothing can be kept in {where} (Not a directory); it is made anew each time"]


def test_a_full_disk_leaves_nothing(cache, monkeypatch):
    def full(file, array, allow_pickle):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert torch.equal(cifar10_c("contrast", 2, TEST).images, corrupted(PIXELS, "contrast", 2))
    assert kept(cache) == []


def test_two_at_once(cache, monkeypatch):
    """Another one finishes the same images while ours are being made."""
    turns = []

    def slowly(*arguments):
        turns.append(arguments)
        if len(turns) == 1:
            cifar10_c("gaussian_noise", 1, TEST)
            assert len(kept(cache)) == 1
        return corrupted(*arguments)

    monkeypatch.setattr(cifar_c, "corrupted", slowly)
    made = cifar10_c("gaussian_noise", 1, TEST)
    assert len(turns) == 2
    (name,) = kept(cache)
    assert np.array_equal(np.load(cache.parent / "corruptions" / name), made.images.numpy())


@pytest.fixture
def official(tmp_path, monkeypatch):
    """Small stand-ins for the official arrays: 4 images at each severity instead of 10,000."""
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    monkeypatch.setattr(cifar_c, "_EACH", 4)
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    images = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    np.save(folder / "fog.npy", images)
    np.save(folder / "labels.npy", np.tile(np.array([3, 8, 8, 0], dtype=np.uint8), 5))
    return folder


def test_official_arrays_come_first(official, cache, no_work):
    no_work()
    images = np.load(official / "fog.npy")
    for severity in (1, 3, 5):
        read = cifar10_c("fog", severity, TEST)
        rows = images[4 * (severity - 1) : 4 * severity]
        assert np.array_equal(read.images.movedim(1, -1).numpy(), rows)
        assert read.labels.tolist() == [3, 8, 8, 0]
        assert read.classes[3] == "cat"
        assert (read.source, read.seed, read.severity) == ("official", None, severity)
        assert read.images.is_contiguous()


def test_what_is_not_there_is_generated(official, cache):
    assert cifar10_c("contrast", 1, TEST).source == "generated"
    assert cifar10_c("fog", 1, TEST, source="generated").source == "generated"
    with pytest.raises(InputError, match="put contrast.npy and labels.npy into .*CIFAR-10-C"):
        cifar10_c("contrast", 1, TEST, source="official")


def test_official_without_a_folder():
    with pytest.raises(InputError, match=r"a folder of yours and put fog.npy and labels.npy into CIFAR-10-C in it"):
        cifar10_c("fog", 1, source="official")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("labels.npy", None, "has no labels.npy: put it there"),
        ("labels.npy", np.zeros(19, np.uint8), r"holds uint8 of shape \(19,\), expected whole numbers"),
        ("labels.npy", np.zeros(20), "holds float64"),
        ("labels.npy", np.full(20, 11), "labels.npy does not fit: labels count from 0 to 9, got 11"),
        ("labels.npy", np.array([{}] * 20), "cannot read .*labels.npy: "),
        ("fog.npy", np.zeros((20, 3, 32, 32), np.uint8), r"expected bytes of shape \(20, 32, 32, 3\)"),
        ("fog.npy", np.zeros((20, 32, 32, 3), np.uint16), "holds uint16"),
        ("fog.npy", b"\x93NUMPY", "cannot read .*fog.npy: "),
        ("fog.npy", b"", "cannot read .*fog.npy: "),
        ("fog.npy", b"PK\3\4", "cannot read .*fog.npy: "),
        ("fog.npy", "cut", "cannot read .*fog.npy: "),
    ],
)
def test_official_arrays_that_are_none(file, content, message, official):
    place = official / file
    if content is None:
        place.unlink()
    elif isinstance(content, np.ndarray):
        np.save(place, content)
    else:
        place.write_bytes(place.read_bytes()[:-100] if content == "cut" else content)
    with pytest.raises(InputError, match=message):
        cifar10_c("fog", 1)


def test_bad_input():
    with pytest.raises(UnknownName, match="no corruption named 'foggy': did you mean 'fog'"):
        cifar10_c("foggy", 1, TEST)
    with pytest.raises(InputError, match="from 1 to 5, got 6"):
        cifar10_c("fog", 6, TEST)
    with pytest.raises(UnknownName, match="no source named 'real'"):
        cifar10_c("fog", 1, TEST, source="real")
    grey = LabelledImages(torch.zeros(1, 1, 28, 28, dtype=torch.uint8), torch.tensor([0]), ("a",))
    with pytest.raises(InputError, match=r"got torch.uint8 \(1, 1, 28, 28\)"):
        cifar10_c("fog", 1, grey)
