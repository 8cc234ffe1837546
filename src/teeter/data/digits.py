"""scikit-learn's digits: 1,797 of 8 x 8, inside the package itself. Small enough for tests and examples."""

from __future__ import annotations

import torch

from teeter.data.labelled import LabelledImages
from teeter.errors import MissingExtra, UnknownName

__all__ = ["digits"]

_SPLITS = {"all": slice(None), "train": slice(0, 1437), "test": slice(1437, None)}


def digits(split: str = "all") -> LabelledImages:
    """Alpaydin and Kaynak's handwritten digits (1998, the UCI set's part for tests); values 0..16 become 0..255.

    They come undivided; `train` is the first 1,437 of them and `test` the last 360.

    >>> digits().images.shape, digits("test").labels[:5].tolist()
    (torch.Size([1797, 1, 8, 8]), [2, 3, 4, 5, 6])
    """
    if split not in _SPLITS:
        raise UnknownName("split", split, _SPLITS)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("scikit-learn holds the digits and is not installed: pip install 'teeter[images]'") from None
    values, labels = load_digits(return_X_y=True)
    pixels = (torch.from_numpy(values) * (255 / 16)).round().to(torch.uint8).view(-1, 1, 8, 8)
    chosen = _SPLITS[split]
    return LabelledImages(pixels[chosen], torch.from_numpy(labels).long()[chosen], tuple("0123456789"))
