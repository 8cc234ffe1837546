"""SVHN as its authors' files hold it: Matlab's order of axes, and ten for nought."""

import numpy as np
import pytest
import torch
from scipy.io import savemat

from teeter.data import svhn
from teeter.data.own import Absent
from teeter.errors import InputError, UnknownName

PIXELS = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
DIGITS = np.array([[1], [10], [9], [10]], dtype=np.uint8)


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    return tmp_path


def write(place, **arrays):
    place.parent.mkdir(parents=True, exist_ok=True)
    savemat(place, {"X": PIXELS, "y": DIGITS, **arrays}, do_compression=True)


@pytest.mark.parametrize("folder", ["svhn", "SVHN", "."])
@pytest.mark.parametrize("split", ["train", "test", "extra"])
def test_matlab_files(split, folder, own):
    write(own / folder / f"{split}_32x32.mat")
    data = svhn(split)
    assert data.images.shape == (4, 3, 32, 32)
    for i in range(4):
        for channel in range(3):
            assert torch.equal(data.images[i, channel], torch.from_numpy(PIXELS[:, :, channel, i].copy()))
    assert data.labels.tolist() == [1, 0, 9, 0]
    assert data.classes[9] == "9"


def test_arrays(own):
    (own / "svhn").mkdir()
    np.savez(own / "svhn" / "test.npz", images=PIXELS.transpose(3, 0, 1, 2), labels=DIGITS.ravel() % 10)
    assert svhn("test").labels.tolist() == [1, 0, 9, 0]
    np.savez(own / "svhn" / "train.npz", images=PIXELS.transpose(3, 2, 0, 1), labels=DIGITS.ravel() % 10)
    with pytest.raises(InputError, match=r"shape \(images, 32, 32, 3\) .* got uint8 \(4, 3, 32, 32\) .* channels last"):
        svhn("train")


def test_not_there(own, monkeypatch):
    with pytest.raises(Absent, match=f"SVHN is in no package registry: put test_32x32.mat into {own}/svhn"):
        svhn("test")
    monkeypatch.delenv("TEETER_DATA")
    with pytest.raises(Absent, match="set TEETER_DATA to a folder of yours and put train_32x32.mat into svhn in it"):
        svhn()
    with pytest.raises(UnknownName, match="no split named 'val'"):
        svhn("val")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": PIXELS.astype(float)}, r"got float64 \(32, 32, 3, 4\): take the version of cropped digits"),
        ({"X": PIXELS[:28]}, r"got uint8 \(28, 32, 3, 4\)"),
        ({"X": PIXELS[..., 0]}, r"got uint8 \(32, 32, 3\)"),
        ({"y": DIGITS[:3]}, "train_32x32.mat does not fit: 4 images have as many int64 labels"),
        ({"y": DIGITS + 1}, "counts digits from 1 to 10, which stands for 0, got 11"),
        ({"y": DIGITS * 0}, "got 0"),
        ({"y": DIGITS + 0.5}, "got 1.5"),
        ({"y": np.array([[1], ["x"]], dtype=object)}, "holds whole numbers as 'y', the digits, got object"),
        ({"y": {"digits": DIGITS}}, "holds whole numbers as 'y', the digits, got"),
        ({"y": "12"}, "holds whole numbers as 'y', the digits, got <U"),
    ],
)
def test_files_that_do_not_fit(arrays, message, own):
    write(own / "svhn" / "train_32x32.mat", **arrays)
    with pytest.raises(InputError, match=message):
        svhn()


def test_damaged_files(own):
    place = own / "svhn" / "train_32x32.mat"
    write(place)
    whole = place.read_bytes()
    for content in (b"", b"not Matlab's" * 50, whole[: len(whole) // 2], whole[:200] + bytes(500) + whole[700:]):
        place.write_bytes(content)
        with pytest.raises(InputError, match="damaged or no Matlab file"):
            svhn()
    savemat(place, {"X": PIXELS})
    with pytest.raises(InputError, match="holds no 'y'"):
        svhn()
