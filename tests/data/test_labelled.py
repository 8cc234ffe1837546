import sys

import numpy as np
import pytest
import torch

from teeter.data import LabelledImages, MissingClient, below_5, digits, mnist
from teeter.data.labelled import from_arrays
from teeter.errors import InputError, MissingExtra, UnknownName

PIXELS = torch.randint(0, 256, (5000, 3, 5, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(5000) % 3
DATA = LabelledImages(PIXELS, LABELS, ("a", "b", "c", "none"))


def test_moments_against_float64():
    mean, std = DATA.moments()
    values = PIXELS.double() / 255
    assert mean == pytest.approx(values.mean((0, 2, 3)).tolist(), abs=1e-12)
    assert std == pytest.approx(values.std((0, 2, 3), correction=0).tolist(), abs=1e-12)


def test_moments_of_one_colour_and_of_nothing():
    black = LabelledImages(torch.full((3, 1, 2, 2), 7, dtype=torch.uint8), torch.zeros(3).long(), ("a",))
    assert black.moments() == ([7 / 255], [0.0])
    with pytest.raises(InputError, match="no images have no mean"):
        DATA.take(torch.arange(0)).moments()


def test_counts_take_and_to():
    assert DATA.counts() == [1667, 1667, 1666, 0]
    some = DATA.take(torch.tensor([4, 0]))
    assert torch.equal(some.images, PIXELS[[4, 0]])
    assert some.labels.tolist() == [1, 0]
    assert some.classes == DATA.classes
    there = DATA.to("cpu")
    assert torch.equal(there.images, PIXELS)
    assert torch.equal(there.labels, LABELS)


def test_below_5(monkeypatch):
    monkeypatch.delenv("TEETER_DATA", raising=False)
    try:
        data = below_5("test")
    except MissingClient as problem:
        pytest.skip(str(problem))
    known = mnist("test")
    assert torch.equal(data.images, known.images)
    assert data.counts() == [892 + 958 + 1028 + 974 + 1009, 980 + 1135 + 1032 + 1010 + 982]
    assert [data.classes[i] for i in data.labels[:4].tolist()] == ["5 or more", "below 5", "below 5", "below 5"]  # 7210


def test_digits():
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    whole = digits()
    assert whole.images.shape == (1797, 1, 8, 8)
    assert whole.labels.tolist() == labels.tolist()
    assert whole.counts() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.array_equal((whole.images.flatten(1).double() * 16 / 255).round().numpy(), values)  # nothing was lost
    both = [digits(split) for split in ("train", "test")]
    assert torch.equal(torch.cat([part.images for part in both]), whole.images)
    assert [len(part) for part in both] == [1437, 360]


def test_digits_that_are_not_to_be_had(monkeypatch):
    with pytest.raises(UnknownName, match="no split named 'val'"):
        digits("val")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtra, match="scikit-learn holds the digits and is not installed: pip install 'teeter"):
        digits()


IMAGES = np.zeros((2, 4, 4, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": IMAGES}, "holds two arrays, 'images' and 'labels', got images$"),
        ({}, "got none$"),
        (
            {"images": IMAGES[:, :3], "labels": [0, 1]},
            r"shape \(images, 4, 4, 3\) .* got uint8 \(2, 3, 4, 3\)",
        ),
        ({"images": IMAGES.transpose(0, 3, 1, 2), "labels": [0, 1]}, r": put the channels last, with images.transpose"),
        ({"images": IMAGES.astype(float), "labels": [0, 1]}, r"got float64 \(2, 4, 4, 3\) and int64 \(2,\)"),
        ({"images": IMAGES[0], "labels": [0, 1]}, r"got uint8 \(4, 4, 3\)"),
        ({"images": IMAGES, "labels": [0.0, 1.0]}, "and float64"),
        ({"images": IMAGES, "labels": [0, 1, 1]}, "2 images have as many int64 labels"),
        ({"images": IMAGES, "labels": [0, 2]}, "train.npz does not fit: labels count from 0 to 1, got 2"),
    ],
)
def test_arrays_that_do_not_fit(arrays, message, tmp_path):
    np.savez(tmp_path / "train.npz", **arrays)
    with pytest.raises(InputError, match=message):
        from_arrays(tmp_path, "train", ("a", "b"), shape=(4, 4, 3))


def test_arrays_that_are_damaged_or_not_there(tmp_path):
    def read(split):
        return from_arrays(tmp_path, split, ("a",), shape=(4, 4, 3))

    assert read("train") is None
    (tmp_path / "train.npz").write_bytes(b"PK no zip")
    with pytest.raises(InputError, match="cannot read .*train.npz"):
        read("train")
    np.save(tmp_path / "test-images.npy", IMAGES)
    with pytest.raises(InputError, match="cannot read .*test-labels.npy: No such file"):
        read("test")
    np.save(tmp_path / "test-labels.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot read .*test-labels.npy"):
        read("test")
