"""H's encoder-decoder for PARITY with intermediate steps (H sections 6 and 7.2, Theorem 7, E.1, Figure 11).

The encoder reads the bits x, the decoder writes t_1 ... t_n, where t_i = PARITY(x_1 ... x_i) follows from x_i and
t_{i-1} alone: each step has sensitivity O(1), however long the input is. E.1: dimension 32, 2 layers, 2 heads.

Steps are ±1 here, as bits are; the released code has 0 and 1 and takes an output above 0.5 as 1. As there, bits and
steps share their token and position vectors, both stacks end in one more LayerNorm (torch's Transformer has them), and
the weights of each layer are drawn by Xavier's rule. The text does not say how positions enter; the released code
concatenates, the default here is the encoder's. The released lengths are 4 to 1024 in 30 steps; there the
decoder also reads t_n, for which it has one position more, and its answer to that is thrown away.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.block import Attention, Block
from teeter.models.embedding import Positions, SequenceEmbedding, token_numbers

__all__ = ["Scratchpad"]

START = 2  # the token before the first step, after those of +1 and -1


class WritingBlock(nn.Module):
    """A decoder layer: attention to earlier steps, attention to the bits, a ReLU network; normalised after each."""

    def __init__(self, dim: int, heads: int, width: int) -> None:
        super().__init__()
        self.attention = Attention(dim, heads)
        self.norm1 = nn.LayerNorm(dim)
        self.cross = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, width)
        self.down = nn.Linear(width, dim)
        self.norm3 = nn.LayerNorm(dim)

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, causal=True))
        x = self.norm2(x + self.cross(x, source))
        return self.norm3(x + self.down(self.up(x).relu()))


class Scratchpad(nn.Module):
    """Bits (batch, n) and the first k steps (batch, k), all ±1, to outputs (batch, k + 1) for steps 1 to k + 1.

    Without steps, PARITY's own t_1 ... t_{n-1} are given, so that the answer is (batch, n): teacher forcing. `generate`
    instead writes all n steps itself. `length` is the largest n.

    >>> _ = torch.manual_seed(0)
    >>> model = Scratchpad(length=4, dim=8)
    >>> bits = torch.tensor([[1, -1, -1, 1]])
    >>> model(bits).shape, model(bits, torch.tensor([[1, -1]])).shape, model.generate(bits).shape
    (torch.Size([1, 4]), torch.Size([1, 3]), torch.Size([1, 4]))
    """

    def __init__(
        self,
        length: int = 1024,
        dim: int = 32,
        layers: int = 2,
        heads: int = 2,
        width: int | None = None,
        positions: Positions = "sum",
    ) -> None:
        super().__init__()
        if layers < 1:
            raise InputError(f"encoder and decoder have at least one layer, got {layers}")
        width = dim if width is None else width
        self.embedding = SequenceEmbedding(3, dim, length, positions)
        self.encoder = nn.ModuleList(Block(dim, heads, width) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(dim)
        self.decoder = nn.ModuleList(WritingBlock(dim, heads, width) for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)
        for name, weight in [*self.encoder.named_parameters(), *self.decoder.named_parameters()]:
            if name.endswith(("output.weight", "up.weight", "down.weight")):  # queries, keys and values already are so
                nn.init.xavier_uniform_(weight)

    def forward(self, bits: Tensor, steps: Tensor | None = None) -> Tensor:
        source = self.read(bits)
        if steps is None:
            steps = bits.cumprod(-1)[:, :-1]
        if steps.ndim != 2 or len(steps) != len(bits) or steps.shape[1] >= bits.shape[1]:
            raise InputError(
                f"steps are (batch, k) with k < n before the one that is asked for, got {tuple(steps.shape)} "
                f"for bits of {tuple(bits.shape)}"
            )
        return self.write(source, _started(steps))

    def read(self, bits: Tensor) -> Tensor:
        """What the encoder makes of the bits: (batch, n, dim)."""
        x = self.embedding(token_numbers(bits))
        for layer in self.encoder:
            x = layer(x)
        return self.encoder_norm(x)

    def write(self, source: Tensor, numbers: Tensor) -> Tensor:
        """The outputs that follow each of the tokens START, t_1, ..., t_k."""
        x = self.embedding(numbers)
        for layer in self.decoder:
            x = layer(x, source)
        return self.head(self.decoder_norm(x)).squeeze(-1)

    @torch.no_grad()
    def generate(self, bits: Tensor) -> Tensor:
        """All n steps, each from the model's own earlier ones: (batch, n) of ±1, where an output below 0 says -1."""
        source = self.read(bits)
        steps = bits[:, :0]
        for _ in range(bits.shape[1]):
            negative = self.write(source, _started(steps))[:, -1:] < 0
            steps = torch.cat([steps, (1 - 2 * negative.long()).to(bits.dtype)], -1)
        return steps


def _started(steps: Tensor) -> Tensor:
    start = torch.full((len(steps), 1), START, device=steps.device)
    return torch.cat([start, token_numbers(steps)], -1) if steps.shape[1] else start
