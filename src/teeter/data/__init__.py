"""Data sets as tensors, and where they come from."""

from teeter.data.cifar_c import CorruptedImages, cifar10_c
from teeter.data.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES, corrupted
from teeter.data.idx import read_idx
from teeter.data.images import LabelledImages, fashion_mnist, mnist
from teeter.data.packages import FetchFailed, MissingClient, Package, cache_folder, fetch
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = [
    "CORRUPTIONS",
    "FAMILIES",
    "PACKAGES",
    "SEVERITIES",
    "CorruptedImages",
    "FetchFailed",
    "LabelledImages",
    "MissingClient",
    "Package",
    "Pinned",
    "Vocabulary",
    "cache_folder",
    "cifar10_c",
    "corrupted",
    "fashion_mnist",
    "fetch",
    "mnist",
    "read_idx",
    "sequences",
]
