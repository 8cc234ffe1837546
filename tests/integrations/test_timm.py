"""timm models. timm imports torchvision, which does not come with every torch: without it only the error is tested."""

import sys

import pytest
import torch

import teeter
from teeter import perturb
from teeter.errors import InputError, UnknownName
from teeter.integrations import ImageFormat, timm_classifier
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
