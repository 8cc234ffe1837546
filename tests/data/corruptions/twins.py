"""Every corruption once more: one image, one step at a time, with the libraries that its definition names.

A twin takes an image as an array (32, 32, 3) of bytes, the constants, and the image's own random numbers.
"""

import colorsys
import io
import math

import numpy as np
from PIL import Image
from scipy import ndimage
from scipy.stats import poisson


def whole(values):
    """Bytes as numpy makes them, but for values that are whole up to rounding."""
    return np.floor(np.clip(values, 0, 255) + 1e-6).astype(np.uint8)


def channels_last(draws):
    return draws[0].movedim(0, -1).numpy()


def gaussian_noise(image, sigma, draws):
    return whole((image / 255 + sigma * channels_last(draws.normal(0, 3, 32, 32))) * 255)


def speckle_noise(image, sigma, draws):
    return whole((image / 255 + image / 255 * sigma * channels_last(draws.normal(0, 3, 32, 32))) * 255)


def shot_noise(image, photons, draws):
    chance = channels_last(draws.uniform(0, 3, 32, 32))
    return whole(poisson.ppf(chance, np.maximum(image / 255 * photons, 1e-12)).clip(0) / photons * 255)


def impulse_noise(image, part, draws):
    chance = channels_last(draws.uniform(0, 3, 32, 32))
    struck = image.copy()
    struck[chance < part] = 0
    struck[chance < part / 2] = 255
    return struck


def gaussian_blur(image, sigma, draws):
    return whole(ndimage.gaussian_filter(image.astype(float), (sigma, sigma, 0), mode="nearest", truncate=4))


def defocus_blur(image, constants, draws):
    radius, softness = constants
    y, x = np.mgrid[-8:9, -8:9]
    disk = (x**2 + y**2 <= radius**2).astype(float)
    edge = np.exp(-0.5 * (np.arange(-1, 2) / softness) ** 2)
    kernel = ndimage.correlate(disk / disk.sum(), np.outer(edge, edge) / edge.sum() ** 2, mode="constant")
    return whole(ndimage.correlate(image.astype(float), kernel[..., None], mode="mirror"))


def glass_blur(image, constants, draws):
    sigma, reach, passes = constants
    pixels = gaussian_blur(image, sigma, draws)
    for turn in range(passes):
        up, left = draws.integers(2, turn, 2, 32, 32)[0].numpy()
        for row in range(32 - reach, reach, -1):
            for column in range(32 - reach, reach, -1):
                other = row - up[row, column], column - left[row, column]
                pixels[row, column], pixels[other] = pixels[other], pixels[row, column]  # two views: it only copies
    return gaussian_blur(pixels, sigma, draws)


def swept(image, radius, sigma, angle):
    weights = np.exp(-0.5 * (np.arange(2 * radius + 1) / sigma) ** 2)
    total = np.zeros(image.shape)
    for row in range(32):
        for column in range(32):
            for i, weight in enumerate(weights / weights.sum()):
                y = row + math.ceil(i * math.sin(math.radians(angle)) - 0.5)
                x = column + math.ceil(i * math.cos(math.radians(angle)) - 0.5)
                total[row, column] += weight * image[min(max(y, 0), 31), min(max(x, 0), 31)]
    return whole(total + 0.5)


def motion_blur(image, constants, draws):
    return swept(image, *constants, float(draws.uniform(0)) * 90 - 45)


def zoomed(values, factor):
    kept = math.ceil(32 / factor)
    top = (32 - kept) // 2
    large = ndimage.zoom(values[top : top + kept, top : top + kept], (factor, factor), order=1)
    trim = (len(large) - 32) // 2
    return large[trim : trim + 32, trim : trim + 32]


def zoom_blur(image, constants, draws):
    factors = np.arange(1, *constants)
    total = image.astype(float)
    for factor in factors:
        total += np.stack([zoomed(image[..., channel].astype(float), factor) for channel in range(3)], -1)
    return whole(total / (len(factors) + 1))


def snow(image, constants, draws):
    mean, deviation, size, threshold, radius, sigma, kept = constants
    flakes = zoomed(np.round((mean + deviation * draws.normal(0, 32, 32)[0].numpy()) * 2**16) / 2**16, size)
    flakes[flakes < threshold] = 0
    fallen = swept(whole(flakes * 255), radius, sigma, float(draws.uniform(1)) * 90 - 135)[..., None] / 255
    x = image / 255
    grey = (x @ (0.299, 0.587, 0.114))[..., None]
    x = kept * x + (1 - kept) * np.maximum(x, 1.5 * grey + 0.5)
    return whole((x + fallen + np.rot90(fallen, 2)) * 255)


def fog(image, constants, draws):
    amount, decay = constants
    heights = {(0, 0): 0.0}
    step, w, scale = 32, 100.0, 0
    while step >= 2:
        half, cells = step // 2, 32 // step
        random = draws.uniform(scale, 3, cells, cells)[0].numpy() * 2 - 1

        def settle(kind, points, neighbours, random=random, w=w, step=step):
            for y, x in points:
                mean = sum(heights[(y + dy) % 32, (x + dx) % 32] for dy, dx in neighbours) / 4
                heights[y, x] = mean + w * w * random[kind, y // step, x // step]

        grid = range(0, 32, step)
        diagonal = [(a, b) for a in (-half, half) for b in (-half, half)]
        straight = [(-half, 0), (half, 0), (0, -half), (0, half)]
        settle(0, [(y + half, x + half) for y in grid for x in grid], diagonal)
        settle(1, [(y, x + half) for y in grid for x in grid], straight)
        settle(2, [(y + half, x) for y in grid for x in grid], straight)
        step, w, scale = half, w / decay, scale + 1
    plasma = np.array([[heights[y, x] for x in range(32)] for y in range(32)])
    plasma = (plasma - plasma.min()) / (plasma.max() - plasma.min())
    x = image / 255
    return whole((x + amount * plasma[..., None]) * x.max() / (x.max() + amount) * 255)


def recoloured(image, change):
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in image.reshape(-1, 3) / 255]
    return whole(np.array(pixels).reshape(image.shape) * 255)


def brightness(image, amount, draws):
    return recoloured(image, lambda h, s, v: (h, s, min(v + amount, 1)))


def saturate(image, constants, draws):
    factor, addend = constants
    return recoloured(image, lambda h, s, v: (h, min(max(s * factor + addend, 0), 1), v))


def contrast(image, kept, draws):
    mean = image.mean((0, 1))
    return whole((image - mean) * kept + mean)


def elastic_transform(image, constants, draws):
    amount, sigma, reach = (32 * part for part in constants)
    before = np.array([(26, 26), (26, 6), (6, 6)], dtype=float)  # (x, y)
    after = before + reach * (2 * draws.uniform(0, 3, 2)[0].numpy() - 1)
    forward = np.linalg.solve(np.column_stack([before, np.ones(3)]), after).T  # (2, 3): what takes before to after
    y, x = np.mgrid[:32, :32]
    source = np.tensordot(np.linalg.inv(forward[:, :2]), np.stack([x, y]) - forward[:, 2, None, None], 1)

    def at(values, rows, columns, mode):
        return np.stack(
            [ndimage.map_coordinates(values[..., c], (rows, columns), order=1, mode=mode) for c in range(3)], -1
        )

    turned = at(image.astype(float), source[1], source[0], "mirror")
    noise = 2 * draws.uniform(1, 2, 32, 32)[0].numpy() - 1
    dx, dy = (amount * ndimage.gaussian_filter(part, sigma, mode="reflect", truncate=3) for part in noise)
    return whole(at(turned, y + dy, x + dx, "reflect"))


def pixelate(image, part, draws):
    small = int(32 * part)
    resized = Image.fromarray(image).resize((small, small), Image.Resampling.BOX)
    return np.array(resized.resize((32, 32), Image.Resampling.BOX))


def jpeg_compression(image, quality, draws):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.array(Image.open(file))
