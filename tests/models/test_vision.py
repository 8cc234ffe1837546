"""What holds for every vision model of V."""

import math
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
BATCHNORM = ("convmixer", "densenet121", "efficientnet-lite0", "resnet18")


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
    """The small model after 200 steps, and the loss of each."""
    model = small(name)
    return model, losses(model, *pictures(name, count=24), steps=200, rate=1e-2)


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


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("vit-small")])
def test_which_attention_a_name_means(name):
    """By what the model computes: ReLU attention alone doubles where every score does."""
    images, _ = pictures(name)
    model = small(name).double().eval()
    part = model.blocks[0].attend
    x = torch.randn(2, 5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = part(x) - part.out.bias
        part.temperature += math.log(2)
        after = part(x) - part.out.bias
    assert torch.allclose(after, 2 * before, rtol=0, atol=1e-12) == (name == "vit-small-relu")
    kinds = {block.attend.attention for block in MODELS[name](layers=3).blocks}
    assert kinds == {"relu" if name == "vit-small-relu" else "softmax"}


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


@every
def test_many_models_train_in_one_program(name):
    """Gradients, and running statistics where there are some."""
    models = [small(name, seed=seed).train() for seed in range(2)]
    images, labels = pictures(name)
    weights, buffers = stack_module_state(models)
    fresh = {key: buffer.clone() for key, buffer in buffers.items()}

    def loss(own, buffer):
        return torch.nn.functional.cross_entropy(functional_call(models[0], (own, buffer), (images,)), labels)

    with unfused():
        together = torch.func.vmap(torch.func.grad(loss))(weights, buffers)
    for number, model in enumerate(models):
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        for key, weight in model.named_parameters():
            assert torch.allclose(together[key][number], weight.grad, atol=1e-5), key
        for key, buffer in model.named_buffers():
            assert torch.allclose(buffers[key][number], buffer, atol=1e-5), key
            assert key.endswith("num_batches_tracked") or not torch.equal(buffers[key][number], fresh[key][number])
    assert bool(buffers) == (name in BATCHNORM)


@every
def test_no_constant_is_a_buffer(name):
    """A stack of models refuses buffers, which it takes for running averages; so only those may be some."""
    held = [key.rpartition(".")[-1] for key, _ in small(name).named_buffers()]
    assert set(held) == ({"running_mean", "running_var", "num_batches_tracked"} if name in BATCHNORM else set())


@every
def test_a_model_built_without_memory_and_filled_later(name):
    images, _ = pictures(name)
    model = small(name).eval()
    with torch.device("meta"):
        filled = small(name).eval()
    filled.to_empty(device="cpu")
    for part in (*filled.parameters(), *filled.buffers()):
        part.data.fill_(7)  # to_empty() promises nothing
    filled.load_state_dict(model.state_dict())
    assert torch.equal(filled(images), model(images))


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("vit")])
def test_a_vit_measured_first_can_be_trained_after(name):
    """What is made once for each device is made for training too, wherever it was asked for first."""
    images, labels = pictures(name)
    model = small(name, image_size=16, patch=4)
    images = images.repeat(1, 1, 2, 2)
    with torch.inference_mode():
        answer = model.eval()(images)
    torch.nn.functional.cross_entropy(model.train()(images), labels).backward()
    assert all(weight.grad is not None for weight in model.parameters())
    exact = model.eval().double()(images.double())
    assert exact.dtype == torch.float64
    assert torch.allclose(exact.float(), answer, atol=1e-4)


@pytest.mark.parametrize("name", ["vit-simple", "vit-small", "vit-small-relu"])
def test_a_vit_compiles_in_one_piece(name):
    images, _ = pictures(name)
    model = small(name).eval()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(images), model(images), atol=1e-6)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("vit")])
def test_blowup_of_the_vits(name):
    images, _ = pictures(name)
    model = small(name).eval()
    result = teeter.blowup(model, images)
    # One LayerNorm (two in ViT-simple) where patches become tokens, two a block, one at the end.
    assert len(result.layers) == (2 if name == "vit-simple" else 1) + 2 * 2 + 1
    assert result.layers[-1] == "norm"
    assert bool((result.product > 0).all()) and bool(result.product.isfinite().all())


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
