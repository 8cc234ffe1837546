"""Image classifiers of the timm library, with the image format they were trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from teeter.errors import InputError, UnknownName
from teeter.integrations.images import ImageFormat
from teeter.integrations.pretrained import read_json
from teeter.integrations.weights import fill

__all__ = ["TimmClassifier", "is_timm", "timm_classifier", "timm_directory"]

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")

_RESAMPLE = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


class TimmClassifier(nn.Module):
    """A timm model that knows its `image_format`; images are a tensor, or `pixel_values` of a mapping."""

    def __init__(self, model: nn.Module, image_format: ImageFormat) -> None:
        super().__init__()
        self.model, self.image_format = model, image_format
        self.training = model.training

    def forward(self, inputs: Any) -> Tensor:
        return self.model(inputs if isinstance(inputs, Tensor) else inputs["pixel_values"])


def timm_classifier(model: str | nn.Module, weights: Path | str | None = None, **options: Any) -> TimmClassifier:
    """A timm model, by name or as it is, in evaluation mode.

    `weights` is a file of yours, safetensors or a torch file read as weights alone; nothing is fetched, so a model
    named without one is as random as timm makes it. `options` go to `timm.create_model`, num_classes for one.
    """
    try:
        import timm  # pyright: ignore[reportMissingImports]
        from timm.data import resolve_data_config  # pyright: ignore[reportMissingImports]
    except Exception as problem:  # timm imports torchvision, whose failures are of many kinds
        raise InputError(f"timm cannot be imported ({problem}): install timm and a torchvision that fits") from None
    if isinstance(model, str):
        if not timm.is_model(model):
            raise UnknownName("timm model", model, timm.list_models())
        network: nn.Module = timm.create_model(model, pretrained=False, **options)
    else:
        network = model
        if options:
            raise InputError(f"options are for a model that timm makes by name, got {', '.join(options)}")
    if weights is not None:
        fill(network, weights)
    return TimmClassifier(network, image_format(resolve_data_config({}, model=network))).eval()


def is_timm(folder: Path | str) -> bool:
    """Whether a model directory is timm's: its config.json names one architecture, transformers' a list of them."""
    place = Path(folder) / "config.json"
    if not place.is_file():
        return False
    says = read_json(place)
    return isinstance(says.get("architecture"), str) and "architectures" not in says


def timm_directory(folder: Path | str) -> TimmClassifier:
    """The model of a directory as timm publishes them: config.json, and model.safetensors or pytorch_model.bin.

    Images are prepared as the directory's `pretrained_cfg` says. Nothing in it is run as code.
    """
    folder = Path(folder)
    says = read_json(folder / "config.json")
    weights = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise InputError(f"'{folder}' has no weights: it needs {' or '.join(_WEIGHTS)}")
    options = {name: says[name] for name in ("num_classes", "global_pool") if name in says}
    found = timm_classifier(says["architecture"], weights, **options)
    try:
        found.image_format = image_format(says["pretrained_cfg"])
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"'{folder}' does not say how images are prepared (pretrained_cfg): {problem}") from None
    return found


def image_format(says: dict[str, Any]) -> ImageFormat:
    """The format that a timm data config describes.

    >>> image_format({"input_size": (3, 224, 224), "crop_pct": 0.875, "mean": (0.5,) * 3, "std": (0.5,) * 3}).resize
    256
    """
    channels, height, width = says["input_size"]
    share, mode = says.get("crop_pct", 1.0), says.get("crop_mode", "center")
    sides = int(height / share), int(width / share)
    if mode not in ("center", "squash") or (mode == "center" and height != width):
        raise InputError(f"how timm prepares images of {height} x {width} in mode '{mode}' is not known here")
    resize = sides if mode == "squash" else sides[0]
    mean, std = (tuple(says[name])[:channels] for name in ("mean", "std"))
    return ImageFormat(resize, (height, width), mean, std, resample=_RESAMPLE[says.get("interpolation", "bilinear")])
