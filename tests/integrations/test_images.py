"""Pictures come out as the libraries that trained the models prepare them."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from teeter.errors import InputError, TooLarge
from teeter.integrations import ImageFormat, find_images, read_images
from teeter.integrations.images import _PLAIN


def photograph(width=61, height=40, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((width, height), resample=3)


SQUARE, SHORTEST = {"height": 24, "width": 20}, {"shortest_edge": 28}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("ViT", {"size": SQUARE}),
        ("ViT", {"size": SQUARE, "do_normalize": False}),
        ("ViT", {"size": SQUARE, "do_rescale": False}),
        ("ViT", {"do_resize": False}),
        ("CLIP", {"size": SHORTEST, "crop_size": {"height": 24, "width": 24}}),
        ("CLIP", {"size": {"shortest_edge": 20}, "crop_size": {"height": 24, "width": 24}}),  # black at the borders
        ("DeiT", {"size": {"height": 30, "width": 30}, "crop_size": {"height": 24, "width": 24}}),
        ("Bit", {"size": SHORTEST, "crop_size": {"height": 25, "width": 25}}),
        ("ConvNext", {"size": SHORTEST}),
        ("ConvNext", {"size": {"shortest_edge": 384}}),
    ],
)
@pytest.mark.parametrize("shape", [(61, 40), (40, 61)])
def test_as_transformers_prepares_them(tmp_path, kind, more, shape):
    oracle = getattr(transformers, f"{kind}ImageProcessorPil")(**more)
    oracle.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    image = photograph(*shape)
    expected = oracle(image, return_tensors="pt")["pixel_values"][0]
    assert torch.allclose(ImageFormat.of(tmp_path).prepare(image), expected, atol=1e-5)


def test_old_files_write_sizes_as_one_number(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"num_channels": 1}))
    place = tmp_path / "preprocessor_config.json"
    place.write_text(json.dumps({"size": 24, "image_mean": 0.25, "image_std": 0.5}))
    assert ImageFormat.of(tmp_path) == ImageFormat((24, 24), None, (0.25,), (0.5,))
    place.write_text(
        json.dumps({"size": 28, "crop_size": 24, "do_center_crop": True, "image_processor_type": "CLIPImageProcessor"})
    )
    assert ImageFormat.of(tmp_path) == ImageFormat(28, (24, 24), (0.5,), (0.5,))


@pytest.mark.parametrize("kind", _PLAIN)
@pytest.mark.parametrize("crop", [False, True])
def test_one_number_is_a_square_or_the_shortest_side_as_the_kind_has_it(tmp_path, kind, crop):
    """The file as old releases wrote it, read by transformers and by us."""
    says = {"image_processor_type": f"{kind}ImageProcessor", "size": 28, "crop_size": 24, "do_center_crop": crop}
    says |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_resize": True, "do_normalize": True, "resample": 2}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(says))
    (tmp_path / "config.json").write_text("{}")
    maker = getattr(transformers, f"{kind}ImageProcessorPil", None)
    if maker is None:
        pytest.skip(f"transformers has no Pillow processor for {kind}")
    image = photograph(61, 40)
    expected = maker.from_pretrained(tmp_path)(image, return_tensors="pt")["pixel_values"][0]
    assert torch.allclose(ImageFormat.of(tmp_path).prepare(image), expected, atol=1e-5)


def test_formats_that_are_not_understood(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for says, message in (
        ({"image_processor_type": "LevitImageProcessor"}, "how a Levit model prepares images is not known"),
        ({"do_resize": True}, "cannot understand"),
        ({"size": {"width": 3}}, "cannot understand"),
        ({"size": 8, "image_mean": [1, 2]}, "cannot understand"),
    ):
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(says))
        with pytest.raises(InputError, match=message):
            ImageFormat.of(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mean": (0.5, 0.5)}, "one number each, or three"),
        ({"mean": (0.5,)}, "one number each, or three"),
        ({"std": (1.0, 0.0, 1.0)}, "std is positive"),
        ({"mean": (float("nan"),) * 3}, "finite"),
        ({"resize": 0}, "at least 1"),
        ({"crop": (4, 0)}, "at least 1"),
    ],
)
def test_formats_that_are_none(wrong, message):
    with pytest.raises(InputError, match=message):
        ImageFormat(**wrong)


def test_gray_alpha_and_turned_pictures():
    gray = ImageFormat(mean=(0.0,), std=(1.0,))
    assert gray.prepare(photograph()).shape == (1, 40, 61)
    assert ImageFormat().prepare(photograph().convert("RGBA")).shape == (3, 40, 61)
    turned = photograph()
    turned.getexif()[0x0112] = 6  # the camera was held upright
    assert ImageFormat().prepare(turned).shape == (3, 61, 40)
    assert ImageFormat().sized(16).prepare(photograph()).shape == (3, 16, 16)


def test_a_folder(tmp_path):
    (tmp_path / "cats").mkdir()
    for name, seed in (("b.png", 1), ("a.JPG", 0), ("cats/c.bmp", 2)):
        photograph(seed=seed).save(tmp_path / name)
    (tmp_path / ".hidden.png").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("")
    places = find_images(tmp_path)
    assert [place.name for place in places] == ["a.JPG", "b.png", "c.bmp"]
    batch = read_images(places)
    assert batch.shape == (3, 3, 40, 61)
    assert torch.equal(batch[1], ImageFormat().prepare(photograph(seed=1)))
    assert 0 <= float(batch.min()) < float(batch.max()) <= 1


def test_folders_and_images_that_are_none(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="there is no image in"):
        find_images(tmp_path)
    with pytest.raises(InputError, match="no image to read"):
        read_images([])
    photograph().save(tmp_path / "a.png")
    photograph(40, 30).save(tmp_path / "b.png")
    with pytest.raises(InputError, match=r"differ in size \(61 x 40 and 40 x 30, .*b.png' on\): give an image size"):
        read_images(find_images(tmp_path))
    whole = (tmp_path / "a.png").read_bytes()
    for name, content in (("cut.png", whole[: len(whole) // 2]), ("none.jpg", b"no picture")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"cannot read the image .*{name}"):
            read_images([tmp_path / name])
    monkeypatch.setattr("teeter.cube.memory.available", lambda device: 1000)
    with pytest.raises(TooLarge, match="a batch of 1 images needs 28.6 KiB"):
        read_images([tmp_path / "a.png"])
