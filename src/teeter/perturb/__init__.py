"""What is nudged: a bit, a token, a patch, an embedding, a hidden state, the whole input, the weights."""

from teeter.perturb.bits import BitFlip
from teeter.perturb.by_name import by_name
from teeter.perturb.hidden import EmbeddingNoise, HiddenNoise
from teeter.perturb.images import InputNoise, PatchNoise, PatchReplace
from teeter.perturb.inputs import Inputs
from teeter.perturb.noise import Noise, Perturbation
from teeter.perturb.tokens import TokenReplace
from teeter.perturb.weights import WeightNoise

__all__ = [
    "BitFlip",
    "EmbeddingNoise",
    "HiddenNoise",
    "InputNoise",
    "Inputs",
    "Noise",
    "PatchNoise",
    "PatchReplace",
    "Perturbation",
    "TokenReplace",
    "WeightNoise",
    "by_name",
]
