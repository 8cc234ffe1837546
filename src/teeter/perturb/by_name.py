"""Perturbations as a command line writes them: `patch:4`, `token:50257`, `hidden:encoder.layer.3`."""

from __future__ import annotations

from collections.abc import Callable

from teeter.errors import InputError, UnknownName
from teeter.perturb.bits import BitFlip
from teeter.perturb.hidden import EmbeddingNoise, HiddenNoise
from teeter.perturb.images import InputNoise, PatchNoise, PatchReplace
from teeter.perturb.noise import Perturbation
from teeter.perturb.tokens import TokenReplace
from teeter.perturb.weights import WeightNoise

__all__ = ["by_name"]

# name -> what follows the colon ("" for nothing, in brackets if it may be left out), and the maker.
_MAKERS: dict[str, tuple[str, Callable[[str, float, bool, tuple[int, ...]], Perturbation]]] = {
    "bit": ("", lambda text, s2, rel, skip: BitFlip()),
    "bit01": ("", lambda text, s2, rel, skip: BitFlip(values=(0, 1))),
    "token": ("[VOCABULARY]", lambda text, s2, rel, skip: TokenReplace(_whole(text), skip)),
    "patch": ("SIZE", lambda text, s2, rel, skip: PatchNoise(_whole(text), s2, rel)),
    "patch-replace": ("SIZE", lambda text, s2, rel, skip: PatchReplace(_whole(text), None, s2)),
    "input": ("", lambda text, s2, rel, skip: InputNoise(s2)),
    "embedding": ("[MODULE]", lambda text, s2, rel, skip: EmbeddingNoise(text or "norm", s2, rel, None, skip)),
    "hidden": ("MODULE", lambda text, s2, rel, skip: HiddenNoise(text, s2, rel, None, skip)),
    "weights": ("", lambda text, s2, rel, skip: WeightNoise(s2)),
}


def by_name(
    text: str,
    sigma2: float = 1.0,
    relative: bool = False,
    skip: tuple[int, ...] = (),
    vocabulary: int | None = None,
) -> Perturbation:
    """A perturbation from its name and, after a colon, its one parameter; `vocabulary` is that of a bare `token`.

    >>> by_name("patch:4", sigma2=0.5)
    PatchNoise(patch=4, sigma2=0.5, relative=False, field='pixel_values')
    """
    name, _, rest = text.partition(":")
    if name not in _MAKERS:
        raise UnknownName("perturbation", name, _MAKERS)
    wants, make = _MAKERS[name]
    if bool(rest) != bool(wants) and not wants.startswith("["):
        form = f"{name}:{wants}" if wants else name
        raise InputError(f"the perturbation is written '{form}', got '{text}'")
    if name == "token" and not rest:
        if vocabulary is None:
            raise InputError("how many tokens there are is not known here: write token:VOCABULARY")
        rest = str(vocabulary)
    return make(rest, sigma2, relative, skip)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"a size is a whole number, got '{text}'")
    return int(text)
