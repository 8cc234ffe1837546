"""Pictures in files, through pillow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from teeter.errors import InputError

__all__ = ["pillow", "read_picture"]


def pillow() -> ModuleType:
    """PIL.Image, or what to do about its absence."""
    try:
        from PIL import Image
    except ImportError:
        raise InputError("JPEG and frost need pillow: pip install 'teeter[images]'") from None
    return Image


def read_picture(path: Path) -> Tensor:
    """The red, green and blue of a picture, as bytes of shape (3, height, width)."""
    with pillow().open(path) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB"))).movedim(-1, 0)
