"""Images cut into the tokens of a vision transformer (V Definition 5.1)."""

from __future__ import annotations

from torch import Tensor

__all__ = ["cut"]


def cut(images: Tensor, patch: int) -> Tensor:
    """(batch, channels, height, width) to (batch, tokens, patch * patch * channels).

    Token 0 is the top left patch, then across, then down; within a token, rows, then columns, then channels.

    >>> import torch
    >>> cut(torch.arange(16).view(1, 1, 4, 4), 2)[0]
    tensor([[ 0,  1,  4,  5],
            [ 2,  3,  6,  7],
            [ 8,  9, 12, 13],
            [10, 11, 14, 15]])
    """
    grid = images.unflatten(3, (-1, patch)).unflatten(2, (-1, patch))  # batch, channels, down, row, across, column
    return grid.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
