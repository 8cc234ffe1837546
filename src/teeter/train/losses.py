"""What is made small: outputs and targets of a batch to one number."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from teeter.errors import InputError

__all__ = ["LOSSES", "cross_entropy", "logistic", "mse", "shared_mse"]


def mse(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean squared difference (H section 7.1, on targets ±1).

    Outputs have the shape of the targets, or one axis of length 1 more.

    >>> mse(torch.tensor([1.0, 0.0]), torch.tensor([1, -1]))
    tensor(0.5000)
    """
    answers = _paired("mse", outputs, targets)
    return functional.mse_loss(answers, targets.to(answers))


def shared_mse(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean squared difference where each input counts by its share: targets are (..., 2), values and shares.

    >>> shared_mse(torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 0.75], [-1.0, 0.25]]))
    tensor(0.2500)
    """
    values, shares = targets.unbind(-1)
    answers = _paired("shared-mse", outputs, values)
    return ((answers - values.to(answers)).square() * shares.to(answers)).sum()


def logistic(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean of log(1 + exp(-y f)) in nats, for targets y = ±1 and outputs f whose sign is the answer.

    >>> logistic(torch.zeros(2), torch.tensor([1, -1])).exp()
    tensor(2.)
    """
    answers = _paired("logistic", outputs, targets)
    return functional.softplus(-targets.to(answers) * answers).mean()


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean of -log softmax(outputs)[target] in nats: outputs (..., classes) and the numbers of classes (...).

    >>> cross_entropy(torch.zeros(3, 4), torch.tensor([0, 1, 2])).exp()
    tensor(4.)
    """
    if outputs.ndim < 2 or outputs.shape[:-1] != targets.shape or targets.dtype != torch.int64:
        raise InputError(
            f"cross-entropy takes outputs (batch, classes) and as many int64 numbers of classes, "
            f"got {tuple(outputs.shape)} and {targets.dtype} {tuple(targets.shape)}"
        )
    return functional.cross_entropy(_wide(outputs).flatten(0, -2), targets.flatten())


def _paired(name: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """Outputs in the shape of the targets; torch would broadcast (batch, 1) against (batch,) without an error."""
    answers = _wide(outputs)
    if answers.ndim == targets.ndim + 1 and answers.shape[-1] == 1:
        answers = answers.squeeze(-1)
    if answers.shape != targets.shape:
        raise InputError(
            f"{name} compares outputs and targets of one shape, got {tuple(outputs.shape)} and {tuple(targets.shape)}"
        )
    return answers


def _wide(outputs: Tensor) -> Tensor:
    """In float32 at least: sums over a batch need more bits than bf16 has."""
    return outputs.float() if outputs.dtype in (torch.bfloat16, torch.float16) else outputs


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": mse,
    "shared-mse": shared_mse,
    "logistic": logistic,
    "cross-entropy": cross_entropy,
}
