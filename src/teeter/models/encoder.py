"""H's transformer encoder on bits (H sections 2 and 7.1, Table 1 in E.1; Figures 1 to 10 and 12 to 15).

Token and position vectors, layers of attention and ReLU networks, a linear head on the last position. Table 1 has
dimension 128, 2 layers, 2 heads and dropout 0; the long inputs of Figures 7 and 8 have dimension 4.

The text adds token and position vectors, which is our default; the released code joins two halves
(`positions="concatenate"`). That the feed-forward width equals the dimension stands only in the released code: torch's
own default would be 2048. In H's theory a layer normalises once, in H's experiments twice, as torch does, and so here.
torch's encoder makes its layers as copies of one, so H's runs all began with equal layers: `same_start`.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.block import Attention, Block, Norm, copy_first
from teeter.models.embedding import Positions, SequenceEmbedding, token_numbers
from teeter.models.sizes import check_sizes
from teeter.models.watched import unwatched

__all__ = ["Encoder", "Read"]

Read = Literal["last", "mean"]
_PARTS = (Block, Attention, nn.LayerNorm, nn.Linear)  # of a layer as it was made


class Encoder(nn.Module):
    """A scalar for each row of bits: (batch, n) of ±1 to (batch,).

    `length` is the largest n the model can read, as each position has a vector of its own; H trains a model for each n
    with length = n. A shorter input uses the first positions and is read out at its own last one. With `norm="pre"`
    there is one more LayerNorm before the head, without which the head would read a sum that is never normalised. With
    `read="mean"` the head reads the mean of all positions in the place of the last; with `all_positions`, which passes
    over that, each of them: (batch, n).

    >>> import torch
    >>> from teeter import cube
    >>> _ = torch.manual_seed(0)
    >>> model = Encoder(length=4, dim=8)
    >>> cube.truth_table(model, 4).shape, model(torch.tensor([[1, -1], [1, 1]])).shape
    (torch.Size([16]), torch.Size([2]))
    """

    causal = False  # whether positions are blind to later ones

    def __init__(
        self,
        *,
        length: int = 30,
        dim: int = 128,
        layers: int = 2,
        heads: int = 2,
        width: int | None = None,
        positions: Positions = "sum",
        norm: Norm = "post",
        same_start: bool = True,
        read: Read = "last",
    ) -> None:
        super().__init__()
        check_sizes(layers=layers)
        if read not in ("last", "mean"):
            raise InputError(f"the answer is read at the 'last' position or at the 'mean' of all, got '{read}'")
        self.read: Read = read
        self.embedding = SequenceEmbedding(vocabulary=2, length=length, dim=dim, positions=positions)
        self.layers = nn.ModuleList(Block(dim, heads, dim if width is None else width, norm) for _ in range(layers))
        if same_start:
            copy_first(self.layers)
        self.norm = nn.LayerNorm(dim) if norm == "pre" else nn.Identity()
        self.head = nn.Linear(dim, 1)

    def forward(self, bits: Tensor, all_positions: bool = False) -> Tensor:
        x = self.embedding(token_numbers(bits))
        layers = list(self.layers)
        # Where the last position alone is read, the last layer is computed there alone, unless somebody looks into it.
        last = self.read == "last" and not all_positions
        final = layers.pop() if last and layers and unwatched(*layers[-1].modules(), made_of=_PARTS) else None
        for layer in layers:
            x = layer(x, causal=self.causal)
        if final is not None:
            x = final(x, last=True)
        if self.read == "mean" and not all_positions:
            return self.head(self.norm(x).mean(1)).squeeze(-1)
        return self.head(self.norm(x if all_positions else x[:, -1])).squeeze(-1)
