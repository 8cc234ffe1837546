"""Every corruption against its twin: the same bytes, but for some that rounding moves by one."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from teeter.data import CORRUPTIONS, PACKAGES, SEVERITIES, fetch
from teeter.data.corruptions import Draws, corrupted
from teeter.data.corruptions.linear import gaussian_matrix, on_grid
from teeter.data.corruptions.spatter import canny, chamfer, equalised
from tests.data.corruptions import twins

OTHERWISE = {"frost", "spatter"}  # compared below
NAMES = [name for name in CORRUPTIONS if name not in OTHERWISE]


def as_arrays(images):
    return images.movedim(1, -1).numpy()


@pytest.mark.parametrize("name", NAMES)
def test_twin(name, photos, few):
    numbers = [44, 13, 3, 21]
    images = torch.cat([photos[numbers], few.images])
    index = torch.tensor([*numbers, 7, 8, 9, 10, 11, 12])
    slow = name in ("snow", "motion_blur")
    for severity in (2, 5) if slow else range(1, 6):
        ours = as_arrays(corrupted(images, name, severity, seed=5, index=index)).astype(int)
        for row in (0, 4) if slow else range(len(images)):
            draws = Draws(5, name, severity, index[row : row + 1])
            twin = getattr(twins, name)(
                as_arrays(images[row : row + 1])[0].copy(), SEVERITIES[name][severity - 1], draws
            )
            apart = np.abs(ours[row] - twin)
            assert apart.max() <= 1, (severity, row)
            assert (apart > 0).mean() < 0.004, (severity, row)


def test_frost(photos):
    """The published resizing, linear interpolation at (i + 1/2) * 5 - 1/2, written out."""
    folder = fetch(PACKAGES["frost"]) / "imagecorruptions" / "frost"
    ours = as_arrays(corrupted(photos, "frost", 4, seed=1))
    own, ice = SEVERITIES["frost"][3]
    draws = Draws(1, "frost", 4, torch.arange(len(photos)))
    which, down, across = draws.integers(5, 0), draws.uniform(1), draws.uniform(2)
    assert which.bincount(minlength=5).min() > 20
    for number, name in enumerate(["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"]):
        with Image.open(folder / name) as file:
            picture = np.array(file.convert("RGB")).astype(float)
        height, width = (round(size * 0.2) for size in picture.shape[:2])
        y, x = ((np.arange(size) + 0.5) * 5 - 0.5 for size in (height, width))
        place = np.meshgrid(y, x, [0, 1, 2], indexing="ij")
        small = ndimage.map_coordinates(picture, place, order=1, mode="nearest")
        for row in torch.nonzero(which == number).flatten()[:4].tolist():
            top, left = int(down[row] * (height - 32)), int(across[row] * (width - 32))
            piece = small[top : top + 32, left : left + 32]
            twin = twins.whole(own * as_arrays(photos)[row].astype(float) + ice * piece)
            assert np.array_equal(ours[row], twin)


def slow_canny(grey, low=50, high=150):
    around = np.pad(grey, 1, mode="edge").astype(int)
    size = np.zeros((34, 34), dtype=int)
    gx, gy = np.zeros((2, 34, 34), dtype=int)
    for y in range(1, 33):
        for x in range(1, 33):
            window = around[y - 1 : y + 2, x - 1 : x + 2]
            gx[y, x] = (window * [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]).sum()
            gy[y, x] = (window * [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]).sum()
            size[y, x] = abs(gx[y, x]) + abs(gy[y, x])
    weak = np.zeros((34, 34), dtype=bool)
    for y in range(1, 33):
        for x in range(1, 33):
            here, angle = size[y, x], np.degrees(np.arctan2(abs(gy[y, x]), abs(gx[y, x])))
            if angle < 22.5:
                peak = here > size[y, x - 1] and here >= size[y, x + 1]
            elif angle > 67.5:
                peak = here > size[y - 1, x] and here >= size[y + 1, x]
            else:
                s = -1 if (gx[y, x] < 0) != (gy[y, x] < 0) else 1
                peak = here > size[y - 1, x - s] and here > size[y + 1, x + s]
            weak[y, x] = peak and here > low
    regions, count = ndimage.label(weak, np.ones((3, 3)))
    kept = [region for region in range(1, count + 1) if (size[regions == region] > high).any()]
    return np.isin(regions, kept)[1:-1, 1:-1]


def slow_chamfer(edges):
    """Two passes over the pixels, with the five-by-five mask."""
    distance = np.where(np.pad(edges, 2), 0, 1 << 30).astype(np.int64)
    inside = np.pad(np.ones_like(edges), 2)
    before = [(-1, 0, 65536), (0, -1, 65536), (-1, -1, 91750), (-1, 1, 91750)]
    before += [(a, b, 143976) for a, b in ((-1, -2), (-1, 2), (-2, -1), (-2, 1))]
    for turn in (1, -1):
        for y, x in np.argwhere(inside)[::turn]:
            for dy, dx, length in before:
                distance[y, x] = min(distance[y, x], distance[y + turn * dy, x + turn * dx] + length)
    return distance[2:-2, 2:-2]


def slow_equalised(values):
    counts = np.bincount(values.ravel(), minlength=256)
    lowest = int(np.flatnonzero(counts)[0])
    if counts[lowest] == values.size:
        return values
    table, total = np.zeros(256, dtype=int), 0
    for level in range(lowest + 1, 256):
        total += counts[level]
        table[level] = round(total * 255 / (values.size - counts[lowest]))
    return table[values]


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_water(severity, photos):
    mean, deviation, smoothing, threshold, strength, _ = SEVERITIES["spatter"][severity - 1]
    rows = torch.arange(6)
    ours = as_arrays(corrupted(photos[:6], "spatter", severity))
    noise = on_grid(mean + deviation * Draws(0, "spatter", severity, rows).normal(0, 32, 32), 16)
    smooth = gaussian_matrix(smoothing, 32, bits=16)
    for row in rows.tolist():
        liquid = (smooth @ noise[row] @ smooth.T).numpy()
        depth = np.where(liquid < threshold, 0, np.floor(liquid * 255).astype(int) % 256)
        edges = slow_canny(depth)
        assert edges.any()
        assert np.array_equal(canny(torch.from_numpy(depth).int()[None])[0].numpy(), edges)
        far = slow_chamfer(edges)
        assert np.array_equal(chamfer(torch.from_numpy(edges)[None])[0].numpy(), far)
        nine = np.ones((3, 3)) / 9
        shape = ndimage.correlate(np.minimum(far / 65536, 20), nine, mode="mirror")
        shape = slow_equalised(np.floor(shape + 1e-9).astype(int))
        lit = ndimage.correlate(shape, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]), mode="mirror").clip(0, 255)
        light = depth * np.round(ndimage.correlate(lit.astype(float), nine, mode="mirror"))
        light = strength * light / light.max()
        twin = twins.whole(as_arrays(photos)[row] + light[..., None] * (175, 238, 238))
        assert np.abs(ours[row].astype(int) - twin).max() <= 1
        assert (ours[row] != twin).mean() < 0.001


@pytest.mark.parametrize("severity", [4, 5])
def test_mud(severity, photos):
    mean, deviation, smoothing, threshold, edge, _ = SEVERITIES["spatter"][severity - 1]
    ours = as_arrays(corrupted(photos[:6], "spatter", severity))
    noise = Draws(0, "spatter", severity, torch.arange(6)).normal(0, 32, 32).numpy()
    for row in range(6):
        liquid = ndimage.gaussian_filter(mean + deviation * noise[row], smoothing, mode="nearest")
        cover = ndimage.gaussian_filter((liquid > threshold).astype(float), edge, mode="nearest")[..., None]
        cover[cover < 0.8] = 0
        assert cover.any()
        twin = twins.whole(as_arrays(photos)[row] * (1 - cover) + cover * (63, 42, 20))
        apart = np.abs(ours[row].astype(int) - twin)
        assert (apart > 1).mean() < 0.002  # a pixel at the threshold may fall to either side
        assert (apart > 0).mean() < 0.004


def test_a_drop_without_a_rim_has_no_light(few):
    """Where nothing exceeds the threshold the published code divides nothing by nothing; here the image stays."""
    dry = (0.1, 0.0, 0.7, 0.7, 0.5, 0)
    draws = Draws(0, "spatter", 1, torch.arange(6))
    assert torch.equal(CORRUPTIONS["spatter"](few.images, dry, draws), few.images)


def test_equalised_leaves_one_value_alone():
    same = torch.full((1, 4, 4), 7)
    assert torch.equal(equalised(same), same)
    assert equalised(torch.tensor([[[3, 3], [5, 9]]])).flatten().tolist() == [0, 0, 128, 255]
