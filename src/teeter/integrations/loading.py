"""Models and inputs as a command line names them. Nothing here runs code from a data file."""

from __future__ import annotations

import importlib
import inspect
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from teeter.errors import InputError
from teeter.perturb import Inputs

__all__ = ["load_inputs", "load_model"]


def load_model(name: str) -> Callable[[Any], Any]:
    """`module:name`, where name is a model, a function that is one, or a factory that takes no arguments.

    The module is looked for in the current folder too. A torch module is put into evaluation mode.

    >>> load_model("teeter.cube:parity")(torch.tensor([[1, -1, -1]]))
    tensor([1])
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise InputError(f"a model is written 'module:name', got '{name}'")
    sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
    except Exception as problem:  # whatever the user's own code raises
        raise InputError(f"cannot import the module '{module}': {problem}") from None
    finally:
        sys.path.remove("")
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"the module '{module}' has no '{attribute}'")
        found = getattr(found, part)
    if not isinstance(found, nn.Module) and callable(found) and _takes_nothing(found):
        found = found()
    if isinstance(found, nn.Module):
        return found.eval()
    if not callable(found):
        raise InputError(f"'{name}' is no model: it is {type(found).__name__} and cannot be called")
    return found


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind == inspect.Parameter.VAR_KEYWORD for p in given)


def load_inputs(place: Path | str) -> Inputs:
    """Inputs from an .npz or .npy file: one array is the inputs, several are a mapping (`input_ids`, ...)."""
    place = Path(place)
    if place.suffix not in (".npz", ".npy"):
        raise InputError(f"inputs come from an .npz or .npy file, got '{place}'")
    if not place.is_file():
        raise InputError(f"there is no file '{place}'")
    try:
        loaded = np.load(place, allow_pickle=False)  # a pickle could run code
        arrays = {name: loaded[name] for name in loaded.files} if place.suffix == ".npz" else {"inputs": loaded}
        tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    except (ValueError, OSError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile) as problem:
        raise InputError(f"cannot read '{place}': {problem}") from None
    if not tensors or any(tensor.ndim == 0 for tensor in tensors.values()):
        raise InputError(f"'{place}' holds no array of inputs")
    tensors = {name: t.float() if t.dtype == torch.float64 else t for name, t in tensors.items()}
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors
