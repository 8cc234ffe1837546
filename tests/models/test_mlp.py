import pytest
import torch
from torch import nn

from teeter.errors import InputError
from teeter.models import MODELS, mlp
from tests.models.vision import unlike_a_fresh_one


@pytest.mark.parametrize("activation", ["leaky-relu", "sigmoid"])
def test_by_hand(activation):
    model = unlike_a_fresh_one(mlp(image_size=3, channels=2, widths=(5, 4), classes=3, activation=activation))
    images = torch.randn(6, 2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = images.reshape(6, 18)
    linear = [part for part in model if isinstance(part, nn.Linear)]
    for layer in linear[:-1]:
        x = x @ layer.weight.T + layer.bias
        x = torch.where(x > 0, x, 0.01 * x) if activation == "leaky-relu" else 1 / (1 + torch.exp(-x))
    assert torch.allclose(model(images), x @ linear[-1].weight.T + linear[-1].bias, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "widths", "activation"),
    [
        ("mlp-leaky-relu", [784, 512, 128, 10], nn.LeakyReLU),
        ("mlp-sigmoid", [784, 512, 128, 10], nn.Sigmoid),
        ("mlp-mnist", [784, 100, 2], nn.LeakyReLU),
    ],
)
def test_widths_of_the_paper(name, widths, activation):
    parts = list(MODELS[name]().children())
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    assert [linear[0].in_features, *(part.out_features for part in linear)] == widths
    assert [type(part) for part in parts[2::2]] == [activation] * (len(widths) - 2)


def test_without_hidden_layers_it_is_linear():
    model = mlp(widths=(), image_size=2).double()
    x, y = torch.randn(2, 1, 1, 2, 2, dtype=torch.float64)
    zero = model(torch.zeros_like(x))
    assert torch.allclose(model(x + y) + zero, model(x) + model(y))


def test_bad_input():
    with pytest.raises(InputError, match="activation is one of leaky-relu, sigmoid, got 'tanh'"):
        mlp(activation="tanh")
    with pytest.raises(InputError, match="widths is a whole number of at least 1, got 0"):
        mlp(widths=(5, 0))
