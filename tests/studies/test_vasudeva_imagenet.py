"""V's study of pretrained models, and that of the models which stand in for them."""

import json
import math

import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from teeter.data import LabelledImages
from teeter.data.own import Absent
from teeter.errors import InputError
from teeter.integrations import ImageFormat
from teeter.models import EfficientNetLite
from teeter.perturb import PatchNoise
from teeter.report.drawing import svg
from teeter.studies.vasudeva2025 import enlarged, imagenet, looks, settings, vision
from teeter.studies.vasudeva2025.imagenet import PRETRAINED
from teeter.studies.vasudeva2025.looks import LEVELS
from teeter.studies.vasudeva2025.settings import SETTINGS
from teeter.studies.vasudeva2025.vision import Seen
from tests import tiny

GIVEN = imagenet._given("digits-32", 120)


def test_settings_of_the_paper():
    assert [(s.data, s.model, s.images, s.training) for s in imagenet.PAPER] == [
        ("imagenet", "convnextv2-tiny", 20_000, PRETRAINED),
        ("imagenet", "vit-large-patch16", 20_000, PRETRAINED),
    ]
    assert (SETTINGS["imagenet"].sigma2, SETTINGS["imagenet"].patch) == (15.0, 16)
    for name, size in (("cifar10-224", 224), ("cifar10-96", 96), ("digits-32", 32)):
        assert (SETTINGS[name].size, SETTINGS[name].sigma2) == (size, 15.0)
        assert size % SETTINGS[name].patch == 0
        spec = Seen(name, "vit-simple", 0, 0.1, 1)
        channels = 1 if name == "digits-32" else 3
        for model in ("vit-simple", "efficientnet-lite0"):
            made = vision.model_of(Seen(name, model, 0, 0.1, 1)).eval()
            assert made(torch.zeros(2, channels, size, size)).shape == (2, 10)
        assert vision.model_of(spec).patch == SETTINGS[name].patch  # a token is what is nudged
    assert len(enlarged.PAPER) == 7


def test_images_are_enlarged():
    small = torch.tensor([[0.0, 1.0], [2.0, 3.0]]).expand(1500, 1, 2, 2)
    large = settings.enlarged(small, 4)
    by_hand = torch.tensor([0.0, 0.25, 0.75, 1.0])
    assert torch.allclose(large[0, 0], by_hand + 2 * by_hand.view(4, 1))
    assert torch.equal(large[1400], large[0])
    assert settings.enlarged(small, 0) is small
    assert settings.enlarged(large, 4) is large


def test_what_is_trained_here_sees_enlarged_images():
    spec = Seen("digits-32", "vit-simple", 0, 0.1, 1)
    x, index = torch.randn(3, 1, 8, 8), torch.arange(3)
    augment = vision._augment(spec)
    assert torch.equal(augment(x, index, seed=0, epoch=1), settings.enlarged(x, 32))
    noisy = vision._augment(Seen("digits-32", "vit-simple", 0, 0.1, 1, training="noise"))(x, index, seed=0, epoch=1)
    assert (noisy - settings.enlarged(x, 32)).var() == pytest.approx(0.1, rel=0.1)
    assert vision._augment(Seen("digits", "vit-simple", 0, 0.1, 1)) is None


def test_a_head_is_fitted_and_the_rest_left(monkeypatch):
    seen = []

    def look(train, test, noise):
        seen.append((noise, train[0].shape, test[0].shape))
        return own(train, test, noise)

    own = looks.look
    monkeypatch.setattr(looks, "look", look)
    first, fate, *noise = imagenet.run(GIVEN)
    assert seen == [(PatchNoise(8, 15.0), (60, 1, 32, 32), (20, 1, 32, 32))]
    assert fate == {"about": "fate", "fate": "done"}
    assert (first["about"], first["epoch"]) == ("epoch", 0.0)
    assert first["train_accuracy"] > 0.5  # random features of 120 images, in ten classes
    assert {"test_accuracy_low", "train_accuracy_high", "train_loss", "sensitivity_low"} <= set(first)
    assert [(row["noise"], row["sigma2"]) for row in noise] == [
        *(("patch", 15.0 * level) for level in LEVELS),
        ("scattered", 225.0),
    ]
    assert imagenet.run(GIVEN) == [first, fate, *noise]


def test_real_weights_are_read_for_pictures_and_not_for_digits(monkeypatch):
    asked = []

    def published():
        asked.append(True)
        return EfficientNetLite(dim=8, width=16, stages=((1, 3, 2, 1, 8),))

    def few(split):
        draw = torch.Generator().manual_seed(0)
        pixels = torch.randint(0, 256, (40, 3, 32, 32), dtype=torch.uint8, generator=draw)
        return LabelledImages(pixels, torch.arange(40) % 10, ("",) * 10)

    monkeypatch.setattr(imagenet, "efficientnet_lite0", published)
    monkeypatch.setattr(vision, "read", lambda name, split: few(split))
    rows = imagenet.run(imagenet._given("cifar10-96", 40))
    assert asked and rows[0]["train_accuracy"] > 0.3


def pictures(folder, classes=("n01", "n02"), each=12):
    for split in ("train", "val"):
        for place, name in enumerate(classes):
            (folder / "imagenet" / split / name).mkdir(parents=True)
            for i in range(each):
                shade = (40 + 150 * place + i, 90, 120)
                Image.new("RGB", (40, 36), shade).save(folder / "imagenet" / split / name / f"{i}.png")


def directories(folder):
    """A small ConvNeXt V2 and a small ViT, with random weights, as transformers saves them."""
    from transformers import ConvNextV2ForImageClassification, ViTForImageClassification

    torch.manual_seed(0)
    sizes = dict(hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], image_size=32, num_labels=2)
    models = {
        "convnextv2-tiny": (ConvNextV2ForImageClassification(tiny.config("convnextv2", **sizes)), "ConvNext", 0.2),
        "vit-large-patch16": (
            ViTForImageClassification(tiny.config("vit", image_size=32, patch_size=16, num_labels=2)),
            "ViT",
            0.5,
        ),
    }
    for name, (model, kind, std) in models.items():
        place = folder / "imagenet-models" / name
        tiny.save(model, place)
        size = {"shortest_edge": 32} if kind == "ConvNext" else {"height": 32, "width": 32}
        says = {"image_processor_type": f"{kind}ImageProcessor", "size": size, "image_mean": [0.5] * 3}
        (place / "preprocessor_config.json").write_text(json.dumps(says | {"image_std": [std] * 3}))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    return tmp_path


def test_what_is_not_there_is_said(mine):
    spec = imagenet.PAPER[0]
    with pytest.raises(Absent, match="pretrained convnextv2-tiny is in no package registry: put config.json and model"):
        imagenet.run(spec)
    (mine / "imagenet-models" / "convnextv2-tiny").mkdir(parents=True)
    with pytest.raises(Absent, match="ImageNet is in no package registry"):
        imagenet.run(spec)


def test_model_directories_on_photographs(mine):
    pictures(mine)
    directories(mine)
    tables = []
    for number, spec in enumerate(imagenet.PAPER):
        rows = imagenet.run(Seen(**{**vars(spec), "images": 18}))
        assert rows[0]["train_accuracy_low"] <= rows[0]["train_accuracy"] <= 1
        assert 0 <= rows[0]["test_accuracy"] <= 1
        assert [row["noise"] for row in rows[-2:]] == ["patch of 4", "patch, in pixels"]
        tables.append(pd.DataFrame([{**vars(spec), "run": str(number), **row} for row in rows]))
    table = pd.concat(tables)
    verdicts = [claim.judge(table).verdict for claim in imagenet.CLAIMS]
    assert "not run at this tier" not in verdicts
    assert "<svg" in svg(lambda: imagenet.figure(table), "imagenet")
    for place in (mine / "imagenet" / "val" / "n01").iterdir():
        place.unlink()
    (mine / "imagenet" / "val").rename(mine / "imagenet" / "unsorted")
    first = imagenet.run(Seen(**{**vars(imagenet.PAPER[1]), "images": 18}))[0]
    assert "test_accuracy" not in first and "train_accuracy" in first


def test_labels_are_those_of_all_classes(mine):
    """Of a part of ImageNet's folders, the labels would be other ones than the model's."""
    pictures(mine, classes=("n01", "n02", "n03"), each=3)
    directories(mine)
    with pytest.raises(InputError, match="tells 2 classes, and .* has 3: give all of them"):
        imagenet.run(imagenet.PAPER[1])


def test_noise_on_pixels_is_the_same_for_every_form():
    """A model that wants its images otherwise says the same of the same pixels."""
    form = ImageFormat(mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.5))
    pixels = torch.rand(4, 3, 2, 2) * 2 - 1
    own = ((pixels + 1) / 2 - torch.tensor(form.mean).view(3, 1, 1)) / torch.tensor(form.std).view(3, 1, 1)
    inside = imagenet.FromPixels(nn.Identity(), form)
    assert torch.allclose(inside.pixels(own), pixels, atol=1e-6)
    assert torch.allclose(inside(pixels), own, atol=1e-6)


def made(sensitivities, accuracy=0.85, width=0.05, data="imagenet"):
    rows = []
    for model, value in sensitivities.items():
        own = dict(run=model, data=data, model=model, training=PRETRAINED, images=20_000, seed=0)
        interval = dict(sensitivity_low=value * (1 - width), sensitivity_high=value * (1 + width))
        for level in (0.5, 1.0):
            noise = dict(about="noise", noise="patch", sigma2=15.0 * level, sensitivity=value if level == 1 else 0.9)
            rows.append({**own, **noise, **interval})
        accuracies = {
            f"{split}_accuracy{end}": accuracy + off
            for split in ("train", "test")
            for end, off in (("_low", -0.008), ("", 0.0), ("_high", 0.008))
        }
        rows.append(
            {
                **own,
                "about": "epoch",
                "epoch": 0.0,
                "step": 0,
                "frequent": 0.1,
                "sensitivity": value,
                **accuracies,
                **interval,
            }
        )
    return pd.DataFrame(rows)


def verdicts(study, table):
    return [claim.judge(table).verdict for claim in study.CLAIMS]


def test_claims():
    published = imagenet.PUBLISHED
    assert verdicts(imagenet, made(published)) == ["reproduced"] * 7
    assert verdicts(imagenet, made(published, width=0.9))[:3] == ["undecided"] * 3
    turned = dict(zip(published, reversed(published.values()), strict=True))
    assert verdicts(imagenet, made(turned))[2] == "not reproduced"
    alike = dict.fromkeys(published, 0.0191)
    assert verdicts(imagenet, made(alike))[2] == "not reproduced"
    assert verdicts(imagenet, made(alike, width=0.09))[2] == "undecided"  # it may be by a factor of 1.2
    assert verdicts(imagenet, made(dict.fromkeys(published, 0.2)))[:2] == ["not reproduced"] * 2
    assert verdicts(imagenet, made(published, accuracy=0.8))[3:] == ["not reproduced"] * 4
    lacking = made(published)
    lacking["test_accuracy"] = math.nan
    assert verdicts(imagenet, lacking)[3:] == ["reproduced", "not run at this tier"] * 2
    assert set(verdicts(imagenet, made(published, data="cifar10-224"))) == {"not run at this tier"}
    stands_in = made({"efficientnet-lite0": 0.0342}, data="cifar10-96")
    assert set(verdicts(imagenet, stands_in)) == {"not run at this tier"}


def trained(model, sensitivity, accuracy=0.9, seeds=3):
    rows = []
    for seed in range(seeds):
        own = dict(run=f"{model} {seed}", data="cifar10-224", model=model, training="", seed=seed)
        value = sensitivity * (1 + 0.02 * seed)
        for epoch, share in enumerate((0.2, 0.97 * accuracy, accuracy)):
            rows.append(
                {
                    **own,
                    "about": "epoch",
                    "epoch": epoch,
                    "frequent": 0.1,
                    "train_accuracy": share,
                    "sensitivity": value,
                }
            )
        rows.append({**own, "about": "noise", "noise": "patch", "sigma2": 15.0, "sensitivity": value})
    return pd.DataFrame(rows)


def beside(given, cnn, vit, width=0.05, **more):
    one = made({"efficientnet-lite0": given}, accuracy=0.88, width=width, data="cifar10-224")
    return pd.concat([one, trained("efficientnet-lite0", cnn), trained("vit-simple", vit, **more)])


def test_claims_of_the_stand_ins():
    assert verdicts(enlarged, beside(0.06, 0.05, 0.02)) == ["reproduced"] * 2
    assert verdicts(enlarged, beside(0.01, 0.01, 0.02)) == ["not reproduced"] * 2
    assert verdicts(enlarged, beside(0.06, 0.05, 0.02, width=0.8))[0] == "undecided"  # one model, itself in doubt
    assert verdicts(enlarged, beside(0.06, 0.05, 0.02, accuracy=0.6))[0] == "undecided"  # never as accurate
    found = enlarged.given_over_vit(beside(0.06, 0.05, 0.02))
    assert found.value == pytest.approx(math.log10(3) - math.log10(1.02 * 1.04) / 3, abs=1e-9)
    sure = enlarged.given_over_vit(beside(0.06, 0.05, 0.02, width=0.0))
    assert found.low - sure.low == pytest.approx(math.log10(0.95))
    assert found.high - sure.high == pytest.approx(math.log10(1.05))
    without = beside(0.06, 0.05, 0.02)
    without = without[(without["model"] != "efficientnet-lite0") | (without["training"] == PRETRAINED)]
    assert verdicts(enlarged, without) == ["reproduced", "not run at this tier"]
