"""Texts and pairs of texts as token numbers, the way RoBERTa has them: <s> a </s></s> b </s> (V section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

from teeter.data.bpe import BytePairEncoding
from teeter.data.pairs import TextPairs
from teeter.errors import InputError

__all__ = ["END", "FIRST_WORD", "PADDING", "SPECIAL", "START", "UNKNOWN", "encode", "seen", "vocabulary_size"]

START, PADDING, END, UNKNOWN = 0, 1, 2, 3  # RoBERTa's <s>, <pad>, </s>, <unk>
FIRST_WORD = 4  # the number of the encoding's token 0
SPECIAL = (START, PADDING, END)  # structure and not text: for the `skip` of a perturbation


def encode(
    texts: TextPairs | Sequence[str], bpe: BytePairEncoding, length: int = 128, known: Tensor | None = None
) -> dict[str, Tensor]:
    """`input_ids` and `attention_mask` of shape (texts, longest), padded on the right, no text longer than `length`.

    A pair that is too long loses tokens from the end of the longer of the two, one by one (from the second where they
    are equally long). Token t of `bpe` has the number 4 + t; RoBERTa's own order is another, which a model trained from
    scratch cannot tell. With `known` tokens (see `seen`), the i-th of them has the number 4 + i, and all others are
    UNKNOWN.

    >>> code = BytePairEncoding({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    >>> pairs = TextPairs(("ab", "aba"), ("b", "a"), torch.tensor([0, 1]), ("no", "yes"))
    >>> encode(pairs, code)["input_ids"]
    tensor([[0, 6, 2, 2, 5, 2, 1],
            [0, 6, 4, 2, 2, 4, 2]])
    >>> encode(["ab", "b"], code, known=torch.tensor([2]))["input_ids"]
    tensor([[0, 4, 2],
            [0, 3, 2]])
    """
    marks = 4 if isinstance(texts, TextPairs) else 2
    if not len(texts) or length < marks:
        raise InputError(
            f"there is at least one text and room for {marks} marks, got {len(texts)} texts and length = {length}"
        )
    if known is not None and bool(((known < 0) | (known >= len(bpe))).any()):
        low, high = int(known.min()), int(known.max())
        raise InputError(f"known tokens are numbers from 0 to {len(bpe) - 1}, got some from {low} to {high}")
    room = length - marks
    if isinstance(texts, TextPairs):
        both = zip(_words(texts.first, bpe), _words(texts.second, bpe), strict=True)
        rows = [[START, *a, END, END, *b, END] for a, b in (_cut(a, b, room) for a, b in both)]
    else:
        rows = [[START, *a[:room], END] for a in _words(texts, bpe)]
    sizes = torch.tensor([len(row) for row in rows])
    mask = torch.arange(int(sizes.max())) < sizes.unsqueeze(-1)
    tokens = torch.full(mask.shape, PADDING)
    tokens[mask] = torch.tensor(list(chain.from_iterable(rows)))
    if known is not None:
        table = torch.full((vocabulary_size(bpe),), UNKNOWN)
        table[:FIRST_WORD] = torch.arange(FIRST_WORD)
        table[known + FIRST_WORD] = torch.arange(FIRST_WORD, FIRST_WORD + len(known))
        tokens = table[tokens]
    return {"input_ids": tokens, "attention_mask": mask.long()}


def seen(texts: TextPairs | Sequence[str], bpe: BytePairEncoding) -> Tensor:
    """The tokens of `bpe` that occur in these texts, in their order: a vocabulary without the ones never trained on.

    >>> code = BytePairEncoding({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    >>> seen(["abab", "b"], code)
    tensor([1, 2])
    """
    every = (*texts.first, *texts.second) if isinstance(texts, TextPairs) else texts
    return torch.tensor(sorted({*chain.from_iterable(bpe.encode(every))}), dtype=torch.int64)


def vocabulary_size(bpe: BytePairEncoding, known: Tensor | None = None) -> int:
    """How many numbers `encode` may give: what a model and `TokenReplace` take as their vocabulary.

    >>> code = BytePairEncoding({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    >>> vocabulary_size(code), vocabulary_size(code, known=torch.tensor([2]))
    (7, 5)
    """
    return FIRST_WORD + (len(bpe) if known is None else len(known))


def _words(texts: Sequence[str], bpe: BytePairEncoding) -> list[list[int]]:
    return [[FIRST_WORD + token for token in row] for row in bpe.encode(texts)]


def _cut(a: list[int], b: list[int], room: int) -> tuple[list[int], list[int]]:
    """As many as fit: a short text stays whole, two long ones share the room, the first taking the odd token."""
    return a[: max(room - len(b), (room + 1) // 2)], b[: max(room - len(a), room // 2)]
