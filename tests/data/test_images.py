"""The real data sets (fetched once, then from the cache) and the user's own files."""

import gzip
import struct

import pytest
import torch

from teeter.data import LabelledImages, MissingClient, fashion_mnist, images, mnist
from teeter.errors import InputError, UnknownName


def real(read, split, monkeypatch):
    monkeypatch.delenv("TEETER_DATA", raising=False)
    try:
        return read(split)
    except MissingClient as problem:
        pytest.skip(str(problem))


@pytest.mark.parametrize(("split", "each"), [("train", 6000), ("test", 1000)])
def test_fashion_mnist(split, each, monkeypatch):
    data = real(fashion_mnist, split, monkeypatch)
    assert data.images.shape == (10 * each, 1, 28, 28)
    assert data.labels.bincount().tolist() == [each] * 10
    assert data.classes[int(data.labels[0])] == "Ankle boot"  # both splits begin with one
    if split == "train":
        floats = data.floats().double()
        assert (float(floats.mean()), float(floats.std())) == pytest.approx((0.2860, 0.3530), abs=5e-5)


@pytest.mark.parametrize(
    ("split", "counts"),
    [
        ("train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        ("test", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ],
)
def test_mnist(split, counts, monkeypatch):
    data = real(mnist, split, monkeypatch)
    assert data.images.shape == (sum(counts), 1, 28, 28)
    assert data.labels.bincount().tolist() == counts
    assert data.labels[:5].tolist() == {"train": [5, 0, 4, 1, 9], "test": [7, 2, 1, 0, 4]}[split]
    if split == "train":
        floats = data.floats().double()
        assert (float(floats.mean()), float(floats.std())) == pytest.approx((0.1307, 0.3081), abs=5e-5)


def test_standardised_has_mean_0_and_deviation_1(monkeypatch):
    values = real(mnist, "train", monkeypatch).standardised(0.1307, 0.3081).double()
    assert (float(values.mean()), float(values.std())) == pytest.approx((0, 1), abs=2e-4)


IMAGES = torch.arange(3 * 28 * 28).remainder(251).to(torch.uint8).view(3, 28, 28)
LABELS = torch.tensor([2, 0, 9], dtype=torch.uint8)


def idx(values):
    header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return header + bytes(values.flatten().tolist())


def write(folder, split="train", pixels=IMAGES, labels=LABELS, compressed=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in ((f"{split}-images-idx3-ubyte", pixels), (f"{split}-labels-idx1-ubyte", labels)):
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(values)))
        else:
            (folder / name).write_bytes(idx(values))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of the user's own, and nothing to fetch."""
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    monkeypatch.setattr(images, "fetch", lambda package: pytest.fail(f"fetched {package}"))
    return tmp_path


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    ("read", "folder"),
    [
        (mnist, "mnist"),
        (mnist, "MNIST/raw"),
        (fashion_mnist, "fashion-mnist"),
        (fashion_mnist, "FashionMNIST/raw"),
    ],
)
def test_files_that_are_there_come_first(read, folder, compressed, own):
    write(own / folder, "t10k", compressed=compressed)
    data = read("test")
    assert len(data) == 3
    assert torch.equal(data.images, IMAGES.unsqueeze(1))
    assert data.labels.dtype == torch.int64
    assert data.labels.tolist() == [2, 0, 9]
    assert data.classes[9] == ("9" if read is mnist else "Ankle boot")


def test_a_folder_without_the_split_is_passed_over(own, tmp_path, monkeypatch):
    write(own / "mnist", "t10k")
    write(tmp_path / "fetched" / "package" / "data", labels=LABELS.flip(0))
    monkeypatch.setattr(images, "fetch", lambda package: tmp_path / "fetched")
    assert mnist("train").labels.tolist() == [9, 0, 2]
    assert mnist("test").labels.tolist() == [2, 0, 9]


@pytest.mark.parametrize("file", ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"])
@pytest.mark.parametrize("content", [None, b"", b"\0\0\x08\1\0\0\0\7", b"\x1f\x8b nonsense"])
def test_a_package_that_lost_a_file_or_has_a_damaged_one(file, content, own, tmp_path, monkeypatch):
    folder = tmp_path / "fetched" / "package" / "data"
    write(folder)
    monkeypatch.setattr(images, "fetch", lambda package: tmp_path / "fetched")
    mnist()
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    message = f"^{folder / file} is missing or damaged .*: remove {tmp_path / 'fetched'} and fetch again$"
    with pytest.raises(InputError, match=message):
        mnist()


@pytest.mark.parametrize("missing", ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"])
def test_one_file_without_the_other(missing, own):
    write(own / "mnist")
    (own / "mnist" / missing).unlink()
    with pytest.raises(InputError, match=f"mnist has no {missing}"):
        mnist()


@pytest.mark.parametrize(
    ("pixels", "labels", "message"),
    [
        (
            IMAGES,
            LABELS[:2],
            r"mnist \(train\) does not fit: 3 images have as many int64 labels, got .* \(2,\)",
        ),
        (IMAGES.flatten(1), LABELS, r"got the shapes \(3, 784\) and \(3,\)"),
        (IMAGES, IMAGES, r"images of 3 dimensions and labels of 1"),
        (IMAGES, LABELS + 1, "from 0 to 9, got 10"),
    ],
)
def test_files_that_do_not_fit(pixels, labels, message, own):
    write(own / "mnist", pixels=pixels, labels=labels)
    with pytest.raises(InputError, match=message):
        mnist()


def test_an_unknown_split():
    with pytest.raises(UnknownName, match="no split named 'tests': did you mean 'test'"):
        mnist("tests")


def test_standardised_by_channel():
    pixels = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    data = LabelledImages(pixels, torch.tensor([0]), ("only",))
    values = data.standardised((0.5, 0.2, 0.0), (0.5, 1.0, 2.0))
    assert values.flatten().tolist() == pytest.approx([-1, 0, 0.5])


COLOUR = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
TWO = LabelledImages(COLOUR, torch.tensor([0, 1]), ("a", "b"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelledImages(COLOUR.float(), TWO.labels, TWO.classes), "images are bytes .* got torch.float32"),
        (lambda: LabelledImages(COLOUR[0], TWO.labels, TWO.classes), r"got torch.uint8 \(3, 4, 4\)"),
        (lambda: LabelledImages(COLOUR, TWO.labels.int(), TWO.classes), "got torch.int32"),
        (lambda: LabelledImages(COLOUR, TWO.labels, ("a",)), "from 0 to 0, got 1"),
        (lambda: LabelledImages(COLOUR, -TWO.labels, TWO.classes), "got -1"),
        (lambda: TWO.standardised((0.1, 0.2), 1), r"each of 3 channels; got \(0.1, 0.2\) and 1"),
        (lambda: TWO.standardised(0, 0), "positive std"),
        (lambda: TWO.standardised(0, float("nan")), "positive std"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
