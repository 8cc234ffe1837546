"""Data sets as tensors, and where they come from."""

from teeter.data.cifar10 import CIFAR10_CLASSES, cifar10
from teeter.data.idx import read_idx
from teeter.data.images import below_5, fashion_mnist, mnist
from teeter.data.labelled import LabelledImages, from_arrays
from teeter.data.packages import FetchFailed, MissingClient, Package, cache_folder, cached, fetch
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.progress import listening
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = [
    "PACKAGES",
    "FetchFailed",
    "LabelledImages",
    "MissingClient",
    "Package",
    "Pinned",
    "Vocabulary",
    "cache_folder",
    "cached",
    "fashion_mnist",
    "fetch",
    "listening",
    "mnist",
    "read_idx",
    "sequences",
]
