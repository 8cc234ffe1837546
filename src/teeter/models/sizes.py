"""Which sizes of networks, images and rates make sense; every model asks here before it is built or run."""

from __future__ import annotations

from torch import Tensor

from teeter.errors import InputError

__all__ = ["check_heads", "check_images", "check_rates", "check_sizes", "patches_across"]


def check_sizes(**sizes: int) -> None:
    """Every size is a whole number of at least 1.

    >>> check_sizes(layers=8, heads=32)
    >>> check_sizes(layers=0)
    Traceback (most recent call last):
    teeter.errors.InputError: layers is a whole number of at least 1, got 0
    """
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"{name} is a whole number of at least 1, got {size!r}")


def check_rates(**rates: float) -> None:
    """Every rate of dropout is a number of at least 0 and below 1.

    >>> check_rates(dropout=0.1)
    >>> check_rates(dropout=2)
    Traceback (most recent call last):
    teeter.errors.InputError: dropout is a rate of at least 0 and below 1, got 2
    """
    for name, rate in rates.items():
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise InputError(f"{name} is a rate of at least 0 and below 1, got {rate!r}")


def check_heads(dim: int, heads: int) -> None:
    """Heads share the dimension evenly, where each has dim / heads of it.

    >>> check_heads(dim=128, heads=2)
    """
    check_sizes(dim=dim, heads=heads)
    if dim % heads:
        raise InputError(f"heads divide the dimension evenly, got dim = {dim} and heads = {heads}")


def patches_across(image_size: int, patch: int) -> int:
    """How many patches stand side by side in an image.

    >>> patches_across(32, 4)
    8
    """
    check_sizes(image_size=image_size, patch=patch)
    if image_size % patch:
        fitting = [p for p in range(1, image_size + 1) if image_size % p == 0]
        raise InputError(
            f"patches of {patch} x {patch} do not divide images of {image_size} x {image_size}: take one of {fitting}"
        )
    return image_size // patch


def check_images(images: Tensor, channels: int, image_size: int | None = None) -> None:
    """Images are (batch, channels, height, width), and square of the given size where one is given."""
    size = ("height", "width") if image_size is None else (image_size, image_size)
    given = tuple(images.shape)
    if len(given) != 4 or given[1] != channels or (image_size is not None and given[2:] != size):
        wanted = ", ".join(str(part) for part in ("batch", channels, *size))
        raise InputError(f"this model was built for images of shape ({wanted}), got {given}")
