import pytest
import torch

from teeter import counter
from teeter.data import crop_and_flip
from teeter.errors import InputError

IMAGES = torch.randint(0, 256, (200, 3, 8, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
INDEX = torch.arange(1000, 1200)


def by_hand(image, index, seed, epoch, padding, flip):
    """One image, pixel by pixel."""
    channels, height, width = image.shape
    top, left = (int(counter.integers(2 * padding + 1, seed, epoch, k, torch.tensor(index))) for k in (0, 1))
    mirrored = flip and int(counter.bits(seed, epoch, 2, torch.tensor(index))) < 0
    out = torch.zeros_like(image)
    for y in range(height):
        for x in range(width):
            row, column = y + top - padding, (width - 1 - x if mirrored else x) + left - padding
            if 0 <= row < height and 0 <= column < width:
                out[:, y, x] = image[:, row, column]
    return out


@pytest.mark.parametrize("padding", [0, 1, 4])
@pytest.mark.parametrize("flip", [True, False])
def test_against_one_image_at_a_time(padding, flip):
    few, index = IMAGES[:12], INDEX[:12]
    out = crop_and_flip(few, index, seed=5, epoch=3, padding=padding, flip=flip)
    assert out.dtype == torch.uint8
    for i in range(12):
        assert torch.equal(out[i], by_hand(few[i], int(index[i]), 5, 3, padding, flip))
    floats = crop_and_flip(few.float() / 255, index, seed=5, epoch=3, padding=padding, flip=flip)
    assert torch.equal(floats, out.float() / 255)


def test_an_image_does_not_depend_on_its_batch():
    whole = crop_and_flip(IMAGES, INDEX, seed=0, epoch=1)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))
    assert torch.equal(crop_and_flip(IMAGES[order], INDEX[order], seed=0, epoch=1), whole[order])
    for seed, epoch in ((0, 2), (1, 1)):
        assert not torch.equal(crop_and_flip(IMAGES, INDEX, seed=seed, epoch=epoch), whole)


def test_every_place_and_both_ways_come_as_often():
    """A single white pixel in the middle says where the crop was; two colours beside it, whether it was mirrored."""
    count = 16_200
    images = torch.zeros(count, 2, 9, 9, dtype=torch.uint8)
    images[:, :, 4, 4] = 1
    images[:, 1, 4, 3] = 1  # to the left, unless mirrored
    out = crop_and_flip(images, torch.arange(count), seed=0, epoch=0, padding=4)
    places = out[:, 0].flatten(1).double().argmax(1).bincount(minlength=81)
    assert float((places - count / 81).abs().max()) < 4.5 * (count / 81) ** 0.5
    kept = out[:, 1].flatten(1).sum(1) == 2  # both pixels within the crop
    shift = out[kept, 1].flatten(1).double() - out[kept, 0].flatten(1).double()
    mirrored = shift.argmax(1) > out[kept, 0].flatten(1).double().argmax(1)
    assert abs(float(mirrored.double().mean()) - 0.5) < 4.5 * 0.5 / int(kept.sum()) ** 0.5


def test_nothing_to_do():
    assert torch.equal(crop_and_flip(IMAGES, INDEX, seed=0, epoch=0, padding=0, flip=False), IMAGES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crop_and_flip(IMAGES[0], INDEX, seed=0, epoch=0), r"got \(3, 8, 6\) and \(200,\)"),
        (lambda: crop_and_flip(IMAGES, INDEX[:3], seed=0, epoch=0), r"and \(3,\)"),
        (lambda: crop_and_flip(IMAGES, INDEX, seed=0, epoch=0, padding=-1), "padding is 0 or more, got -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
