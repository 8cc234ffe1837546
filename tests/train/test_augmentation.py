"""Noise on training inputs: what is nudged, by how much, and that it depends on nothing but where it is used."""

import math

import pytest
import torch

from teeter import perturb
from teeter.errors import InputError
from teeter.train import add_noise

IMAGES = torch.randn(500, 3, 8, 8, generator=torch.Generator().manual_seed(0))
INDEX = torch.arange(1000, 1500)


def test_the_papers_noise_is_on_the_whole_image():
    step = add_noise(IMAGES, seed=0, epoch=0) - IMAGES
    assert float((step == 0).double().mean()) < 1e-3
    n = step.numel()
    assert abs(float(step.var()) - 0.1) < 4.5 * 0.1 * math.sqrt(2 / n)
    assert abs(float(step.mean())) < 4.5 * math.sqrt(0.1 / n)


def test_an_image_does_not_depend_on_its_batch():
    whole = add_noise(IMAGES, INDEX, seed=0, epoch=1, share=0.5)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(1))
    assert torch.equal(add_noise(IMAGES[order], INDEX[order], seed=0, epoch=1, share=0.5), whole[order])
    for seed, epoch in ((0, 2), (1, 1)):
        assert not torch.equal(add_noise(IMAGES, INDEX, seed=seed, epoch=epoch, share=0.5), whole)
    assert torch.equal(
        add_noise(IMAGES, seed=0, epoch=0), add_noise(IMAGES, torch.arange(500), seed=0, epoch=0)
    )  # numbered as they come


def test_the_images_given_are_left_alone():
    before = IMAGES.clone()
    add_noise(IMAGES, seed=0, epoch=0)
    assert torch.equal(IMAGES, before)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_share_is_the_chance_of_an_image(share):
    nudged = (add_noise(IMAGES, seed=2, epoch=0, share=share) != IMAGES).flatten(1).any(1)
    if share in (0, 1):
        assert bool(nudged.all()) == bool(share) and bool(nudged.any()) == bool(share)
    else:
        assert abs(float(nudged.double().mean()) - share) < 4.5 * math.sqrt(share * (1 - share) / 500)
    all_of_them = add_noise(IMAGES, seed=2, epoch=0)
    some = add_noise(IMAGES, seed=2, epoch=0, share=share)
    assert torch.equal(some[nudged], all_of_them[nudged])  # the noise itself does not depend on the share


def test_one_patch_each():
    step = add_noise(IMAGES, seed=0, epoch=0, perturbation=perturb.PatchNoise(4, 1.0)) - IMAGES
    touched = (step != 0).any(1).view(500, 2, 4, 2, 4).any(4).any(2).flatten(1)
    assert bool((touched.sum(1) == 1).all())
    counts = touched.sum(0)
    assert float((counts - 125).abs().max()) < 4.5 * math.sqrt(125)


def test_texts_keep_their_padding():
    mask = torch.ones(400, 6, dtype=torch.long)
    mask[:200, 3:] = 0
    mask[0] = 0
    texts = {"input_ids": torch.full((400, 6), 3), "attention_mask": mask}
    after = add_noise(texts, seed=0, epoch=0, perturbation=perturb.TokenReplace(50))
    assert after["attention_mask"] is mask
    changed = after["input_ids"] != 3
    assert not bool(changed[mask == 0].any())
    assert bool((changed.sum(1) <= 1).all())
    assert int(changed.sum()) > 370  # one in fifty is replaced by itself


def test_errors():
    with pytest.raises(InputError, match="between 0 and 1, got 1.5"):
        add_noise(IMAGES, seed=0, epoch=0, share=1.5)
    with pytest.raises(InputError, match=r"500 inputs have as many indices, got \(3,\)"):
        add_noise(IMAGES, torch.arange(3), seed=0, epoch=0)
    with pytest.raises(InputError, match="needs a torch module"):
        add_noise(torch.ones(2, 3).long(), seed=0, epoch=0, perturbation=perturb.EmbeddingNoise())
