"""By how much do normalisation layers stretch what passes through them?

H Eq. 5: a LayerNorm multiplies by N = 1 / sqrt(variance + epsilon), an RMSNorm by 1 / sqrt(mean square + epsilon). A
layer's blow-up on an input is the largest N over positions, and the network's the product over its layers (H 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.door import admit, check_mode
from teeter.measure.estimate import Estimate
from teeter.measure.forward import Batches, hookable
from teeter.measure.tally import Tally
from teeter.perturb import Inputs
from teeter.perturb.inputs import count, take

__all__ = ["Blowup", "blowup"]


@dataclass(frozen=True)
class Blowup:
    """The factor of every normalisation layer on every input."""

    layers: tuple[str, ...]  # in the order in which they ran
    factors: Tensor  # (inputs, layers)

    @property
    def product(self) -> Tensor:
        """The network's blow-up on each input."""
        return self.factors.prod(-1)

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The mean of the product over inputs."""
        product = self.product
        return Tally(product, torch.ones_like(product), rate=False).estimate(confidence)


def blowup(
    model: nn.Module,
    inputs: Inputs,
    *,
    positions: Literal["all", "last"] = "all",
    plus_one: bool = False,
    batch: int | str = "auto",
) -> Blowup:
    """The blow-up of every LayerNorm and RMSNorm on every input.

    `positions="last"` looks at the last position alone, as is enough where only that one is read. `plus_one` gives
    1 + N for each factor, as in the theory (H Eq. 11). The layers' own epsilon counts.

    >>> norm = nn.LayerNorm(4, eps=0.0)
    >>> blowup(norm, torch.tensor([[[1.0, -1.0, 1.0, -1.0]], [[0.5, -0.5, 0.5, -0.5]]])).product
    tensor([1., 2.], dtype=torch.float64)
    """
    norms = norms_of(model, positions)
    inputs = admit(model, inputs)
    n = count(inputs)
    factors: list[Tensor] = []
    order: tuple[str, ...] = ()

    def work(start: int, stop: int) -> None:
        nonlocal order
        with torch.no_grad(), hookable(), watched(norms, positions) as seen:
            model(take(inputs, torch.arange(start, stop)))
        order, found = gathered(seen, stop - start)
        factors.append(found.cpu())

    Batches(batch).run(0, n, work)
    return Blowup(order, torch.cat(factors) + (1 if plus_one else 0))


def norms_of(model: nn.Module, positions: str) -> dict[str, nn.Module]:
    """The normalisation layers by name; whatever is wrong is said here."""
    if not isinstance(model, nn.Module):
        raise InputError(f"blow-up needs a torch module, got {type(model).__name__}")
    if positions not in ("all", "last"):
        raise InputError(f"positions are 'all' or 'last', got '{positions}'")
    check_mode(model)
    norms = {name: part for name, part in model.named_modules() if _is_norm(part)}
    if not norms:
        raise InputError("the model has no LayerNorm or RMSNorm")
    return norms


@contextmanager
def watched(norms: dict[str, nn.Module], positions: str) -> Iterator[list[tuple[str, Tensor]]]:
    """Within: a list that gets the name and the factors of every layer that runs."""
    seen: list[tuple[str, Tensor]] = []

    def watch(name: str) -> Callable[[nn.Module, Any, Any], None]:
        return lambda part, given, named: seen.append((name, _factor(part, _only(given, named), positions)))

    handles = [part.register_forward_pre_hook(watch(name), with_kwargs=True) for name, part in norms.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def gathered(seen: list[tuple[str, Tensor]], rows: int) -> tuple[tuple[str, ...], Tensor]:
    """What was watched on a batch: the layers in the order in which they ran, and their factors (rows, layers)."""
    if not seen:
        raise InputError("no normalisation layer ran")
    wrong = [name for name, factor in seen if len(factor) != rows]
    if wrong:
        raise InputError(f"{wrong[0]} does not see inputs along its first axis")
    return tuple(name for name, _ in seen), torch.stack([factor for _, factor in seen], -1)


def _is_norm(part: nn.Module) -> bool:
    if isinstance(part, nn.LayerNorm):
        if type(part).forward is not nn.LayerNorm.forward:
            raise InputError(f"{type(part).__name__} normalises in its own way, and along which axis is not known")
        return True
    return type(part).__name__.endswith(("RMSNorm", "T5LayerNorm"))


def _only(given: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    return given[0] if given else next(iter(named.values()))


def _factor(part: nn.Module, given: Tensor, positions: str) -> Tensor:
    """The largest 1 / sqrt(spread + epsilon) over the positions of each input."""
    values = given.detach().double()
    shape = getattr(part, "normalized_shape", given.shape[-1:])
    axes = tuple(range(-len(shape), 0))
    if isinstance(part, nn.LayerNorm):
        spread = values.var(axes, correction=0)
    else:
        spread = values.square().mean(axes)
    epsilon = getattr(part, "eps", getattr(part, "variance_epsilon", None))
    if epsilon is None:
        epsilon = torch.finfo(given.dtype).eps  # what torch's RMSNorm uses
    factor = (1 / torch.sqrt(spread + epsilon)).nan_to_num(nan=math.inf, posinf=math.inf)
    factor = factor.reshape(len(factor), -1)
    return factor[:, -1] if positions == "last" else factor.amax(-1)
