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

from typing import Literal, cast

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.block import Attention, Block
from teeter.models.embedding import Positions, SequenceEmbedding, token_numbers
from teeter.models.sizes import check_sizes

__all__ = ["Scratchpad"]

START = 2  # the token before the first step, after those of +1 and -1
Kept = tuple[Tensor, Tensor]  # the keys and values of positions that were read


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
        return self._consult(x, self.cross.keys_and_values(source))

    def step(self, x: Tensor, earlier: Kept | None, bits: Kept) -> tuple[Tensor, Kept]:
        """The same for one step, (batch, 1, dim), from what was kept of the earlier ones and of the bits; and what to
        keep for the next."""
        key, value = self.attention.keys_and_values(x)
        if earlier is not None:
            key, value = torch.cat([earlier[0], key], -2), torch.cat([earlier[1], value], -2)
        x = self.norm1(x + self.attention.attend(x, key, value))
        return self._consult(x, bits), (key, value)

    def _consult(self, x: Tensor, bits: Kept) -> Tensor:
        x = self.norm2(x + self.cross.attend(x, *bits))
        return self.norm3(x + self.down(self.up(x).relu()))


class Scratchpad(nn.Module):
    """Bits (batch, n) and the first k steps (batch, k), all ±1, to the output for step k + 1: (batch,).

    Without steps, PARITY's own t_1 ... t_{n-1} are given (teacher forcing), and the output is for the last, t_n. With
    `steps="own"` the model reads what it wrote itself, where an output below 0 says -1; `generate` gives those steps.
    With `all_positions`, the outputs for all steps 1 to k + 1: (batch, k + 1). `length` is the largest n.

    Bits and steps are embedded by one module; noise goes to those of one kind at `embedded_bits` or `embedded_steps`.

    >>> _ = torch.manual_seed(0)
    >>> model = Scratchpad(length=4, dim=8)
    >>> bits = torch.tensor([[1, -1, -1, 1]])
    >>> model(bits).shape, model(bits, all_positions=True).shape
    (torch.Size([1]), torch.Size([1, 4]))
    >>> model(bits, torch.tensor([[1, -1]]), all_positions=True).shape, model.generate(bits).shape
    (torch.Size([1, 3]), torch.Size([1, 4]))
    """

    def __init__(
        self,
        *,
        length: int = 1024,
        dim: int = 32,
        layers: int = 2,
        heads: int = 2,
        width: int | None = None,
        positions: Positions = "sum",
    ) -> None:
        super().__init__()
        check_sizes(layers=layers)
        width = dim if width is None else width
        self.embedding = SequenceEmbedding(vocabulary=3, length=length, dim=dim, positions=positions)
        self.embedded_bits, self.embedded_steps = nn.Identity(), nn.Identity()  # places for hooks
        self.encoder = nn.ModuleList(Block(dim, heads, width) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(dim)
        self.decoder = nn.ModuleList(WritingBlock(dim, heads, width) for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)
        for name, weight in [*self.encoder.named_parameters(), *self.decoder.named_parameters()]:
            if name.endswith(("output.weight", "up.weight", "down.weight")):  # queries, keys and values already are so
                nn.init.xavier_uniform_(weight)

    def forward(
        self, bits: Tensor, steps: Tensor | Literal["own"] | None = None, all_positions: bool = False
    ) -> Tensor:
        source = self.read(bits)
        if isinstance(steps, str):
            if steps != "own":
                raise InputError(f"steps are a tensor, or 'own' for the model's own, got '{steps}'")
            outputs = self._write_alone(source)
            return outputs if all_positions else outputs[:, -1]
        if steps is None:
            steps = bits.cumprod(-1)[:, :-1]
        if steps.ndim != 2 or len(steps) != len(bits) or steps.shape[1] >= bits.shape[1]:
            raise InputError(
                f"steps are (batch, k) with k < n before the one that is asked for, got {tuple(steps.shape)} "
                f"for bits of {tuple(bits.shape)}"
            )
        start = torch.full((len(steps), 1), START, device=steps.device)
        numbers = torch.cat([start, token_numbers(steps)], -1) if steps.shape[1] else start
        x = self.embedded_steps(self.embedding(numbers))
        for layer in self.decoder:
            x = layer(x, source)
        return self._answer(x if all_positions else x[:, -1])

    @torch.no_grad()
    def generate(self, bits: Tensor) -> Tensor:
        """All n steps, each from the model's own earlier ones: (batch, n) of ±1."""
        negative = self(bits, "own", all_positions=True) < 0
        return (1 - 2 * negative.long()).to(bits.dtype)

    def read(self, bits: Tensor) -> Tensor:
        """What the encoder makes of the bits: (batch, n, dim)."""
        x = self.embedded_bits(self.embedding(token_numbers(bits)))
        for layer in self.encoder:
            x = layer(x)
        return self.encoder_norm(x)

    def _write_alone(self, source: Tensor) -> Tensor:
        """The outputs for all n steps, (batch, n), one after the other; nothing is computed twice."""
        layers = [cast(WritingBlock, layer) for layer in self.decoder]
        bits = [layer.cross.keys_and_values(source) for layer in layers]
        earlier: list[Kept | None] = [None for _ in layers]
        number = torch.full((len(source), 1), START, device=source.device)
        outputs = []
        for place in range(source.shape[1]):
            x = self.embedded_steps(self.embedding(number, first=place))
            for i, layer in enumerate(layers):
                x, earlier[i] = layer.step(x, earlier[i], bits[i])
            outputs.append(self._answer(x))
            number = (outputs[-1] < 0).long()
        return torch.cat(outputs, -1)

    def _answer(self, x: Tensor) -> Tensor:
        return self.head(self.decoder_norm(x)).squeeze(-1)
