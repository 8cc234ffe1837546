"""Texts as token numbers, and back as words to look at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.integrations.adapters import library
from teeter.integrations.pretrained import quiet, read_json
from teeter.perturb.inputs import Inputs, field

__all__ = ["read_labels", "read_texts", "special_tokens", "tokenize", "tokenizer_of", "words"]

_LONGEST = 1 << 20  # a tokenizer without a limit says so by an absurdly large number


def tokenizer_of(folder: Path | str) -> Any:
    """The tokenizer of a model directory; one that wants code of its own run is refused."""
    folder = Path(folder)
    if "auto_map" in read_json(folder / "tokenizer_config.json"):
        raise InputError(f"'{folder}' wants code of its own run (auto_map in tokenizer_config.json): never done here")
    find = library().AutoTokenizer.from_pretrained
    try:
        with quiet():
            return find(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as problem:  # a damaged file may fail anywhere inside
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise InputError(f"cannot load the tokenizer of '{folder}': {first}") from None


def tokenize(texts: Sequence[str], tokenizer: Any, max_length: int | None = None) -> dict[str, Tensor]:
    """Token numbers and mask (and token types, where the model wants them), padded on the right to the longest text.

    `tokenizer` is one of transformers, or the directory of a model. Texts are cut to `max_length` tokens, by default
    to as many as the tokenizer says its model reads.
    """
    tokenizer = tokenizer_of(tokenizer) if isinstance(tokenizer, str | Path) else tokenizer
    if isinstance(texts, str) or not texts:
        raise InputError(f"texts are a list of at least one text, got {texts!r:.40}")
    if max_length is not None and max_length < 1:
        raise InputError(f"max_length is at least 1, got {max_length}")
    limit = min(max_length or _LONGEST, tokenizer.model_max_length)
    cut = {"truncation": True, "max_length": limit} if limit < _LONGEST else {}
    with quiet():
        encoded = tokenizer(list(texts), return_attention_mask=True, **cut)
    # Padded here: some tokenizers (GPT-2's) have no padding token and refuse, though under a mask any number will do.
    filler = {"input_ids": tokenizer.pad_token_id or 0}
    longest = max(map(len, encoded["input_ids"]))
    if longest == 0:
        raise InputError("every text is empty: there are no tokens to read")
    return {
        name: torch.tensor([row + [filler.get(name, 0)] * (longest - len(row)) for row in rows])
        for name, rows in encoded.items()
        if name in ("input_ids", "attention_mask", "token_type_ids")
    }


def special_tokens(tokenizer: Any) -> tuple[int, ...]:
    """Numbers of the tokens that are structure and not text (start, end, separator, padding), for `skip`.

    The token for unknown words is text, unless it also has another role.
    """
    others = [token for role, token in tokenizer.special_tokens_map.items() if role != "unk_token"]
    text = set() if tokenizer.unk_token in others else {tokenizer.unk_token_id}
    return tuple(sorted(set(tokenizer.all_special_ids) - text))


def words(tokenizer: Any, inputs: Inputs) -> list[list[str]]:
    """Every token of every text as it is read, blanks made visible, up to where nothing but padding follows."""
    ids = field(inputs, "input_ids")
    padded = not isinstance(inputs, Tensor) and "attention_mask" in inputs
    mask = field(inputs, "attention_mask").bool() if padded else torch.ones_like(ids, dtype=torch.bool)
    ends = (mask * torch.arange(1, ids.shape[1] + 1, device=mask.device)).amax(-1).tolist()
    rows = zip(ids.tolist(), ends, strict=True)
    return [[_shown(tokenizer.decode([token])) for token in row[:end]] for row, end in rows]


def _shown(word: str) -> str:
    bare = word.strip()
    return bare if bare else "⏎" if "\n" in word else "␣"


def read_texts(place: Path | str, column: str = "text") -> list[str]:
    """One column of a csv file."""
    import pandas

    place = Path(place)
    if not place.is_file():
        raise InputError(f"there is no file '{place}'")
    try:
        table = pandas.read_csv(place, dtype=str, keep_default_na=False)
    except (ValueError, OSError, pandas.errors.ParserError) as problem:
        raise InputError(f"cannot read '{place}': {str(problem).strip().splitlines()[0]}") from None
    if column not in table.columns:
        raise InputError(f"'{place}' has no column '{column}': name one of {', '.join(map(str, table.columns))}")
    if table.empty:
        raise InputError(f"'{place}' has no rows")
    return table[column].tolist()


def read_labels(place: Path | str, column: str = "label") -> tuple[Tensor, tuple[str, ...]]:
    """The classes in a column of a csv file: the number of each row's, and their names in order.

    Names that are whole numbers are in the order of these, all others in that of the alphabet.
    """
    names = read_texts(place, column)
    if "" in names:
        raise InputError(f"row {names.index('') + 1} of '{place}' has nothing in its column '{column}'")
    whole = all(re.fullmatch("-?[0-9]+", name) for name in names)
    classes = tuple(sorted({*names}, key=int if whole else str))
    number = {name: i for i, name in enumerate(classes)}
    return torch.tensor([number[name] for name in names]), classes
