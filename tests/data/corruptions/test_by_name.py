"""What holds for every corruption, and the laws of the noises."""

import sys

import pytest
import torch
from PIL import Image
from scipy.stats import poisson

from teeter.data import CORRUPTIONS, FAMILIES, SEVERITIES, corrupted
from teeter.data.corruptions import weather
from teeter.data.corruptions.linear import gaussian_matrix, weights, zoom_matrix
from teeter.errors import InputError, MissingExtra, UnknownName

# The pairs (corruption, s) where the constants of severity s + 1 change the image less than those of s. Elastic
# transforms turn the image less and less; the blur of glass hides its moves; saturation first falls, then rises; frost
# at 4 and 5 dims the image more than it adds.
LESS = {("glass_blur", 1), ("glass_blur", 2), ("glass_blur", 4), ("frost", 3), ("saturate", 2)}
LESS |= {("elastic_transform", s) for s in range(1, 5)}
ALIKE = {("motion_blur", 3), ("frost", 4), ("spatter", 3)}  # too close to call


def change(images, name, severity):
    return float((corrupted(images, name, severity).double() - images).square().mean())


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_severity(name, photos):
    changes = [change(photos, name, severity) for severity in range(1, 6)]
    assert changes[0] > 2
    for s in range(1, 5):
        if (name, s) not in ALIKE:
            assert (changes[s] < changes[s - 1]) == ((name, s) in LESS), s


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_an_image_is_the_same_in_every_batch(name, photos):
    for severity in (3, 5):
        whole = corrupted(photos, name, severity, seed=1)
        assert whole.dtype == torch.uint8
        assert whole.shape == photos.shape
        assert whole.is_contiguous()
        some = torch.tensor([199, 3, 3, 17, 90])
        assert torch.equal(corrupted(photos[some], name, severity, seed=1, index=some), whole[some])
        alone = torch.cat([corrupted(photos[i : i + 1], name, severity, seed=1, index=some[:1]) for i in (199, 199)])
        assert torch.equal(alone, whole[[199, 199]])


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_chunks_do_not_show(name, photos, monkeypatch):
    before = corrupted(photos[:50], name, 4)
    monkeypatch.setattr("teeter.data.corruptions.by_name._CHUNK", 7)
    assert torch.equal(corrupted(photos[:50], name, 4), before)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_threads_do_not_show(name, photos):
    before, threads = corrupted(photos[:60], name, 4), torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        assert torch.equal(corrupted(photos[:60], name, 4), before)
    finally:
        torch.set_num_threads(threads)


FIXED = {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}
FIXED |= {"gaussian_blur", "saturate"}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_seed(name, photos):
    images = photos[:20]
    first = corrupted(images, name, 3)
    assert torch.equal(corrupted(images, name, 3, seed=0), first)
    other = corrupted(images, name, 3, seed=1)
    moved = corrupted(images, name, 3, index=torch.arange(20) + 1)
    assert torch.equal(other, first) == torch.equal(moved, first) == (name in FIXED)


def test_a_severity_has_its_own_random_numbers(photos):
    grey = torch.full((1, 3, 32, 32), 128, dtype=torch.uint8)
    one, five = (corrupted(grey, "gaussian_noise", s).double().flatten() - 128 for s in (1, 5))
    assert abs(float(torch.corrcoef(torch.stack([one, five]))[0, 1])) < 0.07  # 3.9 / sqrt(3072)


def test_images_are_left_alone(few):
    for name in CORRUPTIONS:
        before = few.images.clone()
        corrupted(few.images, name, 5)
        assert torch.equal(few.images, before), name
    strided = few.images.movedim(1, -1).contiguous().movedim(-1, 1)
    assert torch.equal(corrupted(strided, "glass_blur", 5), corrupted(few.images, "glass_blur", 5))


def test_no_images():
    for name in CORRUPTIONS:
        assert corrupted(torch.zeros(0, 3, 32, 32, dtype=torch.uint8), name, 1).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("name", ["defocus_blur", "zoom_blur", "motion_blur", "gaussian_blur", "glass_blur"])
def test_blur_leaves_one_colour_alone(name, few):
    for severity in range(1, 6):
        assert torch.equal(corrupted(few.images[2:], name, severity), few.images[2:])


def grey_images(level, count=200):
    return torch.full((count, 3, 32, 32), level, dtype=torch.uint8)


@pytest.mark.parametrize("severity", [1, 5])
def test_gaussian_and_speckle_noise_have_their_deviation(severity):
    """Cut off to whole bytes, so half a byte is missing in the mean, and a twelfth is more in the variance."""
    for name, scale in (("gaussian_noise", 255), ("speckle_noise", 120)):
        values = corrupted(grey_images(120), name, severity).double()
        sigma = scale * SEVERITIES[name][severity - 1]
        assert float(values.mean()) == pytest.approx(119.5, abs=5 * sigma / 614_400**0.5)
        assert float(values.std()) == pytest.approx((sigma**2 + 1 / 12) ** 0.5, rel=0.005)


@pytest.mark.parametrize("severity", [3, 5])  # of more photons than 255 a byte cannot tell
def test_shot_noise_is_poisson(severity):
    photons = SEVERITIES["shot_noise"][severity - 1]
    values = corrupted(grey_images(51), "shot_noise", severity).double().flatten()
    counts = torch.ceil(values * photons / 255 - 1e-9)  # a byte that was cut off
    assert float(counts.mean()) == pytest.approx(photons / 5, abs=5 * (photons / 5 / len(counts)) ** 0.5)
    assert float(counts.var()) == pytest.approx(photons / 5, rel=0.01)
    if severity == 5:
        shares = counts.long().bincount(minlength=30)[:30] / len(counts)
        assert float((shares - torch.from_numpy(poisson.pmf(range(30), 10))).abs().max()) < 0.002
    assert corrupted(grey_images(0), "shot_noise", severity).max() == 0


@pytest.mark.parametrize("severity", [1, 5])
def test_impulse_noise_strikes_its_part(severity):
    part = SEVERITIES["impulse_noise"][severity - 1]
    values = corrupted(grey_images(77), "impulse_noise", severity)
    for extreme in (0, 255):
        share = float((values == extreme).double().mean())
        assert share == pytest.approx(part / 2, abs=5 * (part / 2 / 614_400) ** 0.5)
    assert set(values.unique().tolist()) == {0, 77, 255}


def test_fog_keeps_the_brightest_and_hides_the_darkest(few):
    black = corrupted(few.images[2:3], "fog", 5)
    assert black.max() == 0  # the fog is only as bright as the image
    grey = corrupted(grey_images(200, 20), "fog", 5).double()
    assert float(grey.amax((1, 2, 3)).min()) == 200
    assert float(grey.amin((1, 2, 3)).max()) == int(200 * 200 / (200 + 1.5 * 255))


def test_grey_turns_red_when_saturated():
    assert corrupted(grey_images(100, 1), "saturate", 5)[0, :, 0, 0].tolist() == [100, 80, 80]
    assert corrupted(grey_images(100, 1), "saturate", 1)[0, :, 0, 0].tolist() == [100, 100, 100]


def test_weights_sum_to_exactly_one():
    for matrix in (gaussian_matrix(1.7, 32, bits=22), zoom_matrix(1.26, 32, bits=16)):
        assert (matrix.sum(-1) == 1).all()
        assert (matrix >= 0).all()
    assert weights(torch.ones(1, 3).double().numpy(), bits=2).tolist() == [[0.5, 0.25, 0.25]]


def test_names_are_one_list():
    assert list(CORRUPTIONS) == sum(FAMILIES.values(), []) == list(SEVERITIES)
    assert [len(names) for names in FAMILIES.values()] == [3, 4, 4, 4, 4]
    assert {len(each) for each in SEVERITIES.values()} == {5}


GOOD = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("images", "severity", "index", "message"),
    [
        (GOOD, 0, None, "from 1 to 5, got 0"),
        (GOOD, 6, None, "from 1 to 5, got 6"),
        (GOOD, 2.5, None, "got 2.5"),
        (GOOD, True, None, "got True"),
        (GOOD.float(), 1, None, r"got torch.float32 \(2, 3, 32, 32\)"),
        (GOOD[:, :1], 1, None, r"\(2, 1, 32, 32\)"),
        (GOOD[..., :28], 1, None, r"\(2, 3, 32, 28\)"),
        (GOOD[0], 1, None, r"\(3, 32, 32\)"),
        (GOOD, 1, torch.arange(3), r"2 images have as many int64 numbers, got torch.int64 \(3,\)"),
        (GOOD, 1, torch.zeros(2), "got torch.float32"),
    ],
)
def test_bad_input(images, severity, index, message):
    with pytest.raises(InputError, match=message):
        corrupted(images, "fog", severity, index=index)


def test_an_unknown_corruption():
    with pytest.raises(UnknownName, match="no corruption named 'defocus': did you mean 'defocus_blur'"):
        corrupted(GOOD, "defocus", 1)


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    weather._ice.cache_clear()
    for name in ("jpeg_compression", "frost"):
        with pytest.raises(
            MissingExtra, match=r"^Pillow reads .* and is not installed: pip install 'teeter\[images\]'"
        ):
            corrupted(GOOD, name, 1)


@pytest.mark.parametrize("content", [None, b"", b"no picture"])
def test_a_package_of_frost_that_lost_a_picture(content, tmp_path, monkeypatch):
    folder = tmp_path / "imagecorruptions" / "frost"
    folder.mkdir(parents=True)
    for name in weather._FROST:
        Image.new("RGB", (400, 300)).save(folder / name)
    monkeypatch.setattr(weather, "fetch", lambda package: tmp_path)
    weather._ice.cache_clear()
    try:
        corrupted(GOOD, "frost", 1)
        weather._ice.cache_clear()
        (folder / "frost3.png").unlink()
        if content is not None:
            (folder / "frost3.png").write_bytes(content)
        with pytest.raises(InputError, match=f"frost3.png is missing or damaged .*: remove {tmp_path} and fetch again"):
            corrupted(GOOD, "frost", 1)
    finally:
        weather._ice.cache_clear()
