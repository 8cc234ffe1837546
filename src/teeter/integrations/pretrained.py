"""A model directory, as `save_pretrained` writes it, made ready to measure; nothing in it is run as code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from teeter.errors import InputError
from teeter.integrations.adapters import KINDS, Keywords, NextToken, adapt, kind_of, library

__all__ = ["encoder", "pretrained", "quiet", "read_json"]

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


def pretrained(folder: Path | str) -> Keywords | NextToken:
    """The model of a directory (config.json and weights): a text or image classifier, or a causal language model.

    It is in evaluation mode and in float32. Weights come from safetensors, or from a torch file read as weights alone;
    a directory that wants code of its own run, or that lacks weights of its model, is refused.
    """
    folder = Path(folder)
    config = _config(folder)
    name = _architecture(folder, config)
    library()
    if kind_of(name) is None:
        raise InputError(f"'{folder}' holds a {name}: what can be measured is model {_listed(KINDS)}")
    return adapt(_load(folder, name))


def encoder(folder: Path | str) -> Any:
    """The bare encoder of a directory, whatever head it was saved with: what a linear probe is put on."""
    folder = Path(folder)
    _config(folder)
    return _load(folder, "AutoModel")


def read_json(place: Path) -> dict[str, Any]:
    """The object in a JSON file, or one line about why there is none."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"'{place.parent}' is no model directory: it has no {place.name}") from None
    except (ValueError, OSError) as problem:
        raise InputError(f"cannot read '{place}': {problem}") from None
    if not isinstance(found, dict):
        raise InputError(f"cannot read '{place}': it holds no JSON object")
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Without the bars and remarks of transformers, whose errors reach the caller all the same."""
    from transformers.utils import logging

    loud, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(loud)
        if bars:
            logging.enable_progress_bar()


def _config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    if _wants_code(config):
        raise InputError(f"'{folder}' wants code of its own run (auto_map in config.json), which teeter never does")
    if not any((folder / name).is_file() for name in _WEIGHTS):
        raise InputError(f"'{folder}' has no weights: it needs {_listed(_WEIGHTS)}")
    return config


def _wants_code(value: Any) -> bool:
    """Whether any part of a configuration names code: a class of its own, or attention from somewhere else."""
    if isinstance(value, dict):
        attention = (value.get("attn_implementation"), value.get("_attn_implementation"))
        foreign = any(isinstance(name, str) and "/" in name for name in attention)
        return foreign or "auto_map" in value or any(_wants_code(part) for part in value.values())
    return isinstance(value, list) and any(_wants_code(part) for part in value)


def _architecture(folder: Path, config: dict[str, Any]) -> str:
    named = config.get("architectures")
    if not (isinstance(named, list) and named and isinstance(named[0], str)):
        raise InputError(f"'{folder}' does not say what it holds: config.json has no 'architectures'")
    return named[0]


def _load(folder: Path, name: str) -> Any:
    transformers = library()
    kind = getattr(transformers, name, None)
    if kind is None:
        raise InputError(f"'{folder}' holds a {name}, which transformers {transformers.__version__} does not know")
    try:
        with quiet():
            model, report = kind.from_pretrained(
                str(folder),
                local_files_only=True,
                trust_remote_code=False,
                weights_only=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except Exception as problem:  # a damaged file may fail anywhere inside
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise InputError(f"cannot load the {name} of '{folder}': {first}") from None
    lacking = sorted(report["missing_keys"])
    if lacking and name != "AutoModel":  # a bare encoder may lack a pooler that nobody reads
        raise InputError(f"'{folder}' lacks {len(lacking)} weights of its {name} ({lacking[0]}): they would be random")
    return model.eval()


def _listed(names: Any) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
