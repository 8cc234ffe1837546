"""One architecture a file; MODELS maps a name to a factory whose defaults are the paper's."""

from collections.abc import Callable
from functools import partial

from torch import nn

from teeter.models.gpt2 import GPT2
from teeter.models.roberta import Roberta, relu_attention
from teeter.models.text_lstm import TextLSTM

__all__ = ["GPT2", "MODELS", "Roberta", "TextLSTM", "relu_attention"]

MODELS: dict[str, Callable[..., nn.Module]] = {
    "gpt2": GPT2,
    "roberta": Roberta,
    "roberta-relu": partial(Roberta, attention="relu"),
    "text-lstm": TextLSTM,
}
