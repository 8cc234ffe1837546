"""Weights from a file, into a model; nothing in the file is run as code."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from teeter.errors import InputError

__all__ = ["fill", "fit", "read_weights"]

Module = TypeVar("Module", bound=nn.Module)


def read_weights(place: Path | str) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch file that holds tensors and nothing that runs."""
    place = Path(place)
    if not place.is_file():
        raise InputError(f"there is no file '{place}'")
    try:
        if place.suffix == ".safetensors":
            from safetensors.torch import load_file

            found = load_file(place)
        else:
            found = torch.load(place, map_location="cpu", weights_only=True)
    except Exception as problem:  # a damaged file may fail anywhere inside
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise InputError(f"cannot read weights from '{place}': {first}") from None
    if not (isinstance(found, dict) and all(isinstance(part, Tensor) for part in found.values())):
        raise InputError(f"'{place}' holds no weights by name: save a state_dict")
    return found


def fill(model: Module, place: Path | str) -> Module:
    """The model with the weights of a file, which names each of its own and no others."""
    return fit(model, read_weights(place), place)


def fit(model: Module, weights: dict[str, Tensor], place: Path | str) -> Module:
    """The same with weights that were read at that place, and perhaps renamed since."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:200]
        raise InputError(f"'{place}' does not fit the {type(model).__name__}: {first}") from None
    return model
