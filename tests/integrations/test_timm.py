"""timm models. timm imports torchvision, which does not come with every torch: without it only the error is tested."""

import json
import sys
import types

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError, UnknownName
from teeter.integrations import ImageFormat, load_model, timm_classifier, timm_directory
from teeter.integrations.timm_models import image_format


@pytest.fixture
def timm():
    try:
        import timm
    except Exception as problem:
        pytest.skip(f"timm cannot be imported: {problem}")
    return timm


def test_without_timm(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match="timm cannot be imported .*: install timm"):
        timm_classifier("resnet18")


def test_data_configs():
    says = {"input_size": (3, 224, 224), "crop_pct": 0.875, "mean": (0.4,) * 3, "std": (0.2,) * 3}
    says["interpolation"] = "bicubic"
    assert image_format(says) == ImageFormat(256, (224, 224), (0.4,) * 3, (0.2,) * 3, resample=3)
    wide = says | {"input_size": (3, 224, 192)}
    assert image_format(wide | {"crop_mode": "squash"}).resize == (256, 219)
    for odd in (wide, says | {"crop_mode": "border"}):
        with pytest.raises(InputError, match="is not known here"):
            image_format(odd)
    assert image_format(says | {"input_size": (1, 28, 28)}).mean == (0.4,)


def test_a_model_by_name(timm, tmp_path):
    torch.manual_seed(0)
    model = timm_classifier("resnet10t", num_classes=5)
    assert not model.training
    assert model.image_format.crop == tuple(model.model.pretrained_cfg["input_size"][1:])
    images = torch.randn(6, 3, 64, 64)
    assert model(images).shape == (6, 5)
    assert torch.equal(model({"pixel_values": images}), model(images))
    assert teeter.sensitivity(model, images, perturb.PatchNoise(16, 9.0), budget=60).forwards <= 60
    torch.save(model.model.state_dict(), tmp_path / "weights.pth")
    again = timm_classifier("resnet10t", tmp_path / "weights.pth", num_classes=5)
    assert torch.equal(again(images), model(images))
    assert torch.equal(timm_classifier(model.model)(images), model(images))
    with pytest.raises(UnknownName, match="no timm model named 'resnet17'"):
        timm_classifier("resnet17")
    with pytest.raises(InputError, match="options are for a model that timm makes by name"):
        timm_classifier(model.model, num_classes=3)


def test_preparation_is_timms_own(timm):
    from PIL import Image

    model = timm_classifier("resnet10t")
    picture = Image.linear_gradient("L").resize((300, 260)).convert("RGB")
    theirs = timm.data.create_transform(**timm.data.resolve_data_config({}, model=model.model))(picture)
    assert torch.allclose(model.image_format.prepare(picture), theirs, atol=1e-5)


@pytest.fixture
def pretend(monkeypatch):
    """What is called of timm, which need not be there: it knows one model, of so many classes."""
    data = types.ModuleType("timm.data")
    data.resolve_data_config = lambda known, model: {"input_size": (3, 8, 8), "mean": (0.5,) * 3, "std": (0.5,) * 3}
    fake = types.ModuleType("timm")
    fake.is_model = lambda name: name == "plain.in1k"
    fake.list_models = lambda: ["plain.in1k"]
    fake.create_model = lambda name, pretrained, num_classes: nn.Sequential(nn.Flatten(), nn.Linear(48, num_classes))
    monkeypatch.setitem(sys.modules, "timm", fake)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    return fake.create_model


CONFIG = {"architecture": "plain.in1k", "num_classes": 5, "num_features": 48}
PREPARED = {"input_size": [3, 4, 4], "crop_pct": 0.5, "mean": [0.4] * 3, "std": [0.2] * 3, "interpolation": "bicubic"}


def test_a_directory_of_timm(pretend, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"pretrained_cfg": PREPARED}))
    with pytest.raises(InputError, match="has no weights: it needs model.safetensors or pytorch_model.bin"):
        load_model(str(tmp_path))
    inside = pretend("plain.in1k", pretrained=False, num_classes=5)
    save_file(inside.state_dict(), tmp_path / "model.safetensors")
    model, images = load_model(str(tmp_path)), torch.randn(3, 3, 4, 4)
    assert torch.equal(model(images), inside(images))
    assert model.image_format == ImageFormat(8, (4, 4), (0.4,) * 3, (0.2,) * 3, resample=3)  # not what timm would say
    other = pretend("plain.in1k", pretrained=False, num_classes=5)
    save_file(other.state_dict(), tmp_path / "other.safetensors")
    assert torch.equal(load_model(str(tmp_path), tmp_path / "other.safetensors")(images), other(images))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(InputError, match="does not say how images are prepared"):
        timm_directory(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"architecture": "plane.in1k"}))
    with pytest.raises(UnknownName, match="no timm model named 'plane.in1k'"):
        load_model(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"architectures": ["Odd"]}))
    with pytest.raises(InputError, match="holds a Odd"):  # transformers' own, though it may wrap timm's
        load_model(str(tmp_path))
