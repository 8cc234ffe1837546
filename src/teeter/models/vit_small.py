"""ViT-small: a vision transformer for small data sets, with shifted patches and locality self-attention.

Lee, Lee & Song (2021, Vision Transformer for Small-Size Datasets), in the version of the vit-pytorch library that V
names in appendix D. It serves V section 5 (CIFAR-10, Fashion-MNIST), section 7 (robustness, sharpness) and appendix A
(MNIST, SVHN, depths and heads). The defaults are V's for CIFAR-10: 4,482,482 parameters.

    setting         image      patch   layers   heads   width   classes
    CIFAR-10        3 x 32^2   4       8        32      256     10
    SVHN            3 x 32^2   4       8        32      512     10
    Fashion-MNIST   1 x 28^2   4       2        8       256     10
    MNIST, < 5      1 x 28^2   7       2        1       128     2

V gives neither the dimension nor that of a head; 64 and 64, in all settings, are those whose CIFAR-10 model has the
count above.

Departures. Lee et al. shift by half a patch along the diagonals and learn a temperature for each head; the library
shifts by one pixel along the axes and learns one temperature for a layer, and so does this file. V's text names no
dropout for images, so there is none here; the released script sets both rates to 0.1. ReLU attention is V's of
section 6: the softmax of Eq. 3 becomes an elementwise ReLU, without any normalisation over keys, in the text as in the
release. V reports no ViT with it, though its released script has a switch for one.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.constants import constant
from teeter.models.patches import cut
from teeter.models.relu_attention import relu_attention
from teeter.models.sizes import check_images, check_rates, check_sizes, patches_across
from teeter.models.vit_block import VisionBlock, dropout_layer
from teeter.models.wide_attention import is_wide, wide_attention

__all__ = ["LocalityAttention", "ShiftedPatches", "ViTSmall"]

Kind = Literal["softmax", "relu"]


class ShiftedPatches(nn.Module):
    """Shifted patch tokens: every patch is cut from the image and from its four shifts by one pixel, laid one upon the
    other as channels; then a LayerNorm and a linear map.

    A token therefore also sees the pixels that touch its patch from the left, right, above and below (those outside
    the image are 0), and the pixels of one patch are seen by its own token and by those of its neighbours along the
    axes: five tokens inside the image, four at an edge, three in a corner.

    >>> ShiftedPatches(channels=3, patch=4, dim=64)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64, 64])
    """

    SHIFTS = ((1, -1, 0, 0), (-1, 1, 0, 0), (0, 0, 1, -1), (0, 0, -1, 1))  # right, left, down, up

    def __init__(self, *, channels: int, patch: int, dim: int) -> None:
        super().__init__()
        check_sizes(channels=channels, patch=patch, dim=dim)
        self.patch = patch
        pixels = (1 + len(self.SHIFTS)) * channels * patch * patch
        self.norm, self.embed = nn.LayerNorm(pixels), nn.Linear(pixels, dim)

    def forward(self, images: Tensor) -> Tensor:
        shifted = [F.pad(images, shift) for shift in self.SHIFTS]
        return self.embed(self.norm(cut(torch.cat([images, *shifted], 1), self.patch)))


@constant
def _not_itself(tokens: int, device: torch.device) -> Tensor:
    """What is added to the scores of every token with all others and with itself."""
    return torch.zeros(tokens, tokens, device=device).fill_diagonal_(-math.inf)


class LocalityAttention(nn.Module):
    """Self-attention with a learned temperature, in which no token attends to itself.

    With queries q, keys k and values v of the normalised input, token i of a head gets
    sum over j != i of phi(exp(temperature) <q_i, k_j>) v_j, where phi is a softmax over those j, or a ReLU of each
    score by itself. exp(temperature) starts at 1 / sqrt(dim_head).

    >>> LocalityAttention(dim=8, heads=2, dim_head=4)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        dim_head: int,
        attention: Kind = "softmax",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(dim=dim, heads=heads, dim_head=dim_head)
        check_rates(dropout=dropout)
        if attention not in ("softmax", "relu"):
            raise InputError(f"attention is 'softmax' or 'relu', got {attention!r}")
        self.heads, self.attention, self.dropout = heads, attention, dropout
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.out = nn.Linear(heads * dim_head, dim)
        self.temperature = nn.Parameter(torch.tensor(-0.5 * math.log(dim_head)))

    def forward(self, x: Tensor) -> Tensor:
        z, scale, mask = self.norm(x), self.temperature.exp(), _not_itself(x.shape[1], like=x)
        relu, dropout = self.attention == "relu", self.dropout if self.training else 0.0
        if is_wide(self.qkv, self.out, self.heads, x.shape[1]):
            return wide_attention(z, self.qkv, self.out, self.heads, scale, mask=mask, relu=relu, dropout=dropout)
        q, k, v = self.qkv(z).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if relu:
            mixed, _ = relu_attention(q * scale, k, v, mask == 0, scaling=1.0, dropout=dropout)
        else:
            mixed = F.scaled_dot_product_attention(q * scale, k, v, attn_mask=mask, dropout_p=dropout, scale=1.0)
        return self.out(mixed.transpose(1, 2).flatten(2))


class ViTSmall(nn.Module):
    """Shifted patches, a class token, learned positions, blocks of locality attention; the class token is read.

    >>> model = ViTSmall()
    >>> sum(weight.numel() for weight in model.parameters())
    4482482
    >>> ViTSmall(image_size=28, channels=1, layers=2, heads=8)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch: int = 4,
        dim: int = 64,
        layers: int = 8,
        heads: int = 32,
        dim_head: int = 64,
        width: int = 256,
        attention: Kind = "softmax",
        dropout: float = 0.0,
        embedding_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(classes=classes, layers=layers, width=width)
        check_rates(dropout=dropout, embedding_dropout=embedding_dropout)
        tokens = 1 + patches_across(image_size, patch) ** 2
        self.image_size, self.channels = image_size, channels
        self.embed = ShiftedPatches(channels=channels, patch=patch, dim=dim)
        self.place = nn.Parameter(torch.randn(tokens, dim))
        self.reader = nn.Parameter(torch.randn(dim))  # the class token
        self.drop = dropout_layer(embedding_dropout)
        attentions = (
            LocalityAttention(dim=dim, heads=heads, dim_head=dim_head, attention=attention, dropout=dropout)
            for _ in range(layers)
        )
        self.blocks = nn.Sequential(
            *(VisionBlock(attend, dim=dim, width=width, dropout=dropout) for attend in attentions)
        )
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, images: Tensor) -> Tensor:
        check_images(images, self.channels, self.image_size)
        patches = self.embed(images)
        reader = self.reader.expand(len(patches), 1, -1)
        x = self.drop(torch.cat([reader, patches], 1) + self.place)
        return self.head(self.norm(self.blocks(x)[:, 0]))
