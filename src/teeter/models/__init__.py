"""The architectures of both papers, one a file; MODELS makes each by its name, with the paper's sizes by default."""

from collections.abc import Callable
from functools import partial

from torch import nn

from teeter.models.decoder import Decoder
from teeter.models.encoder import Encoder
from teeter.models.modular import ModularAddition
from teeter.models.recurrent import Recurrent
from teeter.models.scratchpad import Scratchpad
from teeter.models.self_attention import SelfAttention
from teeter.models.sparse_parity import sparse_parity_transformer

__all__ = [
    "MODELS",
    "Decoder",
    "Encoder",
    "ModularAddition",
    "Recurrent",
    "Scratchpad",
    "SelfAttention",
    "sparse_parity_transformer",
]

MODELS: dict[str, Callable[..., nn.Module]] = {
    "decoder": Decoder,
    "encoder": Encoder,
    "gru": partial(Recurrent, "gru"),
    "lstm": partial(Recurrent, "lstm"),
    "modular": ModularAddition,
    "scratchpad": Scratchpad,
    "self-attention": SelfAttention,
    "sparse-parity": sparse_parity_transformer,
}
