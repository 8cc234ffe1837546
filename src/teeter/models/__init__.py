"""The architectures of both papers, one a file; MODELS makes each by its name.

By default a model has the sizes of the paper where it gives them. A size has one name in all models: `dim` is that of
a token, or the channels of a place; `width` is that of a hidden layer; `layers`, `heads`, `length`, `vocabulary`,
`classes`, `channels`, `image_size` and `patch` are what they say.

>>> MODELS["vit-small"](layers=2).head
Linear(in_features=64, out_features=10, bias=True)
"""

from collections.abc import Callable
from functools import partial

from torch import nn

from teeter.models.cnn import cnn
from teeter.models.convmixer import ConvMixer
from teeter.models.decoder import Decoder
from teeter.models.densenet import DenseNet
from teeter.models.efficientnet_lite import EfficientNetLite
from teeter.models.encoder import Encoder
from teeter.models.gpt2 import GPT2
from teeter.models.mlp import mlp
from teeter.models.modular import ModularAddition
from teeter.models.recurrent import Recurrent
from teeter.models.relu_attention import relu_attention
from teeter.models.resnet import ResNet
from teeter.models.roberta import Roberta
from teeter.models.scratchpad import Scratchpad
from teeter.models.self_attention import SelfAttention
from teeter.models.sparse_parity import sparse_parity_transformer
from teeter.models.text_lstm import TextLSTM
from teeter.models.vit_simple import ViTSimple
from teeter.models.vit_small import ViTSmall

__all__ = [
    "GPT2",
    "MODELS",
    "ConvMixer",
    "Decoder",
    "DenseNet",
    "EfficientNetLite",
    "Encoder",
    "ModularAddition",
    "Recurrent",
    "ResNet",
    "Roberta",
    "Scratchpad",
    "SelfAttention",
    "TextLSTM",
    "ViTSimple",
    "ViTSmall",
    "cnn",
    "mlp",
    "relu_attention",
    "sparse_parity_transformer",
]

# A vision model named without a data set is that of V's CIFAR-10 or Fashion-MNIST experiments; MNIST is "below 5?".
MODELS: dict[str, Callable[..., nn.Module]] = {
    "cnn": cnn,
    "convmixer": ConvMixer,
    "decoder": Decoder,
    "densenet121": DenseNet,
    "efficientnet-lite0": EfficientNetLite,
    "encoder": Encoder,
    "gpt2": GPT2,
    "gru": partial(Recurrent, "gru"),
    "lstm": partial(Recurrent, "lstm"),
    "mlp-leaky-relu": partial(mlp, activation="leaky-relu"),
    "mlp-mnist": partial(mlp, widths=(100,), classes=2),
    "mlp-sigmoid": partial(mlp, activation="sigmoid"),
    "modular": ModularAddition,
    "resnet18": ResNet,
    "roberta": Roberta,
    "roberta-relu": partial(Roberta, attention="relu"),
    "scratchpad": Scratchpad,
    "self-attention": SelfAttention,
    "sparse-parity": sparse_parity_transformer,
    "text-lstm": TextLSTM,
    "vit-simple": ViTSimple,
    "vit-small": ViTSmall,
    "vit-small-fashion-mnist": partial(ViTSmall, image_size=28, channels=1, layers=2, heads=8),
    "vit-small-mnist": partial(ViTSmall, image_size=28, channels=1, classes=2, patch=7, layers=2, heads=1, width=128),
    "vit-small-relu": partial(ViTSmall, attention="relu"),
    "vit-small-svhn": partial(ViTSmall, width=512),
}
