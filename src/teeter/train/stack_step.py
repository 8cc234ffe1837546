"""One training step of a stack: losses, gradients, one update of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from teeter.measure.arithmetic import computing_in
from teeter.train.losses import LOSSES
from teeter.train.optimizers import BETAS, EPSILON, MOMENTUM
from teeter.train.recipe import Recipe, rate_at
from teeter.train.recorded import Recorded, room_to_compile
from teeter.train.stack import Stack, flattened
from teeter.train.stacked_encoder import unseen

__all__ = ["StackStep", "adam_step", "facts_of", "sgd_step"]


class StackStep:
    """What happens to a stack on a batch, on the device and nowhere else.

    On a GPU the kernels of a step are recorded once and then launched together (a CUDA graph): small stacks would
    otherwise spend their time waiting for launches. `compile` fuses what lies between the matrix products.
    """

    def __init__(self, stack: Stack, recipe: Recipe, compile: bool) -> None:
        self.stack, self.recipe, self.compile = stack, recipe, compile
        moments = torch.zeros(1 if recipe.optimizer == "sgd" else 2, *stack.flat.shape).to(stack.flat)
        self.moments = moments
        self.losses = torch.zeros(len(stack), dtype=torch.float64, device=stack.flat.device)

        # Functions of their own rather than methods: what refers to itself would keep its memory on the device.
        def losses_of(inputs: Any, targets: Tensor) -> Tensor:
            return torch.vmap(LOSSES[recipe.loss])(stack(inputs), targets)

        def update(gradient: Tensor, facts: Tensor) -> None:
            if recipe.clip is not None:  # as torch's clip_grad_norm_ has it
                norm = gradient.norm(dim=1, keepdim=True)
                gradient = gradient * (recipe.clip / (norm + 1e-6)).clamp(max=1.0)
            if recipe.optimizer == "sgd":
                sgd_step(stack.flat, gradient, moments[0], facts)
            else:
                adam_step(stack.flat, gradient, moments[0], moments[1], facts, recipe.optimizer == "adamw")

        self._losses_of: Callable[..., Tensor] = torch.compile(losses_of, dynamic=False) if compile else losses_of
        self._update: Callable[..., None] = torch.compile(update, dynamic=False) if compile else update
        self._recorded = Recorded(stack.flat.device)

    def __call__(self, inputs: Any, targets: Tensor, facts: Tensor) -> None:
        """One step; `losses` then holds each model's loss before it."""
        if not self.stack.flat.is_cuda:
            self.once(inputs, targets, facts)
            return
        self._recorded(self.once, lambda: (self.stack.flat, self.moments), inputs, targets, facts)

    def once(self, inputs: Any, targets: Tensor, facts: Tensor) -> None:
        """The same, kernel by kernel."""
        weights, device = self.stack.trained, self.stack.flat.device
        with computing_in(self.recipe.arithmetic, device), room_to_compile(self.compile):
            losses = self._losses_of(inputs, targets)
            with torch.autocast(device.type, enabled=False):
                # The models do not touch each other: the gradient of the sum holds that of each.
                parts = torch.autograd.grad(losses.sum(), list(weights.values()), allow_unused=True)
            rows = {name: part for name, part in zip(weights, parts, strict=True) if part is not None}
            # What the answer does not depend on has no gradient, and torch's optimizers leave it alone.
            idle = weights.keys() - rows.keys() - (unseen(self.stack.shape) if self.stack.fast else set())
            with torch.no_grad():
                kept = {name: weights[name].clone() for name in idle}
                gradient = [rows[name] if name in rows else torch.zeros_like(part) for name, part in weights.items()]
                self._update(flattened(gradient, 1), facts)
                for name, part in kept.items():
                    weights[name].copy_(part)
                self.losses.copy_(losses.detach())


def facts_of(recipes: Sequence[Recipe], start: int, stop: int, like: Tensor) -> Tensor:
    """For each of these steps and models: rate, weight decay, and 1 - beta^t for either beta of Adam, where t steps
    are done after it. (steps, K, 4), on the device of `like`.

    >>> facts_of([Recipe(rate=0.5), Recipe(rate=0.1)], 0, 1, torch.zeros(1)).round(decimals=4)
    tensor([[[0.5000, 0.1000, 0.1000, 0.0010],
             [0.1000, 0.1000, 0.1000, 0.0010]]])
    """
    shares: dict[Recipe, list[float]] = {}  # many models share a schedule and differ in their rate alone
    table = torch.zeros(stop - start, len(recipes), 4, dtype=torch.float64)
    for k, recipe in enumerate(recipes):
        schedule = replace(recipe, rate=1.0, weight_decay=0.0)
        if schedule not in shares:
            shares[schedule] = [rate_at(schedule, step) for step in range(start, stop)]
        table[:, k, 0] = recipe.rate * torch.tensor(shares[schedule], dtype=torch.float64)
        table[:, k, 1] = recipe.weight_decay
    done = torch.arange(start + 1, stop + 1, dtype=torch.float64).unsqueeze(1)
    for i, beta in enumerate(BETAS):
        table[:, :, 2 + i] = 1 - beta**done
    return table.to(like)


def adam_step(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, facts: Tensor, decoupled: bool) -> None:
    """Adam or AdamW as torch has them, in place on rows of weights, each with its own (rate, weight decay, 1 - beta^t
    for either beta).

    >>> weights, zeros = torch.ones(1, 1), torch.zeros(2, 1, 1)
    >>> adam_step(weights, torch.ones(1, 1), *zeros, torch.tensor([[0.1, 0.5, 0.1, 0.001]]), decoupled=True)
    >>> weights  # 5 % less, and one step of 0.1
    tensor([[0.8500]])
    """
    rate, decay, lack1, lack2 = facts.unsqueeze(-1).unbind(1)
    if decoupled:
        weights.mul_(1 - rate * decay)
    else:
        gradient = gradient + decay * weights
    first.lerp_(gradient, 1 - BETAS[0])
    second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    weights.sub_((rate / lack1) * first / ((second / lack2).sqrt() + EPSILON))


def sgd_step(weights: Tensor, gradient: Tensor, moving: Tensor, facts: Tensor) -> None:
    """SGD as torch has it, in place."""
    rate, decay = facts.unsqueeze(-1).unbind(1)[:2]
    moving.mul_(MOMENTUM).add_(gradient + decay * weights)
    weights.sub_(rate * moving)
