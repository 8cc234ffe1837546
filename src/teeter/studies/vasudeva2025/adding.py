"""What the studies of a + b mod p share (V 7.3, A.5): transformers that may grok, and what is measured meanwhile.

"text" is a one-layer transformer with skip connections, that of Nanda et al. (2023), whose phases V's A.5 takes up;
its noise is on one number at a time, as Definition 4.1 has it. "released" is V's code: no skip connections, and noise
on both numbers at once. An epoch is a step, since all pairs are trained on at once. V gives no sizes, rate, weight
decay or share of pairs: the defaults are the released code's.

Sensitivity is measured on the pairs trained on, as V has it for images (section 5), with noise of sigma = 0.1:

- `sensitivity`: on one number or on both, by the variant;
- `sensitivity_relative`: the same with a sigma of half the root mean square of a number's own vector (`embedding` is
  that of all of them): weight decay makes vectors smaller, so that a fixed sigma grows beside them;
- `sensitivity_unseen`: as the first, on pairs not trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from teeter import counter
from teeter.data import LabelledPairs, modular_addition
from teeter.errors import UnknownName
from teeter.models import MODELS
from teeter.perturb import EmbeddingNoise, Inputs, Noise, Perturbation
from teeter.perturb.noise import root_mean_square
from teeter.runs import Together
from teeter.studies.devices import device_here
from teeter.studies.vasudeva2025.curves import rounded, squares
from teeter.train import Recipe, Trained, bar, measures, train_stack
from teeter.train.measures import Measure
from teeter.train.state import own_randomness

__all__ = ["SIGMA", "TOGETHER", "VARIANTS", "Adder", "BothNumbers", "labelled", "marks", "run", "unmirrored"]

VARIANTS = {"text": True, "released": False}  # and whether there are skip connections
SIGMA, RELATIVE = 0.1, 0.5
LABELS = ("sum", "random")  # a + b mod p, or any number for each pair, the same for (a, b) and (b, a)
_DRAWS = 4  # of noise for every pair
_BATCH = 8192
_RANDOM = 2_000_000  # a seed for random labels
_MOST = 4096  # pairs that sensitivity is measured on


@dataclass(frozen=True)
class Adder:
    """One run. With random labels there is nothing to grok, and all else is alike."""

    seed: int
    variant: str = "text"
    p: int = 113
    dim: int = 128
    width: int = 512
    share: float = 0.3
    rate: float = 1e-3
    weight_decay: float = 1.0
    epochs: int = 25_000
    labels: str = "sum"


def marks(epochs: int) -> list[int]:
    """The epochs that are measured."""
    return squares(epochs, 100 if epochs >= 10_000 else 50 if epochs >= 100 else 5)


@dataclass(frozen=True)
class BothNumbers:
    """Gaussian noise on the embeddings of both numbers at once, as the released code has it."""

    sigma2: float
    relative: bool = False

    def positions(self, inputs: Inputs) -> Tensor:
        assert isinstance(inputs, Tensor)
        return torch.ones(len(inputs), 1, dtype=torch.bool)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Tensor:
        assert isinstance(model, nn.Module)

        def nudge(module: nn.Module, given: Any, output: Tensor) -> Tensor:
            numbers = output[:, :2]
            step = noise.normal(*numbers.shape[1:]).to(numbers) * self.sigma2**0.5
            if self.relative:
                step = step * root_mean_square(numbers, (-1,))
            return torch.cat([numbers + step, output[:, 2:]], 1)

        handle = model.get_submodule("embedding").register_forward_hook(nudge)
        try:
            return model(inputs)
        finally:
            handle.remove()


def labelled(spec: Adder, device: torch.device) -> tuple[LabelledPairs, LabelledPairs]:
    """The pairs to train on and those to test."""
    if spec.labels not in LABELS:
        raise UnknownName("kind of label", spec.labels, LABELS)
    parts = modular_addition(spec.p, share=spec.share, seed=spec.seed, equals=True, device=device)
    if spec.labels == "sum":
        return parts

    def drawn(pairs: LabelledPairs) -> LabelledPairs:
        a, b = pairs.tokens[:, :2].sort(1).values.T
        return replace(pairs, labels=counter.integers(spec.p, _RANDOM + spec.seed, a, b))

    return drawn(parts[0]), drawn(parts[1])


def unmirrored(train: LabelledPairs, test: LabelledPairs) -> Tensor:
    """Which of the pairs (a, b) to test are such that (b, a) was not trained on either.

    A model that cannot tell a + b from b + a knows the others once it has memorised.
    """
    trained = torch.zeros(train.p, train.p, dtype=torch.bool)
    a, b = train.tokens[:, :2].cpu().T
    trained[b, a] = True
    a, b = test.tokens[:, :2].cpu().T
    return ~trained[a, b].to(test.tokens.device)


def model_of(spec: Adder) -> nn.Module:
    if spec.variant not in VARIANTS:
        raise UnknownName("variant", spec.variant, VARIANTS)
    with own_randomness(torch.device("cpu"), spec.seed):
        return MODELS["modular"](p=spec.p, dim=spec.dim, width=spec.width, residual=VARIANTS[spec.variant])


def noise_of(spec: Adder, relative: bool = False) -> Perturbation:
    sigma2 = RELATIVE**2 if relative else SIGMA**2
    if spec.variant == "released":
        return BothNumbers(sigma2, relative)
    return EmbeddingNoise(sigma2=sigma2, relative=relative, skip=(spec.p,))


def _embedding(model: nn.Module) -> float:
    numbers = model.get_parameter("embedding.token.weight").detach()[:-1]  # the last is that of "="
    return float(numbers.square().mean().sqrt())


def measured(spec: Adder, train: LabelledPairs, test: LabelledPairs) -> dict[str, Measure]:
    new = unmirrored(train, test)

    def sensitivity(pairs: LabelledPairs, relative: bool = False) -> Measure:
        some = pairs.tokens[counter.bits(spec.seed, torch.arange(len(pairs))).argsort()[:_MOST].to(pairs.tokens.device)]
        budget = (1 + _DRAWS) * len(some)
        return measures.sensitivity(some, noise_of(spec, relative), budget=budget, seed=spec.seed, batch=_BATCH)

    return {
        "train": measures.fit(train.tokens, train.labels, batch=_BATCH),
        "test": measures.fit(test.tokens, test.labels, batch=_BATCH),
        "new_accuracy": measures.accuracy(test.tokens[new], test.labels[new], batch=_BATCH),
        "norm": measures.parameter_norm(),
        "embedding": _embedding,
        "sensitivity": sensitivity(train),
        "sensitivity_relative": sensitivity(train, relative=True),
        "sensitivity_unseen": sensitivity(test),
    }


def rows(made: Trained) -> list[dict[str, Any]]:
    return [
        {"epoch": row["step"], **found, "whole": made.stopped == "done"}
        for row, found in zip(made.rows, rounded(made), strict=True)
    ]


def run_all(specs: Sequence[Adder], folder: Path | None) -> list[list[dict[str, Any]]]:
    """Train them as one program; all have one shape, and each its own pairs and first weights."""
    device, first = device_here(), specs[0]
    parts = [labelled(each, device) for each in specs]
    batch = torch.stack([train.tokens for train, _ in parts]), torch.stack([train.labels for train, _ in parts])
    recipes = [_recipe(each) for each in specs]
    with bar() as progress:
        made = train_stack(
            [model_of(each).to(device) for each in specs],
            lambda step: batch,
            recipes,
            measures=[measured(each, *part) for each, part in zip(specs, parts, strict=True)],
            every=marks(first.epochs),
            folder=folder,
            keep=max(first.epochs // 25, 1),
            progress=progress,
        )
    if any(each.stopped == "interrupted" for each in made):
        raise KeyboardInterrupt
    return [rows(each) for each in made]


def _recipe(spec: Adder) -> Recipe:
    # In float32 on a GPU too: once all is memorised the loss is so small that fewer bits would blur it.
    return Recipe(
        spec.epochs,
        None,
        rate=spec.rate,
        weight_decay=spec.weight_decay,
        loss="cross-entropy",
        arithmetic="float32",
    )


def run(spec: Adder) -> list[dict[str, Any]]:
    return run_all([spec], None)[0]


def kind_of(spec: Adder) -> tuple[Any, ...]:
    """What specs have in common that are trained as one program."""
    return spec.variant, spec.p, spec.dim, spec.width, spec.share, spec.epochs


TOGETHER = Together(key=kind_of, run=run_all, most=16)
