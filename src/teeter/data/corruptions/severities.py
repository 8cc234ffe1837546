"""What each corruption is told at severities 1 to 5, for images of 32 x 32.

All of them are the constants of the script that made CIFAR-10-C (Hendrycks and Dietterich, Benchmarking neural network
robustness to common corruptions and perturbations, ICLR 2019, arXiv 1903.12261; `make_cifar_c.py` of their
repository), those of the four extra corruptions included. None is a guess. ImageNet-C's constants are others.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SEVERITIES"]

SEVERITIES: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    # standard deviation, of pixels from 0 to 1
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    # photons that make a white pixel
    "shot_noise": (500, 250, 100, 75, 50),
    # part of all values that turns black or white
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),
    # radius of the disk, standard deviation of its soft edge
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    # standard deviation of the blur, reach of a move, how often
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    # radius, standard deviation
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    # factors from 1 up to this one, step
    "zoom_blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    # mean and standard deviation of the flakes, their size, threshold, radius and deviation of the fall, share kept
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    # weight of the image, weight of the ice
    "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    # amount, decay of the heights from scale to scale
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    # added to the value of HSV
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
    # kept of the distance from the mean
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
    # displacement, standard deviation of its smoothing, reach of the affine part: in parts of the side
    "elastic_transform": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    # side of the small image, in parts of the side
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
    # quality
    "jpeg_compression": (80, 65, 58, 50, 40),
    # standard deviation, in pixels
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1),
    # standard deviation, in parts of the pixel
    "speckle_noise": (0.06, 0.1, 0.12, 0.16, 0.2),
    # mean and standard deviation of the liquid, its smoothing, threshold, then: 0 for water and its strength,
    # or 1 for mud and the smoothing of its edge
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    # factor and addend of the saturation of HSV
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
}
