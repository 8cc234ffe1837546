"""Pairs of sentences with labels: MRPC and QQP (V section 6, appendix D).

No package has them: they are read from the user's own files, in the folders `mrpc` and `qqp` (or `MRPC` and `QQP`, as
GLUE calls them) of the folder that TEETER_DATA names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from teeter.data.own import Absent, absent, owned
from teeter.errors import InputError, UnknownName

__all__ = ["TextPairs", "mrpc", "own_pairs", "qqp", "read_pairs"]

# Data set -> split -> the files that may hold it, the first that is there: the fullest one that has labels, which
# GLUE's test files have not.
_FILES = {
    "mrpc": {
        "train": ("msr_paraphrase_train.txt", "train.tsv"),
        "dev": ("dev.tsv",),
        "test": ("msr_paraphrase_test.txt", "test.tsv"),
    },
    "qqp": {
        "train": ("train.tsv", "train10k.tsv"),
        "dev": ("dev.tsv",),
        "test": ("test10k.tsv", "test.tsv"),
    },
}
# The names of the label, the first and the second text in a header; a file without one has them in this order.
_COLUMNS = {
    "mrpc": ("Quality", "#1 String", "#2 String"),
    "qqp": ("is_duplicate", "question1", "question2"),
}
_CLASSES = {"mrpc": ("different", "paraphrase"), "qqp": ("different", "duplicate")}
_BROKEN = 0.01  # GLUE's QQP has a few lines that another line break cut in two; a wrong file has more than a few


@dataclass(frozen=True, eq=False)
class TextPairs:
    """Two texts and the number of a class for each pair; `left_out` lines of their file could not be read as a pair.

    >>> pairs = TextPairs(("How so?", "Who?"), ("Why?", "When?"), torch.tensor([1, 0]), ("different", "duplicate"))
    >>> len(pairs), len(pairs[:1]), pairs[:1].second
    (2, 1, ('Why?',))
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    labels: Tensor
    classes: tuple[str, ...]
    left_out: int = 0

    def __post_init__(self) -> None:
        if len(self.first) != len(self.second):
            raise InputError(f"a pair has two texts, got {len(self.first)} first and {len(self.second)} second ones")
        if self.labels.dtype != torch.int64 or self.labels.shape != (len(self.first),):
            raise InputError(
                f"{len(self.first)} pairs have as many int64 labels, got {self.labels.dtype} {tuple(self.labels.shape)}"
            )
        outside = self.labels[(self.labels < 0) | (self.labels >= len(self.classes))]
        if len(outside):
            raise InputError(f"labels count from 0 to {len(self.classes) - 1}, got {int(outside[0])}")

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, some: slice) -> TextPairs:
        """Some of the pairs, such as the first thousand."""
        return replace(self, first=self.first[some], second=self.second[some], labels=self.labels[some])


def mrpc(split: str = "train") -> TextPairs:
    """Microsoft Research's paraphrase corpus (Dolan and Brockett 2005): 4,076 pairs to train on, 1,725 to test.

    Read from msr_paraphrase_train.txt and msr_paraphrase_test.txt, or from GLUE's train.tsv (3,668) and dev.tsv (408).
    """
    return _read("mrpc", split)


def qqp(split: str = "train") -> TextPairs:
    """Quora's question pairs (Iyer et al. 2017), from GLUE's train.tsv and dev.tsv, or from train10k.tsv and
    test10k.tsv: 10,000 each, half of them duplicates."""
    return _read("qqp", split)


def read_pairs(name: str, place: Path | str) -> TextPairs:
    """A file in one of the layouts of `name`, "mrpc" or "qqp".

    Columns are separated by tabs; quotes mean nothing. A header may name them, as GLUE's and the original MRPC's do;
    without one they are label, first text, second text, and in QQP whatever follows; MRPC may have its two IDs before
    the texts. Broken bytes become replacement marks.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "few.tsv"
    >>> _ = place.write_text("1\\tWhy?\\tHow so?\\t18\\n0\\tWho?\\tWhen?\\t211\\n")
    >>> few = read_pairs("qqp", place)
    >>> few.first, few.second, few.labels
    (('Why?', 'Who?'), ('How so?', 'When?'), tensor([1, 0]))
    """
    if name not in _FILES:
        raise UnknownName("data set of pairs", name, _FILES)
    place = Path(place)
    try:
        content = place.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as problem:
        raise InputError(f"cannot read {place}: {problem.strerror}") from None
    # Not splitlines: a sentence may hold one of the rarer characters that it takes for the end of a line.
    rows = [line.removesuffix("\r").split("\t") for line in content.split("\n")]
    lines = [(number, row) for number, row in enumerate(rows, 1) if row != [""]]
    if lines and lines[0][1][0] not in ("0", "1"):
        places = _places(name, place, lines.pop(0)[1])
    else:
        places = _unnamed(name, place, lines[0][1] if lines else [])
    known = [(number, _pair(row, places)) for number, row in lines]
    pairs = [pair for _, pair in known if pair is not None]
    broken = [number for number, pair in known if pair is None]
    if not pairs or len(broken) > _BROKEN * len(known):
        which = f"line {broken[0]} is none" if broken else "there are no lines"
        raise InputError(f"{place} does not hold pairs with labels 0 or 1: {which}")
    labels, first, second = zip(*pairs, strict=True)
    return TextPairs(first, second, torch.tensor(labels), _CLASSES[name], len(broken))


def _read(name: str, split: str) -> TextPairs:
    if split not in _FILES[name]:
        raise UnknownName("split", split, _FILES[name])
    place = own_pairs(name, split)
    if place is None:
        raise absent(name, " or ".join(_FILES[name][split]), name)
    return read_pairs(name, place)


def own_pairs(name: str, split: str) -> Path | None:
    """The user's own file that `mrpc` or `qqp` reads."""
    return owned(f"{folder}/{file}" for file in _FILES[name][split] for folder in (name, name.upper()))


def _places(name: str, place: Path, header: list[str]) -> tuple[int, int, int]:
    label, first, second = _COLUMNS[name]
    if label not in header and first in header:
        raise Absent(f"{place} has no labels (GLUE keeps those of its test files to itself): use another split")
    missing = [column for column in _COLUMNS[name] if column not in header]
    if missing:
        raise InputError(f"{place} has no column '{missing[0]}', but {', '.join(header)!r:.80}")
    return header.index(label), header.index(first), header.index(second)


def _unnamed(name: str, place: Path, row: list[str]) -> tuple[int, int, int]:
    """The columns of a file without a header, by its first line."""
    if name == "mrpc" and len(row) > 3:
        if len(row) == 5 and row[1].isdigit() and row[2].isdigit():
            return 0, 3, 4
        raise InputError(
            f"{place} has no header and {len(row)} columns: MRPC's are label, ID, ID, first and second text, "
            f"or label, first and second text"
        )
    return 0, 1, 2


def _pair(row: list[str], places: tuple[int, int, int]) -> tuple[int, str, str] | None:
    if len(row) <= max(places) or row[places[0]] not in ("0", "1"):
        return None
    return int(row[places[0]]), row[places[1]], row[places[2]]
