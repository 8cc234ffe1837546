"""ViT-simple: plain patches, fixed sine and cosine positions, mean pooling, no class token and no dropout.

Beyer, Zhai & Kolesnikov (2022, Better plain ViT baselines for ImageNet-1k), as in the vit-pytorch library that V names
in appendix D. It serves V section 5 (CIFAR-10, Fig. 4, 16 and 17) and section 7.1 (Fig. 9). The defaults are V's:
1,975,210 parameters. V gives neither the dimension nor that of a head; 64 and 64 are those with this count.

Every patch is normalised before it becomes a token, which loses its brightness and contrast: noise much louder than the
patch does the same to the model however loud it is. V's Fig. 17 (sensitivity by variance) is to be read with this in
mind. ViT-small normalises its patches too, each together with the pixels around it.

The library put the last LayerNorm after the mean over tokens until August 2023 and before it since then. The count is
the same and V says nothing of it; this file has it before the mean, as Beyer et al. have.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.constants import constant
from teeter.models.patches import cut
from teeter.models.sizes import check_images, check_sizes, patches_across
from teeter.models.vit_block import VisionBlock
from teeter.models.wide_attention import is_wide, wide_attention

__all__ = ["PlainAttention", "ViTSimple", "sine_cosine_positions"]


def sine_cosine_positions(
    across: int, dim: int, longest: float = 10_000.0, device: torch.device | None = None
) -> Tensor:
    """Positions of a grid of across x across patches: (across * across, dim).

    With the dim / 4 frequencies w_i = longest^(-i / (dim / 4 - 1)), the patch in row r and column c has
    (sin(c w), cos(c w), sin(r w), cos(r w)).

    >>> sine_cosine_positions(2, 8)[1]
    tensor([8.4147e-01, 1.0000e-04, 5.4030e-01, 1.0000e+00, 0.0000e+00, 0.0000e+00, 1.0000e+00, 1.0000e+00])
    """
    _check_grid(across, dim)
    frequencies = longest ** -torch.linspace(0, 1, dim // 4, device=device)
    steps = torch.arange(across, device=device)
    angles = [place.flatten().unsqueeze(-1) * frequencies for place in torch.meshgrid(steps, steps, indexing="xy")]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], -1)


def _check_grid(across: int, dim: int) -> None:
    check_sizes(across=across, dim=dim)
    if dim % 4 or dim < 8:
        raise InputError(f"sine and cosine positions need a dimension that 4 divides, of at least 8, got dim = {dim}")


_places = constant(sine_cosine_positions)


class PlainAttention(nn.Module):
    """Softmax self-attention of the normalised input, scaled by 1 / sqrt(dim_head), without biases.

    >>> PlainAttention(dim=8, heads=2, dim_head=4)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, *, dim: int, heads: int, dim_head: int) -> None:
        super().__init__()
        check_sizes(dim=dim, heads=heads, dim_head=dim_head)
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        z = self.norm(x)
        if is_wide(self.qkv, self.out, self.heads, x.shape[1]):
            return wide_attention(z, self.qkv, self.out, self.heads, (self.out.in_features // self.heads) ** -0.5)
        q, k, v = self.qkv(z).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class ViTSimple(nn.Module):
    """Patches, fixed positions, blocks, a LayerNorm, the mean over tokens, a linear head.

    >>> model = ViTSimple()
    >>> sum(weight.numel() for weight in model.parameters())
    1975210
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch: int = 4,
        dim: int = 64,
        layers: int = 6,
        heads: int = 16,
        dim_head: int = 64,
        width: int = 512,
    ) -> None:
        super().__init__()
        check_sizes(channels=channels, classes=classes, layers=layers, width=width)
        self.across, self.dim = patches_across(image_size, patch), dim
        _check_grid(self.across, dim)
        self.image_size, self.channels, self.patch = image_size, channels, patch
        pixels = channels * patch * patch
        self.embed = nn.Sequential(nn.LayerNorm(pixels), nn.Linear(pixels, dim), nn.LayerNorm(dim))
        attentions = (PlainAttention(dim=dim, heads=heads, dim_head=dim_head) for _ in range(layers))
        self.blocks = nn.Sequential(*(VisionBlock(attend, dim=dim, width=width) for attend in attentions))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, images: Tensor) -> Tensor:
        check_images(images, self.channels, self.image_size)
        x = self.embed(cut(images, self.patch))
        x = x + _places(self.across, self.dim, like=x)
        return self.head(self.norm(self.blocks(x)).mean(1))
