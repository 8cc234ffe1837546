"""What every model of texts reads, and the library that two of them are made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError, MissingExtra
from teeter.models.values import check_tokens

__all__ = ["Texts", "attended", "library", "text_and_mask"]

Texts = Tensor | Mapping[str, Tensor]


def text_and_mask(inputs: Texts, vocabulary: int, longest: int | None = None) -> tuple[Tensor, Tensor]:
    """Token numbers and where they are text (True) or padding (False), both of shape (texts, tokens).

    `inputs` are a mapping with `input_ids` and, where there is padding, `attention_mask`; or the token numbers alone.

    >>> text_and_mask({"input_ids": torch.tensor([[7, 1]]), "attention_mask": torch.tensor([[1, 0]])}, vocabulary=9)
    (tensor([[7, 1]]), tensor([[ True, False]]))
    """
    named = {"input_ids": inputs} if isinstance(inputs, Tensor) else inputs
    if "input_ids" not in named:
        raise InputError(f"texts are a mapping with 'input_ids', or token numbers alone, got {', '.join(named)}")
    tokens, mask = named["input_ids"], named.get("attention_mask")
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise InputError(f"texts are token numbers of shape (texts, tokens), got {tokens.dtype} {tuple(tokens.shape)}")
    check_tokens(tokens, vocabulary)
    if longest is not None and tokens.shape[1] > longest:
        raise InputError(f"the model reads {longest} tokens (its length), got {tokens.shape[1]}: cut the texts")
    if mask is None:
        return tokens, torch.ones_like(tokens, dtype=torch.bool)
    if mask.shape != tokens.shape:
        raise InputError(f"a mask has the shape of its tokens, {tuple(tokens.shape)}, got {tuple(mask.shape)}")
    return tokens, mask.bool()


def attended(mask: Tensor, causal: bool = False) -> Tensor:
    """Which tokens (True) each token attends to: the text's, with `causal` up to itself; (texts, 1, tokens, tokens).

    transformers takes a mask of this shape as it is. Of a mask (texts, tokens) it would ask whether all of it is True,
    and a GPU would have to wait for the answer. Padding before a causal text also sees itself, since a softmax over no
    token at all is not a number; nothing reads it.

    >>> attended(torch.tensor([[False, True, True]]), causal=True).int()
    tensor([[[[1, 0, 0],
              [0, 1, 0],
              [0, 1, 1]]]], dtype=torch.int32)
    """
    n = mask.shape[1]
    keys = mask[:, None, None, :].expand(-1, 1, n, n)
    if not causal:
        return keys
    place = torch.arange(n, device=mask.device)
    before = place <= place.unsqueeze(-1)
    return keys & before | (place == place.unsqueeze(-1))


def library() -> Any:
    """transformers, imported when the first model needs it (it takes seconds), or one line on how to get it."""
    try:
        import transformers
    except ImportError as problem:
        raise MissingExtra(f"models and tokenizers need transformers ({problem}): pip install 'teeter[text]'") from None
    return transformers
