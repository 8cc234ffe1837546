"""What `teeter measure` and `teeter doctor` are given, made into a model, its inputs and a perturbation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from teeter.cli.fetching import fetching
from teeter.errors import InputError, TeeterError

if TYPE_CHECKING:
    from torch import Tensor

    from teeter.integrations import Loaded
    from teeter.perturb import Inputs

__all__ = ["open_given"]

_LOADING = ("limit", "seed", "weights", "device", "text_column", "tokenizer", "max_length", "image_size")
_FILES = (".npz", ".npy", ".csv")
_OF_TOKENS = ("token", "embedding", "hidden")  # perturbations of texts


def open_given(given: dict[str, Any]) -> tuple[Loaded, Any]:
    """What a command was given: the model with its inputs, and the perturbation, which for texts leaves special tokens
    alone; tried with one small forward."""
    from teeter.integrations import load
    from teeter.perturb import by_name

    perturb = given["perturb"]
    noise = (1.0 if given["sigma2"] is None else given["sigma2"], given["relative"])
    # What is misspelt, or says nothing here, is an error before anything is loaded.
    _refuse_idle(given, perturb and by_name(perturb, *noise, vocabulary=2))
    wanted = {name: given[name] for name in _LOADING}
    wanted |= {name: _numbers(given[name]) for name in ("mean", "std")}
    wanted["options"] = dict(map(_option, given["options"] or ()))
    with fetching():
        loaded = load(given["model"], given["data"], **wanted)
    _check_bits(perturb, loaded.inputs)
    loaded = _fitted(loaded, tokens=(perturb or "").partition(":")[0] in _OF_TOKENS)
    skip = () if given["special_tokens"] else loaded.skip
    return loaded, perturb and by_name(perturb, *noise, skip, loaded.vocabulary)


def _refuse_idle(given: dict[str, Any], nudge: Any) -> None:
    """Options that would be passed over are refused."""
    for name in ("sigma2", "relative"):
        if given[name] not in (None, False) and not hasattr(nudge, name):
            told = f"to --perturb {given['perturb']}" if nudge else "without --perturb"
            raise InputError(f"--{name} does not apply {told}")
    suffix = given["data"].suffix
    for name in ("mean", "std", "image_size"):
        if given[name] is not None and suffix in _FILES:
            raise InputError(f"--{name.replace('_', '-')} is for images, and does not apply to '{given['data']}'")
    if given["max_length"] is not None and suffix != ".csv":
        raise InputError(f"--max-length is for texts, and does not apply to '{given['data']}'")


def _check_bits(perturb: str | None, inputs: Inputs) -> None:
    """Bits under the other of the two names they have on the command line."""
    from torch import Tensor

    pairs = {"bit": (-1, 1), "bit01": (0, 1)}
    if perturb not in pairs or not isinstance(inputs, Tensor):
        return
    own, (other, values) = pairs.pop(perturb), pairs.popitem()
    if _holds(inputs, values) and not _holds(inputs, own):
        raise InputError(f"the inputs are bits of {values[0]} and {values[1]}: --perturb {other}")


def _holds(inputs: Tensor, values: tuple[int, int]) -> bool:
    return bool(((inputs == values[0]) | (inputs == values[1])).all())


def _fitted(loaded: Loaded, tokens: bool) -> Loaded:
    """Inputs in the numbers the model computes in, where it takes them so; otherwise as they came."""
    cast = replace(loaded, inputs=_cast(loaded, tokens))
    try:
        _try(cast)
    except InputError:
        try:
            _try(loaded)  # whole numbers may be tokens after all
        except InputError:
            pass
        else:
            return loaded
        raise
    return cast


def _cast(loaded: Loaded, tokens: bool) -> Inputs:
    """Inputs in the type of the first floating parameter; token numbers and masks stay whole numbers."""
    from torch import Tensor, nn

    model, inputs = loaded.model, loaded.inputs
    if not isinstance(model, nn.Module):
        return inputs
    kind = next((part.dtype for part in model.parameters() if part.is_floating_point()), None)
    if kind is None:
        return inputs
    if not isinstance(inputs, Tensor):
        return {name: part.to(kind) if part.is_floating_point() else part for name, part in inputs.items()}
    tokens = tokens or loaded.tokenizer is not None or any(isinstance(part, nn.Embedding) for part in model.modules())
    return inputs if tokens and not inputs.is_floating_point() else inputs.to(kind)


def _try(loaded: Loaded) -> None:
    """One small forward: what a model of the user's raises is the user's to mend, and not a bug here."""
    import torch

    from teeter.perturb.inputs import count, take

    try:
        with torch.no_grad():
            loaded.model(take(loaded.inputs, torch.arange(min(2, count(loaded.inputs)))))
    except TeeterError:
        raise
    except Exception as problem:
        raise InputError(f"the model does not take these inputs: {type(problem).__name__}: {problem}") from None


def _option(text: str) -> tuple[str, int | float | str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"a size is set as name=value, got '{text}'")
    for kind in (int, float):
        with suppress(ValueError):
            return name, kind(value)
    return name, value


def _numbers(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"mean and std are numbers with commas between them, got '{text}'") from None
