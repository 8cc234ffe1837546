"""Models as a command line names them: a folder, a name from the zoo, or `module:name`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from teeter.errors import InputError, UnknownName
from teeter.integrations.adapters import Keywords, NextToken, adapt
from teeter.integrations.pretrained import pretrained
from teeter.integrations.timm_models import TimmClassifier, is_timm, timm_directory
from teeter.integrations.weights import fill
from teeter.models import MODELS

__all__ = ["load_model"]


def load_model(
    name: str, weights: Path | str | None = None, options: Mapping[str, Any] | None = None, seed: int = 0
) -> Callable[[Any], Any]:
    """A model directory as `save_pretrained` writes it, or as timm publishes them; a name from `teeter.models.MODELS`;
    or `module:name`, where name is a model, a function that is one, or a factory that takes no arguments.

    The module is looked for in the current folder too. A torch module is put into evaluation mode, and a model of
    transformers adapted. `weights` is a file of them, safetensors or a torch file read as weights alone; a model of the
    zoo without one is untrained, the same for the same seed. `options` are its sizes, where they are not the paper's.

    >>> load_model("teeter.cube:parity")(torch.tensor([[1, -1, -1]]))
    tensor([1])
    >>> load_model("cnn", options={"classes": 3})(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """
    known = name in MODELS and not Path(name).is_dir()
    if options and not known:
        raise InputError(
            f"options are for models of the zoo ({', '.join(MODELS)}), got {', '.join(options)} for '{name}'"
        )
    found = _made(name, options or {}, seed) if known else _directory(name) if Path(name).is_dir() else _imported(name)
    if weights is not None:
        inside = found.model if isinstance(found, Keywords | NextToken | TimmClassifier) else found
        if not isinstance(inside, nn.Module):
            raise InputError(f"'{name}' is {type(found).__name__} and has no weights to fill from '{weights}'")
        fill(inside, weights)
    return found


def _directory(name: str) -> nn.Module:
    return timm_directory(name) if is_timm(name) else pretrained(name)


def _made(name: str, options: Mapping[str, Any], seed: int) -> nn.Module:
    taken = inspect.signature(MODELS[name]).parameters
    for option in options:
        if option not in taken:
            raise UnknownName(f"option of {name}", option, taken)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not torch's own, which would seed the GPUs as well
        return MODELS[name](**options).eval()


def _imported(name: str) -> Callable[[Any], Any]:
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise InputError(
            f"a model is written 'module:name', is a folder that save_pretrained wrote, or one of "
            f"{', '.join(MODELS)}; got '{name}'"
        )
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
        try:
            found = found()
        except Exception as problem:
            raise InputError(f"the factory '{name}' failed: {type(problem).__name__}: {problem}") from None
    if isinstance(found, nn.Module):
        return adapt(found.eval())
    if not callable(found):
        raise InputError(f"'{name}' is no model: it is {type(found).__name__} and cannot be called")
    return found


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind == inspect.Parameter.VAR_KEYWORD for p in given)
