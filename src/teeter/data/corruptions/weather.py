"""Corruptions by weather: snow, frost, fog. (Brightness, which their authors count among them, is in colour.py.)"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from teeter.data.corruptions.blur import swept
from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.linear import on_grid, to_bytes, zoom_matrix
from teeter.data.packages import fetch, reading
from teeter.data.pictures import pillow, read_picture
from teeter.data.pinned import PACKAGES

__all__ = ["fog", "frost", "snow"]

_FROST = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def snow(images: Tensor, constants: tuple[float, ...], draws: Draws) -> Tensor:
    """Whiter colours, and flakes that fall at one slant over each image, seen twice: as drawn and upside down.

    Flakes are what exceeds a threshold in magnified Gaussian noise, swept downwards.
    """
    mean, deviation, size, threshold, radius, sigma, kept = constants
    side = images.shape[-1]
    flakes = on_grid(mean + deviation * draws.normal(0, 1, side, side), 16)
    larger = zoom_matrix(size, side, bits=16)
    flakes = larger @ flakes @ larger.T
    flakes = torch.where(flakes < threshold, 0, flakes)
    fallen = swept(to_bytes(flakes * 255), int(radius), sigma, draws.uniform(1) * 90 - 135).double()
    pixels = images.double()
    red, green, blue = pixels.unbind(1)
    grey = (0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(1)
    whiter = kept * pixels + (1 - kept) * torch.maximum(pixels, 1.5 * grey + 127.5)
    return to_bytes(whiter + fallen + fallen.flip(-1, -2))


def frost(images: Tensor, constants: tuple[float, float], draws: Draws) -> Tensor:
    """a * image + b * ice, where the ice is a random piece of one of five photographs.

    A sixth photograph lies beside them, but the published code draws from the first five alone. It shrinks them to a
    fifth by linear interpolation, which at this factor is every fifth pixel.
    """
    own, ice = constants
    side = images.shape[-1]
    pictures = _ice()
    which = draws.integers(len(pictures), 0)
    pieces = torch.empty_like(images)
    for number, picture in enumerate(pictures):
        mine = which == number
        # The last place of all is never drawn, as published.
        top, left = ((draws.uniform(1 + axis)[mine] * (picture.shape[1 + axis] - side)).long() for axis in (0, 1))
        every = picture.unfold(1, side, 1).unfold(2, side, 1)  # (3, top, left, side, side), without a copy
        pieces[mine] = every[:, top, left].movedim(1, 0)
    return to_bytes(own * images.double() + ice * pieces.double())


@cache
def _ice() -> tuple[Tensor, ...]:
    """The photographs at a fifth of their size, as bytes of shape (3, height, width)."""
    pillow("the photographs of frost")
    folder = fetch(PACKAGES["frost"])
    shrunk = []
    for name in _FROST:
        with reading(folder, f"imagecorruptions/frost/{name}") as file:
            picture = read_picture(file)
        height, width = (round(size / 5) for size in picture.shape[1:])
        shrunk.append(picture[:, 2::5, 2::5][:, :height, :width].contiguous())
    return tuple(shrunk)


def fog(images: Tensor, constants: tuple[float, float], draws: Draws) -> Tensor:
    """(image + amount * plasma) * brightest / (brightest + amount), so that the brightest pixel stays what it was."""
    amount, decay = constants
    pixels = images.double()
    brightest = pixels.amax((1, 2, 3), keepdim=True)
    thick = 255 * amount
    hazy = pixels + thick * _plasma(draws, images.shape[-1], decay).unsqueeze(1)
    return to_bytes(hazy * (brightest / (brightest + thick)))


def _plasma(draws: Draws, side: int, decay: float) -> Tensor:
    """Heights from 0 to 1 of shape (images, side, side) by the diamond-square algorithm on a torus.

    Every new point is the mean of its four neighbours and a uniform number from -w^2 to w^2, where w is 100 and divided
    by `decay` from scale to scale.
    """
    heights = torch.zeros(len(draws.image), side, side, dtype=torch.float64)
    step, amplitude, purpose = side, 100.0**2, 0
    while step >= 2:
        half, cells = step // 2, side // step
        wobble = (2 * draws.uniform(purpose, 3, cells, cells) - 1) * amplitude
        corners = heights[:, ::step, ::step].clone()
        right, below = corners.roll(-1, 2), corners.roll(-1, 1)
        centres = (corners + right + below + right.roll(-1, 1)) / 4 + wobble[:, 0]
        heights[:, half::step, half::step] = centres
        heights[:, ::step, half::step] = (corners + right + centres + centres.roll(1, 1)) / 4 + wobble[:, 1]
        heights[:, half::step, ::step] = (corners + below + centres + centres.roll(1, 2)) / 4 + wobble[:, 2]
        step, amplitude, purpose = half, amplitude / decay**2, purpose + 1
    heights -= heights.amin((1, 2), keepdim=True)
    return heights / heights.amax((1, 2), keepdim=True)
