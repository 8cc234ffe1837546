"""SVHN (Netzer et al. 2011): house numbers of 32 x 32, which V Appendix A.3 trains on.

No package registry has it. Its files `train_32x32.mat`, `test_32x32.mat` and `extra_32x32.mat` (73,257, 26,032 and
531,131 digits) go into `svhn` or `SVHN` in the folder that TEETER_DATA names, or into that folder itself, as
torchvision leaves them. `svhn/train.npz` and its like (see `from_arrays`) are read as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from teeter.data.environment import data_folder
from teeter.data.labelled import LabelledImages, array_file, from_arrays, read_as
from teeter.data.own import absent, owned
from teeter.errors import InputError, UnknownName

__all__ = ["own_svhn", "svhn"]

_SPLITS = ("train", "test", "extra")
_DIGITS = tuple("0123456789")


def svhn(split: str = "train") -> LabelledImages:
    """The cropped digits to train on, to test, or the easier extra ones; class i is the digit i.

    The files say 10 for the digit 0, as Matlab counts.
    """
    if split not in _SPLITS:
        raise UnknownName("split", split, _SPLITS)
    place = own_svhn(split)
    if place is not None and place.suffix == ".mat":
        return _from_mat(place)
    known = None if place is None else from_arrays(place.parent, split, _DIGITS, shape=(32, 32, 3))
    if known is None:
        raise absent("SVHN", f"{split}_32x32.mat", "svhn")
    return known


def own_svhn(split: str) -> Path | None:
    """The Matlab file, or else the file of arrays, that the user has."""
    file = f"{split}_32x32.mat"
    if (place := owned((f"svhn/{file}", f"SVHN/{file}", file))) is not None:
        return place
    return None if (root := data_folder()) is None else array_file(root / "svhn", split)


def _from_mat(place: Path) -> LabelledImages:
    from scipy.io import loadmat

    try:
        arrays: dict[str, Any] = loadmat(place, variable_names=("X", "y"))
        pixels, digits = np.asarray(arrays["X"]), np.asarray(arrays["y"]).ravel()
    except KeyError as name:
        raise InputError(f"{place} holds no {name}: SVHN's files hold images as 'X' and digits as 'y'") from None
    except Exception as problem:  # what a damaged file raises depends on where
        raise InputError(f"{place} is damaged or no Matlab file ({problem}): fetch it again") from None
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[:3] != (32, 32, 3):
        raise InputError(
            f"{place} holds bytes of shape (32, 32, 3, images) as SVHN, got {pixels.dtype} {pixels.shape}: "
            f"take the version of cropped digits"
        )
    if digits.dtype.kind not in "iuf":
        raise InputError(f"{place} holds whole numbers as 'y', the digits, got {digits.dtype}")
    outside = digits[~np.isin(digits, np.arange(1, 11))]
    if len(outside):
        raise InputError(f"{place} counts digits from 1 to 10, which stands for 0, got {outside[0]}")
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)))
    return read_as(place, images, torch.from_numpy(digits.astype(np.int64) % 10), _DIGITS)
