"""Architectures of both papers, one a file; MODELS maps a name to a factory whose defaults are the paper's.

>>> MODELS["vit-small"](depth=2).head
Linear(in_features=64, out_features=10, bias=True)
"""

from collections.abc import Callable
from functools import partial

from torch import nn

from teeter.models.cnn import cnn
from teeter.models.convmixer import ConvMixer
from teeter.models.densenet import DenseNet
from teeter.models.mlp import mlp
from teeter.models.resnet import ResNet
from teeter.models.vit_simple import ViTSimple
from teeter.models.vit_small import ViTSmall

__all__ = ["MODELS", "ConvMixer", "DenseNet", "ResNet", "ViTSimple", "ViTSmall", "cnn", "mlp"]

# A name without a data set is the model of V's CIFAR-10 or Fashion-MNIST experiments; MNIST is the task "below 5?".
MODELS: dict[str, Callable[..., nn.Module]] = {
    "cnn": cnn,
    "convmixer": ConvMixer,
    "densenet121": DenseNet,
    "mlp-leaky-relu": partial(mlp, activation="leaky-relu"),
    "mlp-mnist": partial(mlp, hidden=(100,), classes=2),
    "mlp-sigmoid": partial(mlp, activation="sigmoid"),
    "resnet18": ResNet,
    "vit-simple": ViTSimple,
    "vit-small": ViTSmall,
    "vit-small-fashion-mnist": partial(ViTSmall, image_size=28, channels=1, depth=2, heads=8),
    "vit-small-mnist": partial(ViTSmall, image_size=28, channels=1, classes=2, patch=7, depth=2, heads=1, mlp=128),
    "vit-small-relu": partial(ViTSmall, attention="relu"),
    "vit-small-svhn": partial(ViTSmall, mlp=512),
}
