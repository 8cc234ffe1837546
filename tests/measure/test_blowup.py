import math

import pytest
import torch
from torch import nn

from teeter.errors import InputError
from teeter.measure import blowup


def test_layer_norm_by_hand():
    x = torch.randn(6, 5, 8, generator=torch.Generator().manual_seed(0))
    for eps in (1e-5, 0.5):
        result = blowup(nn.LayerNorm(8, eps=eps), x)
        expected = 1 / torch.sqrt(x.double().var(-1, correction=0) + eps)
        assert torch.allclose(result.product, expected.amax(-1))
        assert torch.allclose(blowup(nn.LayerNorm(8, eps=eps), x, positions="last").product, expected[:, -1])
        assert torch.allclose(blowup(nn.LayerNorm(8, eps=eps), x, plus_one=True).product, 1 + expected.amax(-1))


def test_rms_norm_has_no_mean_to_take_away():
    x = torch.randn(4, 3, 8) + 5
    result = blowup(nn.RMSNorm(8, eps=0.1), x)
    assert torch.allclose(result.product, (1 / torch.sqrt(x.double().square().mean(-1) + 0.1)).amax(-1))
    default = blowup(nn.RMSNorm(8), x)
    assert torch.allclose(default.product, (1 / torch.sqrt(x.double().square().mean(-1) + 1.1920929e-07)).amax(-1))


@pytest.mark.parametrize("norm_first", [True, False])
def test_every_layer_of_an_encoder_counts_in_its_order(norm_first):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(7, 5, 8)
    fast = torch.backends.mha.get_fastpath_enabled()
    result = blowup(model, x, batch=3)
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert result.layers == ("layers.0.norm1", "layers.0.norm2", "layers.1.norm1", "layers.1.norm2")
    assert result.factors.shape == (7, 4)
    assert torch.allclose(result.product, result.factors.prod(-1))
    assert torch.allclose(result.factors, blowup(model, x).factors, rtol=1e-4)
    if norm_first:  # then the first norm sees the input itself
        assert torch.allclose(result.factors[:, 0], (1 / torch.sqrt(x.double().var(-1, correction=0) + 1e-5)).amax(-1))
    estimate = result.estimate()
    assert estimate.low < estimate.value < estimate.high


def test_a_constant_without_epsilon_blows_up_without_bound():
    assert blowup(nn.LayerNorm(4, eps=0.0), torch.ones(2, 1, 4)).product.tolist() == [math.inf, math.inf]


def test_bad_input():
    x = torch.randn(3, 4)
    with pytest.raises(InputError, match="no LayerNorm or RMSNorm"):
        blowup(nn.Linear(4, 1), x)
    with pytest.raises(InputError, match="needs a torch module"):
        blowup(lambda x: x, x)  # pyright: ignore
    with pytest.raises(InputError, match="'all' or 'last'"):
        blowup(nn.LayerNorm(4), x, positions="first")  # pyright: ignore

    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x):
            return x

    with pytest.raises(InputError, match="no normalisation layer ran"):
        blowup(Idle(), x)

    class Turned(Idle):
        def forward(self, x):
            return self.norm(x.unsqueeze(0))

    with pytest.raises(InputError, match="norm does not see inputs along its first axis"):
        blowup(Turned(), x)


def test_norms_of_other_kinds_are_named_or_known():
    class Sideways(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.transpose(1, -1)).transpose(1, -1)

    with pytest.raises(InputError, match="Sideways normalises in its own way"):
        blowup(Sideways(4), torch.randn(2, 4, 3))

    class T5LayerNorm(nn.Module):
        variance_epsilon = 0.5

        def forward(self, hidden):
            return hidden

    class ByKeyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = T5LayerNorm()

        def forward(self, x):
            return self.norm(hidden=x)

    x = torch.randn(3, 2, 4)
    assert torch.allclose(blowup(ByKeyword(), x).product, (1 / torch.sqrt(x.double().square().mean(-1) + 0.5)).amax(-1))
