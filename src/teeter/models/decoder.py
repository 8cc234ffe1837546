"""A causal decoder on bits: H's encoder with each position blind to later ones.

H leaves open whether causal masking changes the limits it proves for encoders (Limitations): this is the model to ask.
The sizes are those of the encoder (H Table 1).
"""

from __future__ import annotations

from teeter.models.encoder import Encoder

__all__ = ["Decoder"]


class Decoder(Encoder):
    """A scalar for each row of bits, (batch, n) of ±1 to (batch,), read at the last position unless `read="mean"`.

    With `all_positions`, one for every prefix: (batch, n), of which number i depends on bits up to i alone. The
    arguments are the encoder's.

    >>> import torch
    >>> model = Decoder(length=4, dim=8)
    >>> bits = torch.tensor([[1, -1, 1, 1]])
    >>> model(bits).shape, model(bits, all_positions=True).shape
    (torch.Size([1]), torch.Size([1, 4]))
    """

    causal = True
