"""The layer that both vision transformers are made of."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["VisionBlock", "dropout_layer"]


class VisionBlock(nn.Module):
    """x + attend(x), then x + MLP(LayerNorm(x)) with one hidden layer of `width` units and GELU.

    `attend` normalises its input itself. Dropout follows the attention, the hidden layer and the MLP.
    """

    def __init__(self, attend: nn.Module, *, dim: int, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.attend, self.drop = attend, dropout_layer(dropout)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, width),
            nn.GELU(),
            dropout_layer(dropout),
            nn.Linear(width, dim),
            dropout_layer(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attend(x))
        return x + self.mlp(x)


def dropout_layer(rate: float) -> nn.Module:
    return nn.Dropout(rate) if rate else nn.Identity()  # a dropout of 0 would still ask vmap for randomness
