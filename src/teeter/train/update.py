"""One step of an optimizer on many models at once: rows of one tensor, each with its own rate and weight decay.

The rules are torch's: SGD with momentum, Adam (weight decay added to the gradient) and AdamW (Loshchilov and Hutter
2019: weights shrink by rate times weight decay).
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["BETAS", "EPSILON", "adam_step", "sgd_step"]

BETAS, EPSILON = (0.9, 0.999), 1e-8


@torch.no_grad()
def adam_step(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, facts: Tensor, decoupled: bool) -> None:
    """In place. `facts` are (models, 4): rate, weight decay, and what the moments lack of their full size after so many
    steps, 1 - beta^step for either beta.

    >>> weights, zero = torch.ones(1, 1), torch.zeros(1, 1)
    >>> facts = torch.tensor([[0.1, 0.5, 1 - 0.9, 1 - 0.999]])
    >>> adam_step(weights, torch.ones(1, 1), zero.clone(), zero.clone(), facts, decoupled=True)
    >>> weights  # 5 % less, and one step of 0.1
    tensor([[0.8500]])
    """
    rate, decay, lack1, lack2 = (facts[:, i : i + 1].to(weights.dtype) for i in range(4))
    if not decoupled:
        gradient = gradient + decay * weights
    first.copy_(first + (1 - BETAS[0]) * (gradient - first))
    second.copy_(BETAS[1] * second + (1 - BETAS[1]) * gradient * gradient)
    step = (rate / lack1) * first / ((second / lack2).sqrt() + EPSILON)
    weights.copy_((weights * (1 - rate * decay) if decoupled else weights) - step)


@torch.no_grad()
def sgd_step(weights: Tensor, gradient: Tensor, moving: Tensor, facts: Tensor, momentum: float) -> None:
    """In place; `facts` begin with rate and weight decay, as above."""
    rate, decay = (facts[:, i : i + 1].to(weights.dtype) for i in range(2))
    moving.copy_(momentum * moving + gradient + decay * weights)
    weights.sub_(rate * moving)
