import sys

import numpy as np
import pytest
import torch
from PIL import Image

from teeter.data import class_folders, imagenet, imagenet_folder, labelled_folder, subset
from teeter.data.own import Absent
from teeter.errors import InputError, TooLarge, UnknownName


def paint(place, colour, width=20, height=10):
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), colour).save(place, format="PNG")  # without loss, whatever it is called


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    for i in range(6):
        paint(tmp_path / "imagenet" / "train" / "n02" / f"{i}.JPEG", (10 * i, 0, 0), width=20 + i)
    for i in range(3):
        paint(tmp_path / "imagenet" / "train" / "n01" / "deeper" / f"{i}.JPEG", (0, 10 * i, 255), height=30)
    (tmp_path / "imagenet" / "train" / ".hidden").mkdir()
    (tmp_path / "imagenet" / "train" / "n01" / "notes.txt").touch()
    (tmp_path / "imagenet" / "train" / "n01" / "folder.png").mkdir()
    paint(tmp_path / "imagenet" / "train" / "n01" / ".thumbnails" / "0.png", (0, 0, 0))
    paint(tmp_path / "imagenet" / "train" / "n02" / "._0.png", (0, 0, 0))
    return tmp_path / "imagenet"


def test_a_folder_is_a_class(photographs):
    known = class_folders(photographs / "train")
    assert known.classes == ("n01", "n02")
    assert known.labels.tolist() == [0] * 3 + [1] * 6
    assert [place.name for place in known.places] == [f"{i}.JPEG" for i in (0, 1, 2, 0, 1, 2, 3, 4, 5)]
    assert len(known) == 9


def test_pictures_as_one_tensor(photographs):
    data = labelled_folder(photographs / "train", size=8)
    assert data.images.shape == (9, 3, 8, 8)
    assert data.labels.tolist() == [0] * 3 + [1] * 6
    assert data.images[2].flatten(1).unique(dim=1).flatten().tolist() == [0, 20, 255]
    assert data.images[8].flatten(1).unique(dim=1).flatten().tolist() == [50, 0, 0]


def test_resize_and_crop_as_written_out(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    (tmp_path / "one").mkdir()
    Image.fromarray(pixels).save(tmp_path / "one" / "a.png")
    expected = np.array(Image.fromarray(pixels).resize((48, 32), resample=2))[4:28, 12:36]
    found = labelled_folder(tmp_path, size=24, resize=32).images[0]
    assert np.array_equal(found.movedim(0, -1).numpy(), expected)


def test_a_random_few_and_the_same_again(photographs):
    few = labelled_folder(photographs / "train", size=8, limit=4, seed=1)
    chosen = subset(9, 4, seed=1)
    whole = labelled_folder(photographs / "train", size=8)
    assert torch.equal(few.images, whole.images[chosen])
    assert torch.equal(few.labels, whole.labels[chosen])
    assert few.classes == whole.classes


def test_imagenet(photographs):
    assert imagenet_folder("train") == photographs / "train"
    data = imagenet("train", limit=5, size=16)
    assert data.images.shape == (5, 3, 16, 16)
    with pytest.raises(Absent, match=f"ImageNet is in no package registry: put val/<class>/.*.JPEG into {photographs}"):
        imagenet("val")
    with pytest.raises(UnknownName, match="no split named 'test'"):
        imagenet("test")


def test_folders_that_are_none(photographs, tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        class_folders(tmp_path / "nothing")
    (tmp_path / "imagenet" / "val").mkdir()
    paint(tmp_path / "imagenet" / "val" / "flat.JPEG", (0, 0, 0))  # as ImageNet's come
    with pytest.raises(InputError, match="holds no folders: each class has one of its own"):
        imagenet("val")
    (tmp_path / "imagenet" / "train" / "n03").mkdir()
    with pytest.raises(InputError, match="there is no image in .*n03"):
        class_folders(tmp_path / "imagenet" / "train")


def test_pictures_that_cannot_be_read(photographs, monkeypatch):
    (photographs / "train" / "n02" / "3.JPEG").write_bytes(b"no picture")
    with pytest.raises(InputError, match="cannot read the image .*n02/3.JPEG"):
        labelled_folder(photographs / "train", size=8)
    with pytest.raises(TooLarge, match="a tensor of 9 images needs"):
        labelled_folder(photographs / "train", size=10_000_000)
    for sizes in ({"size": -1}, {"size": 0}, {"size": 8, "resize": 0}):
        with pytest.raises(InputError, match="at least 1 pixel large, got size = "):
            labelled_folder(photographs / "train", **sizes)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match="Pillow reads pictures and is not installed"):
        labelled_folder(photographs / "train", size=8)


def test_a_limit_of_none():
    with pytest.raises(InputError, match="limit is at least 1, got 0"):
        subset(5, 0)
    assert subset(5, 9).tolist() == [0, 1, 2, 3, 4]
