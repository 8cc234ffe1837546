"""Claim: with the same random numbers, what teeter makes of an image is what the libraries make of it that the
published script calls (scikit-image, OpenCV, SciPy, pillow), byte for byte in the shares that FLOORS says, and hardly
ever further off than by one; and all 19 corruptions at five severities of CIFAR-10's 10,000 test images take at most
five minutes on one core.

The other side is the package imagecorruptions-imaug, one image at a time, with CIFAR-10-C's constants in the place of
its own. Where it departs from the script (the rounding of motion blur, the zoom of snow, the scale of frost, the
elastic transform) or draws inside compiled code (glass blur), the script's steps are written out below. Shot and
impulse noise draw in another way: there the mean and the deviation of the change are compared.

Each share is the least over the five severities of 200 test images; each time is one run.
Measured 2026-11-15 on one core of an Intel Xeon Processor @ 2.80GHz, torch 2.13.0, imagecorruptions-imaug 1.1.5,
opencv-python 5.0.0.93, scikit-image 0.26.0, scipy 1.17.1, pillow 13.0.0: every share above its floor, 2.1 minutes;
benchmarks/results/ has the record.

    pip install imagecorruptions-imaug    # brings opencv-python, scikit-image and numba
    python benchmarks/corruptions.py [--quick] [--json]

Without that package, and with --quick, the times alone are measured.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.util
import json
import sys
import time
import types
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import ndimage

from teeter.data import CORRUPTIONS, PACKAGES, SEVERITIES, cifar10, corrupted, fetch
from teeter.data.corruptions import Draws
from teeter.runs import provenance

FLOORS = {name: 0.998 for name in CORRUPTIONS if name not in ("shot_noise", "impulse_noise")}
FLOORS |= {"contrast": 1.0, "pixelate": 1.0, "jpeg_compression": 1.0}
FLOORS |= {"defocus_blur": 0.96, "brightness": 0.96, "glass_blur": 0.96, "saturate": 0.92}
MINUTES = 5
RIVALS = ("imagecorruptions-imaug", "opencv-python", "scikit-image", "scipy", "pillow", "numpy")
SEED = 0

Reference = Callable[[np.ndarray, int, Draws], np.ndarray]  # an image (32, 32, 3), a severity, its random numbers


def to_bytes(values: Any) -> np.ndarray:
    """As numpy cuts them off."""
    return np.asarray(values).astype(np.uint8)


class Drawn:
    """numpy, but for its random numbers, which are handed out in the order in which they are asked for."""

    def __init__(self, normal: list[np.ndarray], uniform: list[np.ndarray]) -> None:
        self.random = types.SimpleNamespace(
            normal=lambda size, loc=0.0, scale=1.0: normal.pop(0).reshape(size) * scale + loc,
            uniform=lambda low, high, size=None: uniform.pop(0) * (high - low) + low,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@functools.cache
def package() -> types.ModuleType:
    """imagecorruptions' definitions with other constants: `c = [...][severity - 1]` becomes `c = SEVERITIES[...]`."""
    found = importlib.util.find_spec("imagecorruptions.corruptions")
    assert found is not None and found.origin is not None
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in CORRUPTIONS:
            for line in function.body:
                if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "c":
                    line.value = ast.parse(f"_constants('{function.name}', severity)", mode="eval").body
    module = types.ModuleType("imagecorruptions_at_32_pixels")
    exec(compile(ast.fix_missing_locations(tree), "imagecorruptions", "exec"), module.__dict__)
    module.__dict__["_constants"] = lambda name, severity: (
        np.arange(1, *SEVERITIES[name][severity - 1]) if name == "zoom_blur" else SEVERITIES[name][severity - 1]
    )
    return module


def by_package(name: str, image: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    from PIL import Image

    module = package()
    normal: list[np.ndarray] = []
    uniform: list[np.ndarray] = []
    if name in ("gaussian_noise", "speckle_noise"):
        normal.append(draws.normal(0, 3, 32, 32)[0].movedim(0, -1).numpy())
    if name == "spatter":
        normal.append(draws.normal(0, 32, 32)[0].numpy())
    if name == "fog":
        uniform += [part.numpy() for scale in range(5) for part in draws.uniform(scale, 3, 2**scale, 2**scale)[0]]
    module.__dict__["np"] = np if name in ("shot_noise", "impulse_noise") else Drawn(normal, uniform)
    return to_bytes(getattr(module, name)(Image.fromarray(image), severity=severity))


def motion_blur(image: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """By ImageMagick's kernel as the package writes it out, rounded as there."""
    package().__dict__["np"] = np
    angle = float(draws.uniform(0)) * 90 - 45
    blurred = package()._motion_blur(image.astype(float), *SEVERITIES["motion_blur"][severity - 1], angle)
    return to_bytes(np.floor(blurred + 0.5))


def zoomed(values: np.ndarray, factor: float) -> np.ndarray:
    kept = int(np.ceil(32 / factor))
    top = (32 - kept) // 2
    large: Any = ndimage.zoom(values[top : top + kept, top : top + kept], factor, order=1)
    trim = (len(large) - 32) // 2
    return large[trim : trim + 32, trim : trim + 32]


def snow(image: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    import cv2  # pyright: ignore[reportMissingImports]

    package().__dict__["np"] = np
    mean, deviation, size, threshold, radius, sigma, kept = SEVERITIES["snow"][severity - 1]
    flakes = zoomed(mean + deviation * draws.normal(0, 32, 32)[0].numpy(), size)
    flakes[flakes < threshold] = 0
    angle = float(draws.uniform(1)) * 90 - 135
    fallen = package()._motion_blur(np.floor(np.clip(flakes, 0, 1) * 255), radius, sigma, angle)
    fallen = (np.floor(fallen + 0.5) / 255)[..., None]
    x = image.astype(np.float32) / 255
    grey = cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None]
    x = kept * x + (1 - kept) * np.maximum(x, grey * 1.5 + 0.5)
    return to_bytes(np.clip(x + fallen + np.rot90(fallen, 2), 0, 1) * 255)


@functools.cache
def ice(number: int) -> np.ndarray:
    import cv2  # pyright: ignore[reportMissingImports]

    name = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")[number]
    picture = cv2.imread(str(fetch(PACKAGES["frost"]) / "imagecorruptions" / "frost" / name))
    return cv2.resize(picture, (0, 0), fx=0.2, fy=0.2)[..., ::-1]


def frost(image: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    own, share = SEVERITIES["frost"][severity - 1]
    picture = ice(int(draws.integers(5, 0)))
    top, left = (int(float(draws.uniform(1 + axis)) * (picture.shape[axis] - 32)) for axis in (0, 1))
    return to_bytes(np.clip(own * image + share * picture[top : top + 32, left : left + 32], 0, 255))


def elastic_transform(image: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    import cv2  # pyright: ignore[reportMissingImports]
    from skimage.filters import gaussian  # pyright: ignore[reportMissingImports]

    amount, sigma, reach = (32 * part for part in SEVERITIES["elastic_transform"][severity - 1])
    corners = np.array([[26, 26], [26, 6], [6, 6]], dtype=np.float32)
    moved = corners + (2 * draws.uniform(0, 3, 2)[0].numpy() - 1) * reach
    matrix = cv2.getAffineTransform(corners, moved.astype(np.float32))
    turned = cv2.warpAffine(image.astype(np.float32) / 255, matrix, (32, 32), borderMode=cv2.BORDER_REFLECT_101)
    noise = 2 * draws.uniform(1, 2, 32, 32)[0].numpy() - 1
    across, down = (amount * gaussian(part, sigma, mode="reflect", truncate=3) if sigma else 0 * part for part in noise)
    row, column, channel = np.mgrid[:32, :32, :3]
    place = row + down[..., None], column + across[..., None], channel
    return to_bytes(np.clip(ndimage.map_coordinates(turned, place, order=1, mode="reflect"), 0, 1) * 255)


def glass_blur(image: np.ndarray, severity: int, draws: Draws, swap: bool = False) -> np.ndarray:
    """As published, where the exchange of two views only copies; or with a true swap."""
    from skimage.filters import gaussian  # pyright: ignore[reportMissingImports]

    sigma, reach, passes = SEVERITIES["glass_blur"][severity - 1]
    x = to_bytes(gaussian(image / 255, sigma=sigma, channel_axis=-1) * 255)
    for turn in range(passes):
        up, left = draws.integers(2, turn, 2, 32, 32)[0].numpy()
        for row in range(32 - reach, reach, -1):
            for column in range(32 - reach, reach, -1):
                other = row - up[row, column], column - left[row, column]
                kept = x[row, column].copy() if swap else x[row, column]
                x[row, column], x[other] = x[other], kept
    return to_bytes(np.clip(gaussian(x / 255, sigma=sigma, channel_axis=-1), 0, 1) * 255)


WRITTEN_OUT: dict[str, Reference] = {
    "motion_blur": motion_blur,
    "snow": snow,
    "frost": frost,
    "elastic_transform": elastic_transform,
    "glass_blur": glass_blur,
}


def sides(name: str, images: torch.Tensor, severity: int) -> tuple[np.ndarray, np.ndarray]:
    """Theirs and ours, as whole numbers of shape (images, 32, 32, 3)."""
    call = WRITTEN_OUT.get(name) or functools.partial(by_package, name)
    pixels = images.movedim(1, -1).numpy()
    each = [Draws(SEED, name, severity, torch.tensor([i])) for i in range(len(images))]
    theirs = np.stack([call(image.copy(), severity, draws) for image, draws in zip(pixels, each, strict=True)])
    ours = corrupted(images, name, severity, SEED).movedim(1, -1).numpy()
    return theirs.astype(int), ours.astype(int)


def agreement(name: str, images: torch.Tensor) -> dict[str, Any]:
    """The worst of the five severities: shares of the same byte and of those off by one at most, largest distance."""
    apart = [np.abs(theirs - ours) for theirs, ours in (sides(name, images, severity) for severity in range(1, 6))]
    return {
        "same": min(float((part == 0).mean()) for part in apart),
        "within_one": min(float((part <= 1).mean()) for part in apart),
        "furthest": max(int(part.max()) for part in apart),
    }


def moments(name: str, images: torch.Tensor) -> dict[str, Any]:
    """Mean and deviation of the change at each severity, theirs and ours."""
    np.random.seed(SEED)  # the package has no argument for it
    clean = images.movedim(1, -1).numpy().astype(int)
    rows = [[part - clean for part in sides(name, images, severity)] for severity in range(1, 6)]
    facts = {"mean": np.mean, "std": np.std}
    return {
        f"{side}_{fact}": [round(float(call(row[place])), 3) for row in rows]
        for place, side in enumerate(("their", "our"))
        for fact, call in facts.items()
    }


def true_swaps(images: torch.Tensor) -> float:
    """How much larger the mean squared change of glass blur at severity 1 would be with true swaps."""
    clean = images.movedim(1, -1).numpy()
    squares = {True: 0.0, False: 0.0}
    for i, image in enumerate(clean):
        for swap in squares:
            draws = Draws(SEED, "glass_blur", 1, torch.tensor([i]))
            squares[swap] += float(np.square(glass_blur(image.copy(), 1, draws, swap).astype(int) - image).mean())
    return squares[True] / squares[False]


def seconds(images: torch.Tensor) -> dict[str, float]:
    """One core's time for 10,000 images at five severities, in proportion."""
    torch.set_num_threads(1)
    times: dict[str, float] = {}
    for name in CORRUPTIONS:
        corrupted(images[:10], name, 1)  # tables and pictures that are made once
        start = time.process_time()
        for severity in range(1, 6):
            corrupted(images, name, severity, SEED)
        times[name] = (time.process_time() - start) * 10_000 / len(images)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the times alone, of 200 images: under a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    given = parser.parse_args()
    images = cifar10("test").images
    few = images[:200].contiguous()
    times = seconds(few if given.quick else images[:2000].contiguous())
    report: dict[str, Any] = {"minutes": sum(times.values()) / 60, "seconds": times, "quick": given.quick}
    missing = [
        name for name in ("imagecorruptions", "cv2", "skimage", "numba") if importlib.util.find_spec(name) is None
    ]
    if missing and not given.quick:
        print(
            f"no {', '.join(missing)}: pip install imagecorruptions-imaug, to compare; only times here", file=sys.stderr
        )
    if not missing and not given.quick:
        warnings.simplefilter("ignore")  # theirs
        found = {name: agreement(name, few) for name in FLOORS}
        report |= {name: part["same"] for name, part in found.items()}
        report |= {"agreement": found, "images": len(few), "true_swaps": true_swaps(few)}
        report["moments"] = {name: moments(name, few) for name in ("shot_noise", "impulse_noise")}
        report["rivals"] = {name: version(name) for name in RIVALS}
    report["provenance"] = provenance.capture()
    if given.json:
        print(json.dumps(report, indent=1))
        return
    print(
        f"all 19 at five severities of 10,000 images: {report['minutes']:.1f} min on a core (claim: at most {MINUTES})"
    )
    for name, part in report.get("agreement", {}).items():
        words = f"within one {part['within_one']:.3%}, furthest {part['furthest']}"
        print(f"{name}: the same {part['same']:.3%} (claim: at least {FLOORS[name]:.1%}); {words}")
    for name, part in report.get("moments", {}).items():
        print(f"{name}: {part}")
    if "true_swaps" in report:
        print(f"glass blur with true swaps would change {report['true_swaps']:.2f} times as much")
    print(f"{report['provenance']}", file=sys.stderr)


if __name__ == "__main__":
    main()
