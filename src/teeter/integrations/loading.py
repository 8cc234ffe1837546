"""Models and inputs as a command line names them. Nothing here runs code from a data file or a model directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from teeter.data import DATA, DataSet, LabelledImages, subset
from teeter.data.arrays import read_array, read_arrays
from teeter.errors import InputError
from teeter.integrations.adapters import longest_text
from teeter.integrations.images import ImageFormat, find_images, read_images
from teeter.integrations.model_by_name import load_model
from teeter.integrations.text import read_texts, special_tokens, tokenize, tokenizer_of
from teeter.models import MODELS
from teeter.perturb import Inputs
from teeter.perturb.inputs import count, take

__all__ = ["Loaded", "load", "load_inputs"]

_DATA_SETS = sorted(name for name, known in DATA.items() if known.load or known.pictures)


@dataclass(frozen=True)
class Loaded:
    """A model and the inputs it reads; for texts also whose tokens they are."""

    model: Callable[[Any], Any]
    inputs: Inputs
    tokenizer: Any = None
    skip: tuple[int, ...] = ()  # numbers of special tokens: structure, not text
    vocabulary: int | None = None
    untrained: bool = False  # of the zoo, and without weights


def load(
    model: str,
    data: Path | str,
    *,
    limit: int | None = None,
    seed: int = 0,
    weights: Path | str | None = None,
    options: Mapping[str, Any] | None = None,
    device: str = "cpu",
    tokenizer: Path | str | None = None,
    text_column: str = "text",
    max_length: int | None = None,
    image_size: int | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> Loaded:
    """A model as `load_model` takes it, with inputs as `load_inputs` does, prepared in the model's own way.

    A model directory brings its tokenizer and its image format; a model of `module:name` may have them as attributes
    `tokenizer` and `image_format`. What is given here comes before either.

    >>> loaded = load("torch.nn:Flatten", "bits.npy")
    Traceback (most recent call last):
    teeter.errors.InputError: there is no file 'bits.npy'
    """
    data, folder = Path(data), Path(model) if Path(model).is_dir() else None
    pictures = data.is_dir() or _data_set(data) is not None
    network = load_model(model, weights, options)
    untrained = folder is None and model in MODELS and weights is None
    reader: Any = tokenizer or _own(network, "tokenizer")
    if reader is None and folder is not None and (folder / "tokenizer_config.json").is_file():
        reader = folder
    reader = tokenizer_of(reader) if isinstance(reader, str | Path) and not pictures else reader
    if data.suffix == ".csv" and max_length is None:
        max_length = longest_text(network)
    inputs = load_inputs(
        data,
        tokenizer=reader,
        text_column=text_column,
        max_length=max_length,
        image_format=_image_format(network, folder, image_size, mean, std) if pictures else None,
        limit=limit,
        seed=seed,
    )
    place = _device(device)
    inputs = inputs.to(place) if isinstance(inputs, Tensor) else {name: part.to(place) for name, part in inputs.items()}
    network = network.to(place) if isinstance(network, nn.Module) else network
    if reader is None or not _is_text(inputs):
        return Loaded(network, inputs, untrained=untrained)
    sizes = [len(reader), getattr(_own(network, "config"), "vocab_size", None)]
    return Loaded(network, inputs, reader, special_tokens(reader), min(size for size in sizes if size), untrained)


def _own(network: Any, name: str) -> Any:
    """What a model, or the model inside an adapter, has under that name."""
    return getattr(network, name, getattr(getattr(network, "model", None), name, None))


def _is_text(inputs: Inputs) -> bool:
    tokens = inputs if isinstance(inputs, Tensor) else inputs.get("input_ids")
    return tokens is not None and tokens.ndim == 2 and not tokens.is_floating_point()


def load_inputs(
    place: Path | str,
    *,
    tokenizer: Any = None,
    text_column: str = "text",
    max_length: int | None = None,
    image_format: ImageFormat | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Inputs:
    """Inputs from a file or folder: all of them, or a random `limit` of them, the same for the same seed.

    An .npz or .npy file holds arrays: one is the inputs, several are a mapping (`input_ids`, ...). A .csv file holds
    texts, which need a tokenizer. A folder holds images. A name is a data set's (`teeter data list`): its training
    images or, as in `mnist:test`, those to test on.
    """
    place = Path(place)
    if (named := _data_set(place)) is not None:
        known, split = named
        if known.load is not None:
            images = known.load(split)
            return _standardised(images.take(subset(len(images), limit, seed)), image_format)
        if known.pictures is not None:
            place = known.pictures(split)
    if place.is_dir():
        found = find_images(place)
        return read_images([found[i] for i in subset(len(found), limit, seed)], image_format)
    if place.suffix == ".csv":
        texts = read_texts(place, text_column)
        if tokenizer is None:
            raise InputError("texts need a tokenizer: the model's own, or a folder that holds one (--tokenizer)")
        return tokenize([texts[i] for i in subset(len(texts), limit, seed)], tokenizer, max_length)
    arrays = _arrays(place)
    return arrays if limit is None else take(arrays, subset(count(arrays), limit, seed))


def _data_set(place: Path) -> tuple[DataSet, str] | None:
    """A data set of images by its name, and the split; a file or folder of that name comes first."""
    name, _, split = str(place).partition(":")
    return (DATA[name], split or "train") if name in _DATA_SETS and not place.exists() else None


def _standardised(known: LabelledImages, form: ImageFormat | None) -> Tensor:
    """Pixels from 0 to 1, or as the format has them; data sets keep their size."""
    if form is None or form == ImageFormat():
        return known.floats()
    if form.resize or form.crop or len(form.mean) != known.images.shape[1] or form.scale != 1 / 255:
        raise InputError(
            f"the images are {tuple(known.images.shape[1:])}, pixels from 0 to 1: a model for them takes this size, "
            f"and mean {form.mean} needs as many channels"
        )
    return known.standardised(form.mean, form.std)


def _arrays(place: Path) -> Inputs:
    if place.suffix not in (".npz", ".npy"):
        raise InputError(
            "inputs come from an .npz, .npy or .csv file, a folder of images or a data set "
            f"({', '.join(_DATA_SETS)}), got '{place}'"
        )
    if not place.is_file():
        raise InputError(f"there is no file '{place}'")
    arrays = read_arrays(place) if place.suffix == ".npz" else {"inputs": read_array(place)}
    try:
        tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    except (ValueError, TypeError) as problem:  # texts, for one
        raise InputError(f"cannot read {place}: {problem}") from None
    if not tensors or any(tensor.ndim == 0 for tensor in tensors.values()):
        raise InputError(f"'{place}' holds no array of inputs")
    tensors = {name: t.float() if t.dtype == torch.float64 else t for name, t in tensors.items()}
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


def _image_format(
    network: Any,
    folder: Path | None,
    size: int | None,
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
) -> ImageFormat:
    if (mean is None) != (std is None):
        raise InputError("mean and std go together: give both or neither")
    form = _own(network, "image_format")
    said = size is not None and mean is not None
    if form is None and folder is not None and not said and (folder / "preprocessor_config.json").is_file():
        form = ImageFormat.of(folder)
    form = form or ImageFormat()
    form = form if size is None else form.sized(size)
    return form if mean is None or std is None else replace(form, mean=tuple(mean), std=tuple(std))


def _device(name: str) -> torch.device:
    try:
        place = torch.device(name)
        if place.type == "meta":
            raise RuntimeError("meta tensors hold no numbers")
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, NotImplementedError) as problem:
        raise InputError(f"there is no device '{name}' here: {str(problem).splitlines()[0]}") from None
    return place
