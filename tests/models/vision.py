"""V's vision models by name: what each is called with to be small, and what its images are."""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teeter.models import MODELS


@dataclass(frozen=True)
class Setting:
    parameters: int  # of the paper's model
    classes: int  # of the paper's model
    image: tuple[int, int, int]  # of the paper's model
    small: dict[str, Any] = field(default_factory=dict)
    small_size: int = 8


def _vit(**more: Any) -> dict[str, Any]:
    return {"image_size": 8, "patch": 4, "dim": 16, "layers": 2, "heads": 2, "dim_head": 8, "width": 16} | more


COLOUR, GREY = (3, 32, 32), (1, 28, 28)
SETTINGS = {
    "cnn": Setting(600_810, 10, GREY, {"image_size": 8, "dim": 4, "width": 16}),
    "convmixer": Setting(117_642, 10, COLOUR, {"dim": 8, "layers": 2}),
    "densenet121": Setting(6_956_426, 10, COLOUR, {"blocks": (2, 2), "growth": 4, "dim": 8}),
    "efficientnet-lite0": Setting(
        4_652_008, 1000, (3, 224, 224), {"dim": 8, "width": 16, "stages": ((1, 3, 1, 1, 8), (2, 5, 2, 2, 12))}
    ),
    "mlp-leaky-relu": Setting(468_874, 10, GREY, {"image_size": 8, "widths": (16, 16)}),
    "mlp-mnist": Setting(78_702, 2, GREY, {"image_size": 8}),
    "mlp-sigmoid": Setting(468_874, 10, GREY, {"image_size": 8, "widths": (16, 16)}),
    "resnet18": Setting(11_173_962, 10, COLOUR, {"blocks": (1, 1), "dim": 8}),
    "vit-simple": Setting(1_975_210, 10, COLOUR, _vit()),
    "vit-small": Setting(4_482_482, 10, COLOUR, _vit()),
    "vit-small-fashion-mnist": Setting(338_348, 10, GREY, _vit()),
    "vit-small-mnist": Setting(84_206, 2, GREY, _vit(patch=2)),
    "vit-small-relu": Setting(4_482_482, 10, COLOUR, _vit()),
    "vit-small-svhn": Setting(4_746_674, 10, COLOUR, _vit(width=32)),
}


def small(name: str, *, seed: int = 0, **more: Any) -> nn.Module:
    """The model at a size that trains in a moment, for three classes."""
    torch.manual_seed(seed)
    return MODELS[name](**(SETTINGS[name].small | {"classes": 3} | more))


def pictures(name: str, count: int = 48) -> tuple[Tensor, Tensor]:
    """Noisy copies of one random picture for each of three classes, of the small model's shape."""
    setting = SETTINGS[name]
    shape = (setting.image[0], setting.small_size, setting.small_size)
    draw = torch.Generator().manual_seed(1)
    labels = torch.arange(count) % 3
    return torch.randn(3, *shape, generator=draw)[labels] + 0.5 * torch.randn(count, *shape, generator=draw), labels


def losses(model: nn.Module, images: Tensor, labels: Tensor, steps: int, rate: float) -> list[float]:
    """The loss of every step of full-batch training."""
    optimizer = torch.optim.Adam(model.train().parameters(), lr=rate)
    seen = []
    for _ in range(steps):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


def unlike_a_fresh_one(model: nn.Module, seed: int = 0) -> nn.Module:
    """In float64 and eval, with every weight and running statistic drawn, so that none hides behind a 0 or a 1."""
    draw = torch.Generator().manual_seed(seed)
    model = model.double().eval()
    with torch.no_grad():
        for name, values in (*model.named_parameters(), *model.named_buffers()):
            if name.endswith("running_var"):
                values.uniform_(0.5, 2.0, generator=draw)
            elif name.endswith("running_mean") or name.endswith("bias"):
                values.normal_(0.0, 0.5, generator=draw)
            elif "norm" in name and name.endswith("weight"):
                values.uniform_(0.5, 2.0, generator=draw)
            elif values.is_floating_point():
                values.add_(0.2 * torch.randn(values.shape, generator=draw, dtype=values.dtype))
    return model
