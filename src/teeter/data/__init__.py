"""Data sets as tensors, and where they come from."""

from teeter.data.augment import crop_and_flip
from teeter.data.bits import bit_strings, labelled_bits
from teeter.data.bpe import BytePairEncoding, gpt2_bpe
from teeter.data.cifar10 import CIFAR10_CLASSES, cifar10
from teeter.data.digits import digits
from teeter.data.encoding import SPECIAL, encode, seen, vocabulary_size
from teeter.data.folders import ClassFolders, class_folders, labelled_folder
from teeter.data.holdings import Whereabouts, contents, obtain, whereabouts
from teeter.data.idx import read_idx
from teeter.data.imagenet import imagenet, imagenet_folder
from teeter.data.images import below_5, fashion_mnist, mnist
from teeter.data.labelled import LabelledImages, from_arrays
from teeter.data.modular import LabelledPairs, modular_addition
from teeter.data.own import Absent, absent, data_folder, owned
from teeter.data.packages import FetchFailed, MissingClient, Package, cache_folder, cached, fetch
from teeter.data.pairs import TextPairs, mrpc, qqp, read_pairs
from teeter.data.pictures import find_images
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.plain_pickle import read_plain_pickle
from teeter.data.progress import listening, tell
from teeter.data.sets import DATA, DataSet, find
from teeter.data.sparse_parity import SparseParity
from teeter.data.subset import subset
from teeter.data.svhn import svhn
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = [
    "Absent",
    "BytePairEncoding",
    "CIFAR10_CLASSES",
    "ClassFolders",
    "DATA",
    "DataSet",
    "FetchFailed",
    "LabelledImages",
    "LabelledPairs",
    "MissingClient",
    "PACKAGES",
    "Package",
    "Pinned",
    "SPECIAL",
    "SparseParity",
    "TextPairs",
    "Vocabulary",
    "Whereabouts",
    "absent",
    "below_5",
    "bit_strings",
    "cache_folder",
    "cached",
    "cifar10",
    "class_folders",
    "contents",
    "crop_and_flip",
    "data_folder",
    "digits",
    "encode",
    "fashion_mnist",
    "fetch",
    "find",
    "find_images",
    "from_arrays",
    "gpt2_bpe",
    "imagenet",
    "imagenet_folder",
    "labelled_bits",
    "labelled_folder",
    "listening",
    "mnist",
    "modular_addition",
    "mrpc",
    "obtain",
    "owned",
    "qqp",
    "read_idx",
    "read_pairs",
    "read_plain_pickle",
    "seen",
    "sequences",
    "subset",
    "svhn",
    "tell",
    "vocabulary_size",
    "whereabouts",
]
