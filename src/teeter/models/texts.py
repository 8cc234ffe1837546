"""What every model of texts reads, and the library that two of them are made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError

__all__ = ["Texts", "library", "text_and_mask"]

Texts = Tensor | Mapping[str, Tensor]


def text_and_mask(inputs: Texts, longest: int | None = None) -> tuple[Tensor, Tensor]:
    """Token numbers and where they are text (True) or padding (False), both of shape (texts, tokens).

    `inputs` are a mapping with `input_ids` and, where there is padding, `attention_mask`; or the token numbers alone.

    >>> text_and_mask({"input_ids": torch.tensor([[7, 1]]), "attention_mask": torch.tensor([[1, 0]])})
    (tensor([[7, 1]]), tensor([[ True, False]]))
    """
    named = {"input_ids": inputs} if isinstance(inputs, Tensor) else inputs
    if "input_ids" not in named:
        raise InputError(f"texts are a mapping with 'input_ids', or token numbers alone, got {', '.join(named)}")
    tokens, mask = named["input_ids"], named.get("attention_mask")
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise InputError(f"texts are token numbers of shape (texts, tokens), got {tokens.dtype} {tuple(tokens.shape)}")
    if longest is not None and tokens.shape[1] > longest:
        raise InputError(f"the model reads {longest} tokens (its length), got {tokens.shape[1]}: cut the texts")
    if mask is None:
        return tokens, torch.ones_like(tokens, dtype=torch.bool)
    if mask.shape != tokens.shape:
        raise InputError(f"a mask has the shape of its tokens, {tuple(tokens.shape)}, got {tuple(mask.shape)}")
    return tokens, mask.bool()


def library() -> Any:
    """transformers, imported when the first model needs it (it takes seconds), or one line on how to get it."""
    try:
        import transformers
    except ImportError as problem:
        raise InputError(f"RoBERTa and GPT-2 need transformers ({problem}): pip install 'teeter[text]'") from None
    return transformers
