"""Data made on a GPU is the same, to the bit."""

import pytest
import torch

from teeter import cube
from teeter.data import (
    LabelledImages,
    SparseParity,
    Vocabulary,
    bit_strings,
    cifar10_c,
    crop_and_flip,
    labelled_bits,
    modular_addition,
    sequences,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_bits_and_what_is_made_of_them():
    assert torch.equal(bit_strings(100, 50, seed=0, device="cuda").cpu(), bit_strings(100, 50, seed=0))
    here, there = (labelled_bits(cube.majority, 31, 500, seed=0, step=4, device=name) for name in ("cpu", "cuda"))
    assert all(torch.equal(one, other.cpu()) for one, other in zip(here, there, strict=True))
    here, there = (SparseParity().examples(500, "test", device=name) for name in ("cpu", "cuda"))
    assert all(torch.equal(one, other.cpu()) for one, other in zip(here, there, strict=True))


def test_sums_and_sentences():
    for one, other in zip(modular_addition(), modular_addition(device="cuda"), strict=True):
        assert torch.equal(one.tokens, other.tokens.cpu())
        assert torch.equal(one.labels, other.labels.cpu())
    setting = dict(length=50, n_sparse=3, n_frequent=5, n_difference=1, seed=0, altered=True)
    here, there = (sequences(Vocabulary(16, 59), 100, **setting, device=name) for name in ("cpu", "cuda"))
    assert all(torch.equal(one, other.cpu()) for one, other in zip(here, there, strict=True))


def test_corrupted_images_are_made_from_wherever_the_test_set_is(tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path))
    monkeypatch.delenv("TEETER_DATA", raising=False)
    pixels = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8)
    here = LabelledImages(pixels, torch.arange(5), tuple("0123456789"))
    for _ in range(2):  # made, then read
        there = cifar10_c("contrast", 3, here.to("cuda"))
        assert there.images.device.type == there.labels.device.type == "cuda"
        assert torch.equal(there.images.cpu(), cifar10_c("contrast", 3, here).images)


def test_images():
    pixels = torch.randint(0, 256, (300, 3, 32, 32), dtype=torch.uint8)
    there = LabelledImages(pixels, torch.arange(300) % 10, tuple("0123456789")).to("cuda")
    index = torch.arange(300)
    cropped = crop_and_flip(there.images, index, seed=0, epoch=2)
    assert torch.equal(cropped.cpu(), crop_and_flip(pixels, index, seed=0, epoch=2))
    assert there.standardised(0.5, 0.25).device.type == "cuda"
    assert there.moments()[0] == pytest.approx((pixels.double() / 255).mean((0, 2, 3)).tolist(), abs=1e-12)
