"""Replace one token of a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.perturb.inputs import Inputs, field, replace
from teeter.perturb.noise import Noise

__all__ = ["TokenReplace", "text_positions"]


def text_positions(inputs: Inputs, name: str, skip: tuple[int, ...]) -> Tensor:
    """True at every token that is neither padding (by the attention mask, where there is one) nor one of `skip`."""
    tokens = field(inputs, name)
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise InputError(f"a text is token numbers of shape (inputs, tokens), got {tokens.dtype} {tuple(tokens.shape)}")
    there = torch.ones_like(tokens, dtype=torch.bool)
    if not isinstance(inputs, Tensor) and "attention_mask" in inputs:
        there &= inputs["attention_mask"].bool()
    for token in skip:
        there &= tokens != token
    return there


@dataclass(frozen=True)
class TokenReplace:
    """One token exchanged for one drawn uniformly from 0 .. vocabulary-1, itself included (V Def. 4.1).

    `skip` are token numbers that are never replaced, such as those of padding and other special tokens.
    """

    vocabulary: int
    skip: tuple[int, ...] = ()
    field: str = "input_ids"

    def __post_init__(self) -> None:
        if self.vocabulary < 2:
            raise InputError(f"a vocabulary holds at least two tokens, got {self.vocabulary}")

    def positions(self, inputs: Inputs) -> Tensor:
        there = text_positions(inputs, self.field, self.skip)
        largest = int(field(inputs, self.field).max())
        if largest >= self.vocabulary:
            raise InputError(f"token {largest} is not among the {self.vocabulary} of the vocabulary")
        return there

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        tokens = field(inputs, self.field).clone()
        rows = torch.arange(len(tokens), device=tokens.device)
        drawn = noise.integers(self.vocabulary).to(tokens.device, tokens.dtype)
        tokens[rows, noise.token.to(tokens.device)] = drawn
        try:
            return model(replace(inputs, self.field, tokens))
        except IndexError as problem:  # what an embedding raises, on a CPU
            told = f"a vocabulary of {self.vocabulary} tokens is larger than the model's"
            raise InputError(f"{told}, or it fails otherwise: {problem}") from problem
