"""Data sets as tensors."""

from teeter.data.vocabulary import Vocabulary, sequences

__all__ = ["Vocabulary", "sequences"]
