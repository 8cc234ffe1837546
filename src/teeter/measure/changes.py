"""What counts as a change between a clean and a perturbed answer.

A change is any function of (clean output, perturbed output), each (batch,) or (batch, classes), to one value a row.
One that answers with truth values is a rate and gets the interval of a rate; one that answers with numbers is a mean.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["answers", "kl_divergence", "label_flip", "logit_distance", "one_sign", "quarter_square"]


def answers(output: Tensor) -> Tensor:
    """The answer that an output stands for: the class of the largest logit, or the sign of a scalar."""
    return output.argmax(-1) if output.ndim == 2 and output.shape[-1] > 1 else output.reshape(len(output)).sign()


def one_sign(sign: Tensor, size: Tensor) -> str | None:
    """What to say of scalars that all have the same sign.

    >>> one_sign(torch.ones(2), torch.tensor([3.0, 5.0]))
    "has the same sign, and a scalar's answer is its sign: where it is not, give a change"
    """
    if not bool((sign == sign[0]).all()):
        return None
    if bool(sign[0] >= 0) and bool((size <= 1).all()):
        return "lies in [0, 1], and a scalar's answer is its sign: from probabilities subtract 0.5, or give a change"
    return "has the same sign, and a scalar's answer is its sign: where it is not, give a change"


def label_flip(clean: Tensor, perturbed: Tensor) -> Tensor:
    """Whether the answer differs: the largest logit, or the sign of a scalar, where 0 differs from ±1 (V Def. 4.1).

    >>> label_flip(torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 2.0], [0.0, 3.0]]))
    tensor([ True, False])
    """
    return answers(clean) != answers(perturbed)


def quarter_square(clean: Tensor, perturbed: Tensor) -> Tensor:
    """|f(x) - f(x')|^2 / 4 (H Eq. 6), which is 1 for a flip of a ±1 function."""
    return (clean.double() - perturbed.double()).square().reshape(len(clean), -1).sum(-1) / 4


def kl_divergence(clean: Tensor, perturbed: Tensor) -> Tensor:
    """KL(softmax(clean) || softmax(perturbed)), in nats; a scalar is the logit of one of two classes."""
    if clean.ndim == 1 or clean.shape[-1] == 1:
        clean, perturbed = (
            torch.stack([o.reshape(-1), torch.zeros_like(o.reshape(-1))], -1) for o in (clean, perturbed)
        )
    before, after = clean.double().log_softmax(-1), perturbed.double().log_softmax(-1)
    return (before.exp() * (before - after)).sum(-1).clamp_min(0)


def logit_distance(clean: Tensor, perturbed: Tensor) -> Tensor:
    """Euclidean distance between the outputs."""
    return (clean.double() - perturbed.double()).reshape(len(clean), -1).norm(dim=-1)
