"""What holds for every vision model of V."""

from functools import cache

import pytest
import torch
from torch.func import functional_call, stack_module_state

import teeter
from teeter.errors import InputError
from teeter.measure.forward import unfused
from teeter.models import MODELS
from tests.models.vision import SETTINGS, losses, pictures, small

every = pytest.mark.parametrize("name", SETTINGS)
BATCHNORM = ("convmixer", "densenet121", "resnet18")


@every
def test_the_paper_s_sizes(name):
    setting = SETTINGS[name]
    model = MODELS[name]().eval()
    assert sum(weight.numel() for weight in model.parameters()) == setting.parameters
    with torch.no_grad():
        assert model(torch.zeros(2, *setting.image)).shape == (2, setting.classes)


@every
def test_a_seed_decides_the_weights_and_eval_the_answer(name):
    images, _ = pictures(name)
    model, twin, other = small(name).eval(), small(name).eval(), small(name, seed=1).eval()
    assert torch.equal(model(images), model(images))
    assert torch.equal(model(images), twin(images))
    assert not torch.equal(model(images), other(images))
    # An image's answer is its own: it does not depend on those beside it.
    alone = torch.cat([model(image) for image in images.split(1)])
    assert torch.allclose(model(images), alone, atol=1e-5)


@cache
def trained(name):
    """The small model after 60 steps, and the loss of each."""
    model = small(name)
    return model, losses(model, *pictures(name), steps=60, rate=1e-2)


@every
def test_training_lowers_the_loss(name):
    _, seen = trained(name)
    assert seen[-1] < 0.5 * seen[0]


@every
def test_every_weight_has_a_gradient(name):
    model = small(name).train()
    images, labels = pictures(name)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    idle = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert idle == []


@every
def test_sensitivity(name):
    model = trained(name)[0].eval()
    like = pictures(name)[0]
    images = torch.randn(like.shape, generator=torch.Generator().manual_seed(2))  # of no class, so that many will flip

    def rate(sigma2):
        return teeter.sensitivity(model, images, teeter.perturb.PatchNoise(patch=4, sigma2=sigma2), budget=600)

    assert rate(0.0).value == 0.0
    loud = rate(100.0)
    assert 0 < loud.low < loud.value < loud.high < 1
    assert loud.value > rate(0.01).value
    assert loud.forwards <= 600


@every
def test_memory_in_the_order_of_channels_changes_nothing(name):
    images, _ = pictures(name)
    model = small(name).eval()
    assert torch.allclose(model(images), model(images.to(memory_format=torch.channels_last)), atol=1e-5)


@every
def test_many_models_in_one_program(name):
    models = [small(name, seed=seed).eval() for seed in range(3)]
    images, _ = pictures(name)
    weights, buffers = stack_module_state(models)
    with unfused():
        together = torch.func.vmap(lambda w, b: functional_call(models[0], (w, b), (images,)))(weights, buffers)
    assert torch.allclose(together, torch.stack([model(images) for model in models]), atol=1e-5)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in BATCHNORM])
def test_many_models_train_in_one_program(name):
    models = [small(name, seed=seed).train() for seed in range(2)]
    images, labels = pictures(name)
    weights, buffers = stack_module_state(models)

    def loss(own, buffer):
        return torch.nn.functional.cross_entropy(functional_call(models[0], (own, buffer), (images,)), labels)

    with unfused():
        together = torch.func.vmap(torch.func.grad(loss))(weights, buffers)
    for number, model in enumerate(models):
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        for key, weight in model.named_parameters():
            assert torch.allclose(together[key][number], weight.grad, atol=1e-5), key


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("vit")])
def test_blowup_of_the_vits(name):
    images, _ = pictures(name)
    model = small(name).eval()
    result = teeter.blowup(model, images)
    # One LayerNorm (two in ViT-simple) where patches become tokens, two a block, one at the end.
    assert len(result.layers) == (2 if name == "vit-simple" else 1) + 2 * 2 + 1
    assert result.layers[-1] == "norm"
    assert bool((result.product > 0).all()) and bool(result.product.isfinite().all())


@every
@pytest.mark.parametrize(("key", "value"), [("classes", 0), ("classes", 2.0), ("channels", -1), ("channels", True)])
def test_sizes_are_whole_numbers(name, key, value):
    with pytest.raises(InputError, match=f"{key} is a whole number of at least 1, got {value}"):
        MODELS[name](**{key: value})


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("vit")])
def test_patches_divide_the_image(name):
    with pytest.raises(InputError, match=r"5 x 5 do not divide images of 28 x 28: take one of \[1, 2, 4, 7, 14, 28\]"):
        MODELS[name](image_size=28, patch=5)


@pytest.mark.parametrize("name", [name for name in SETTINGS if not name.startswith(("mlp", "cnn"))])
def test_images_of_another_shape(name):
    model = small(name).eval()
    channels = SETTINGS[name].image[0]
    for shape in [(2, channels + 1, 8, 8), (channels, 8, 8)]:
        with pytest.raises(
            InputError, match=rf"images of shape \(batch, {channels}, .*got \({shape[0]}, {shape[1]}, 8"
        ):
            model(torch.zeros(shape))
    if name.startswith("vit"):
        with pytest.raises(InputError, match=r", 8, 8\), got \(2, .*, 12, 12\)"):
            model(torch.zeros(2, channels, 12, 12))
