"""SGD, Adam and AdamW, with torch's own constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

__all__ = ["BETAS", "EPSILON", "MOMENTUM", "OPTIMIZERS", "make_optimizer"]

MOMENTUM = 0.0  # of "sgd"
BETAS = (0.9, 0.999)  # of "adam" and "adamw"
EPSILON = 1e-8  # likewise, added to the root of the second moment

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "sgd": lambda weights, **more: SGD(weights, momentum=MOMENTUM, **more),
    "adam": lambda weights, **more: Adam(weights, betas=BETAS, eps=EPSILON, **more),
    "adamw": lambda weights, **more: AdamW(weights, betas=BETAS, eps=EPSILON, **more),
}


def make_optimizer(name: str, weights: Iterable[nn.Parameter], rate: float | Tensor, weight_decay: float) -> Optimizer:
    """The optimizer of a name, one kernel for all weights where the device has it. With a rate that is a tensor, a step
    is on the device alone, and can be recorded.

    >>> make_optimizer("sgd", nn.Linear(2, 1).parameters(), rate=0.1, weight_decay=0.0).defaults["lr"]
    0.1
    """
    weights = list(weights)
    more: dict[str, Any] = {"fused": True} if {weight.device.type for weight in weights} <= {"cpu", "cuda"} else {}
    if isinstance(rate, Tensor) and name != "sgd":
        more["capturable"] = True
    return OPTIMIZERS[name](weights, lr=rate, weight_decay=weight_decay, **more)
