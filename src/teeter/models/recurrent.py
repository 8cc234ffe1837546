"""An LSTM and a GRU on bits: the networks for which PARITY is easy (H section 1, after Bhattamishra et al. 2020).

Neither paper trains one on bits, so the sizes are those of H's encoder (Table 1: dimension 128, 2 layers). There are no
positions: any length will do. torch's own cells do the work; they have no rule for vmap, so perturbed copies of the
weights run one by one.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.embedding import token_numbers
from teeter.models.sizes import check_sizes

__all__ = ["Recurrent"]

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(nn.Module):
    """A scalar for each row of bits, read from the last state: (batch, n) of ±1 to (batch,).

    >>> import torch
    >>> Recurrent("gru", dim=8)(torch.tensor([[1, -1, -1], [1, 1, 1]])).shape
    torch.Size([2])
    """

    def __init__(self, cell: Literal["lstm", "gru"], *, dim: int = 128, layers: int = 2) -> None:
        super().__init__()
        if cell not in CELLS:
            raise InputError(f"the cell is 'lstm' or 'gru', got '{cell}'")
        check_sizes(dim=dim, layers=layers)
        self.embedding = nn.Embedding(2, dim)
        self.cells = CELLS[cell](dim, dim, layers, batch_first=True)
        self.head = nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        states, _ = self.cells(self.embedding(token_numbers(bits)))
        return self.head(states[:, -1]).squeeze(-1)
