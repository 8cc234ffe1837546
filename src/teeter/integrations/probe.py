"""A linear classifier on what a sentence encoder makes of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, count, take

__all__ = ["Probe", "encode", "fit_probe"]


class Probe(nn.Module):
    """Mean of the encoder's states over the tokens under the mask, then a linear layer: (inputs, classes) logits.

    `encoder` takes a mapping by keyword, or a tensor, and gives (inputs, tokens, features) or an object that has them
    as `last_hidden_state`. It is a module of the probe, so that `EmbeddingNoise` finds its embeddings.

    >>> table = nn.Embedding.from_pretrained(torch.tensor([[0.0], [1.0], [5.0]]))
    >>> probe = Probe(table, weight=torch.tensor([[2.0], [-2.0]]), bias=torch.zeros(2))
    >>> probe(torch.tensor([[1, 2]])).detach()
    tensor([[ 6., -6.]])
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, encoder: nn.Module, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise InputError(
                f"a head is weight (classes, features) and bias (classes,), got {tuple(weight.shape)} "
                f"and {tuple(bias.shape)}"
            )
        self.encoder = encoder
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.train(encoder.training)

    def forward(self, inputs: Inputs) -> Tensor:
        return nn.functional.linear(pooled(self.encoder, inputs), self.weight, self.bias)


def pooled(encoder: Callable[..., Any], inputs: Inputs) -> Tensor:
    """The mean of an encoder's states over the tokens that are there, (inputs, features)."""
    answer = encoder(**inputs) if isinstance(inputs, Mapping) else encoder(inputs)
    states = getattr(answer, "last_hidden_state", answer)
    if not isinstance(states, Tensor) or states.ndim != 3:
        shape = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
        raise InputError(f"an encoder gives states of shape (inputs, tokens, features), got {shape}")
    if not (isinstance(inputs, Mapping) and "attention_mask" in inputs):
        return states.mean(1)
    mask = inputs["attention_mask"].to(states).unsqueeze(-1)
    return (states * mask).sum(1) / mask.sum(1).clamp_min(1)


def encode(encoder: nn.Module, inputs: Inputs, batch: int = 64) -> Tensor:
    """The mean states of all inputs, (inputs, features), with the encoder in evaluation mode meanwhile."""
    was = encoder.training
    encoder.eval()
    parts, places = [], []
    with torch.no_grad():
        for place, some in _of_like_length(inputs, batch):
            parts.append(pooled(encoder, some))
            places.append(place)
    encoder.train(was)
    return torch.cat(parts)[torch.cat(places).argsort().to(parts[0].device)]


def _of_like_length(inputs: Inputs, batch: int) -> Iterator[tuple[Tensor, Inputs]]:
    """Batches of texts that end at about the same place, cut there: padding costs as much as text."""
    if isinstance(inputs, Tensor) or "attention_mask" not in inputs:
        for place in torch.arange(count(inputs)).split(batch):
            yield place, take(inputs, place)
        return
    mask = inputs["attention_mask"].bool().cpu()
    ends = (mask * torch.arange(1, mask.shape[1] + 1)).amax(-1)
    for place in ends.argsort().split(batch):
        end = max(1, int(ends[place].max()))
        yield place, {name: part[place.to(part.device), :end] for name, part in inputs.items()}


def fit_probe(encoder: nn.Module, inputs: Inputs, labels: Tensor, *, penalty: float = 0.1, batch: int = 64) -> Probe:
    """A probe whose head is fitted by logistic regression; the encoder is left as it is.

    The head has the least mean cross-entropy plus penalty / 2 times its squared norm in standardised features, a convex
    problem with one answer, found in float64 by LBFGS. Labels are 0 .. classes-1, each of them there.

    >>> table = nn.Embedding.from_pretrained(torch.randn(6, 4, generator=torch.Generator().manual_seed(0)))
    >>> words = torch.tensor([[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]])
    >>> fit_probe(table, words, torch.tensor([0, 0, 0, 1, 1, 1]), penalty=0.01)(words).argmax(-1)
    tensor([0, 0, 0, 1, 1, 1])
    """
    n = count(inputs)
    known = labels.unique().tolist()
    if labels.shape != (n,) or len(known) < 2 or known != list(range(len(known))):
        raise InputError(
            f"labels are one of 0 .. classes-1 for each of {n} inputs, at least two classes, got shape "
            f"{tuple(labels.shape)} of {known[:5]}"
        )
    if not penalty > 0:
        raise InputError(f"penalty is positive (without one, separable classes have no best head), got {penalty}")
    states = encode(encoder, inputs, batch)
    features = states.double()
    centre, spread = features.mean(0), features.std(0).clamp_min(1e-12)
    weight, bias = _logistic((features - centre) / spread, labels.to(features.device).long(), len(known), penalty)
    weight = weight / spread
    return Probe(encoder, weight.to(states), (bias - weight @ centre).to(states))


def _logistic(features: Tensor, labels: Tensor, classes: int, penalty: float) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(classes, features.shape[1], dtype=features.dtype, device=features.device, requires_grad=True)
    bias = torch.zeros(classes, dtype=features.dtype, device=features.device, requires_grad=True)
    search = torch.optim.LBFGS(
        [weight, bias], max_iter=1000, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        misfit = nn.functional.cross_entropy(features @ weight.T + bias, labels)
        value = misfit + penalty / 2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        search.step(loss)
    return weight.detach(), bias.detach()
