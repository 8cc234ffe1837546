"""ConvMixer, ResNet, DenseNet and the CNN beside the same networks written out, or those of transformers."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models import ConvMixer, DenseNet, EfficientNetLite, ResNet, cnn
from tests.models.vision import unlike_a_fresh_one


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def normed(norm: nn.Module, x: Tensor) -> Tensor:
    """A BatchNorm in eval, written out."""
    assert isinstance(norm, nn.BatchNorm2d)
    over = [part[:, None, None] for part in (norm.running_mean, norm.running_var, norm.weight, norm.bias)]
    mean, variance, weight, bias = over
    return (x - mean) / torch.sqrt(variance + norm.eps) * weight + bias


def test_convmixer_by_hand():
    model = unlike_a_fresh_one(ConvMixer(patch=2, dim=5, layers=2, classes=4))
    images = drawn(3, 3, 8, 6)
    convolution, _, norm = model.embed
    x = normed(norm, F.gelu(F.conv2d(images, convolution.weight, convolution.bias, stride=2)))
    for layer in model.layers:
        convolution, _, norm = layer.places
        x = x + normed(norm, F.gelu(F.conv2d(x, convolution.weight, convolution.bias, padding="same", groups=5)))
        convolution, _, norm = layer.channels
        mixed = torch.einsum("oi,bihw->bohw", convolution.weight[:, :, 0, 0], x) + convolution.bias[:, None, None]
        x = normed(norm, F.gelu(mixed))
    assert torch.allclose(model(images), model.head(x.flatten(2).mean(-1)), rtol=0, atol=1e-10)


def test_a_kernel_of_one_cannot_tell_where_patches_are():
    images, order = drawn(2, 3, 12, 12), torch.tensor([4, 8, 0, 3, 7, 1, 6, 2, 5])
    columns = F.unfold(images, 4, stride=4)[..., order]
    elsewhere = F.fold(columns, (12, 12), 4, stride=4)
    blind = unlike_a_fresh_one(ConvMixer(dim=6, layers=2, kernel=1))
    assert torch.allclose(blind(images), blind(elsewhere), rtol=0, atol=1e-12)
    seeing = unlike_a_fresh_one(ConvMixer(dim=6, layers=2, kernel=3))
    assert (seeing(images) - seeing(elsewhere)).abs().max() > 1e-3


def test_only_a_patch_of_four_has_the_published_count_of_convmixer():
    counts = {patch: sum(w.numel() for w in ConvMixer(patch=patch).parameters()) for patch in (1, 2, 4, 8)}
    assert [patch for patch, count in counts.items() if count == 117_642] == [4]


def test_resnet_stages_are_those_of_transformers():
    from transformers import ResNetConfig
    from transformers.models.resnet.modeling_resnet import ResNetEncoder

    model = unlike_a_fresh_one(ResNet(blocks=(2, 1, 2), dim=4))
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4, 8, 16], depths=[2, 1, 2], layer_type="basic")
    theirs = ResNetEncoder(config).double().eval()
    values = model.stages.state_dict().values()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), values, strict=True)))
    images = drawn(2, 3, 12, 12)
    convolution, norm = model.stem
    stem = normed(norm, F.conv2d(images, convolution.weight, padding=1)).clamp(min=0)
    expected = theirs(stem).last_hidden_state
    assert expected.shape == (2, 16, 3, 3)
    assert torch.allclose(model.stages(stem), expected, rtol=0, atol=1e-10)
    assert torch.allclose(model(images), model.head(expected.flatten(2).mean(-1)), rtol=0, atol=1e-10)


def test_resnet_keeps_the_image_s_size_until_the_second_stage():
    model = ResNet(dim=2).eval()
    x, sides = model.stem(torch.zeros(1, 3, 32, 32)), []
    for stage in model.stages:
        x = stage(x)
        sides.append(x.shape[-1])
    assert sides == [32, 16, 8, 4]
    # 18 layers, beside the three convolutions of 1 x 1 on shortcuts
    kernels = [part.kernel_size for part in model.modules() if isinstance(part, nn.Conv2d)]
    assert (kernels.count((3, 3)), kernels.count((1, 1))) == (17, 3)


def test_densenet_by_hand():
    model = unlike_a_fresh_one(DenseNet(blocks=(2, 3), growth=3, dim=4, bottleneck=2, classes=4))
    images = drawn(2, 3, 9, 8)
    convolution, norm, _, _ = model.stem
    x = normed(norm, F.conv2d(images, convolution.weight, padding=1)).clamp(min=0)
    x = F.max_pool2d(x, 3, stride=2, padding=1)

    def step(part, x, padding):
        norm, _, convolution = part
        return F.conv2d(normed(norm, x).clamp(min=0), convolution.weight, padding=padding)

    first, (narrow, _), second = model.blocks
    for layer in first:
        x = torch.cat([x, step(layer.grow, step(layer.narrow, x, 0), 1)], 1)
    assert x.shape[1] == 4 + 2 * 3
    x = step(narrow, x, 0)
    x = sum(x[..., i : x.shape[2] // 2 * 2 : 2, j::2] for i in (0, 1) for j in (0, 1)) / 4
    for layer in second:
        x = torch.cat([x, step(layer.grow, step(layer.narrow, x, 0), 1)], 1)
    assert x.shape[1] == 5 + 3 * 3
    expected = model.head(normed(model.norm, x).clamp(min=0).flatten(2).mean(-1))
    assert torch.allclose(model(images), expected, rtol=0, atol=1e-10)


def test_dense_blocks_of_densenet_121_see_16_8_4_and_2_pixels():
    model, sides = DenseNet(growth=2, dim=4).eval(), []
    x = model.stem(torch.zeros(1, 3, 32, 32))
    for part in model.blocks:
        x = part(x)
        sides.append(x.shape[-1])
    assert sides == [16, 8, 8, 4, 4, 2, 2]
    assert [len(block) for block in model.blocks[::2]] == [6, 12, 24, 16]
    assert sum(isinstance(part, (nn.Conv2d, nn.Linear)) for part in model.modules()) == 121


def test_densenet_starts_from_he_s_law():
    torch.manual_seed(0)
    model = DenseNet(blocks=(2,))
    convolution = model.blocks[0][1].narrow[2]
    assert convolution.weight.std().item() == pytest.approx((2 / convolution.in_channels) ** 0.5, rel=0.02)
    assert not model.head.bias.any()


def test_cnn_by_hand():
    model = unlike_a_fresh_one(cnn(image_size=9, dim=3, width=5, channels=2, classes=4))
    first, second, hidden, head = model[0], model[2], model[6], model[8]
    images = drawn(3, 2, 9, 9)
    x = F.leaky_relu(F.conv2d(images, first.weight, first.bias), 0.01)
    x = F.leaky_relu(F.conv2d(x, second.weight, second.bias), 0.01)
    x = torch.stack([x[..., i:4:2, j:4:2] for i in (0, 1) for j in (0, 1)]).amax(0)
    x = F.leaky_relu(x.reshape(3, -1) @ hidden.weight.T + hidden.bias, 0.01)
    assert torch.allclose(model(images), x @ head.weight.T + head.bias, rtol=0, atol=1e-10)


def test_kept_weights_of_the_benchmark_fit():
    kept = load_file(Path(__file__).parents[2] / "benchmarks" / "fashion" / "weights" / "cnn.safetensors")
    model = cnn()
    assert {key: part.shape for key, part in kept.items()} == {k: part.shape for k, part in model.state_dict().items()}
    model.load_state_dict({key: part.float() for key, part in kept.items()})


def test_bad_input():
    with pytest.raises(InputError, match="odd size keeps the grid of patches as it is, got kernel = 4"):
        ConvMixer(kernel=4)
    with pytest.raises(InputError, match="4 x 4 do not divide images of 30 x 30"):
        ConvMixer(dim=4).eval()(torch.zeros(1, 3, 32, 30))
    with pytest.raises(InputError, match="stages is a whole number of at least 1, got 0"):
        ResNet(blocks=())
    with pytest.raises(InputError, match="blocks is a whole number of at least 1, got 0"):
        ResNet(blocks=(2, 0))
    with pytest.raises(InputError, match="number_of_blocks is a whole number of at least 1, got 0"):
        DenseNet(blocks=())
    with pytest.raises(InputError, match="blocks is a whole number of at least 1, got 0"):
        DenseNet(blocks=(0,))
    with pytest.raises(InputError, match="at least 6 pixels a side, got 5"):
        cnn(image_size=5)


def test_the_smallest_image_of_a_densenet():
    model = DenseNet(blocks=(1, 1, 1, 1), growth=2, dim=4).eval()
    assert model(torch.zeros(1, 3, 15, 15)).shape == (1, 10)
    with pytest.raises(InputError, match=r"halves an image 4 times and needs 15 pixels a side, got \(14, 32\)"):
        model(torch.zeros(1, 3, 14, 32))


def same(norm, convolution, x, stride, groups=1):
    """A convolution with TensorFlow's padding, of which the odd one is below and to the right, written out."""
    kernel = convolution.weight.shape[-1]
    pads = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in x.shape[:1:-1]]
    padded = F.pad(x, [part for pad in pads for part in (pad // 2, pad - pad // 2)])
    return normed(norm, F.conv2d(padded, convolution.weight, stride=stride, groups=groups))


@pytest.mark.parametrize("sides", [(9, 12), (8, 8)])
def test_efficientnet_by_hand(sides):
    stages = ((1, 3, 1, 1, 4), (2, 5, 2, 2, 6))
    model = unlike_a_fresh_one(EfficientNetLite(dim=4, width=7, classes=3, stages=stages))
    images = drawn(2, 3, *sides)
    x = same(model.stem.norm, model.stem.convolution, images, 2).clamp(0, 6)
    for block, stride, adds in zip(model.blocks, (1, 2, 1), (True, False, True), strict=True):
        inside = x
        if not isinstance(block.expand, nn.Identity):
            inside = same(block.expand.norm, block.expand.convolution, x, 1).clamp(0, 6)
        alone = same(block.depthwise.norm, block.depthwise.convolution, inside, stride, inside.shape[1]).clamp(0, 6)
        narrow = same(block.project.norm, block.project.convolution, alone, 1)
        x = narrow + x if adds else narrow
    features = same(model.last.norm, model.last.convolution, x, 1).clamp(0, 6)
    assert features.shape[2:] == (-(-sides[0] // 4), -(-sides[1] // 4))
    assert torch.allclose(model(images), model.head(features.mean((2, 3))), rtol=0, atol=1e-10)
    with pytest.raises(InputError, match="a stage is"):
        EfficientNetLite(stages=((1, 3, 1, 1),))
