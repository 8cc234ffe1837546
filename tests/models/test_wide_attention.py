"""What the two vision transformers' own tests do not see of attention whose heads are as wide as its input."""

import pytest
import torch
from torch import Tensor, nn

from teeter.measure import sensitivity
from teeter.models import MODELS
from teeter.models.vit_simple import PlainAttention
from teeter.models.vit_small import LocalityAttention
from teeter.models.wide_attention import is_wide
from teeter.perturb import HiddenNoise
from tests.models.vision import unlike_a_fresh_one

PARTS = pytest.mark.parametrize(
    "make",
    [
        lambda: PlainAttention(dim=8, heads=2, dim_head=8),
        lambda: LocalityAttention(dim=8, heads=2, dim_head=8, attention="softmax"),
        lambda: LocalityAttention(dim=8, heads=2, dim_head=8, attention="relu"),
    ],
    ids=["plain", "softmax", "relu"],
)


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def answers(part: nn.Module, x: Tensor) -> list[Tensor]:
    """What it says, and the gradients of the input and of all weights."""
    x = x.clone().requires_grad_()
    said = part(x)
    weights = [each for _, each in sorted(part.named_parameters())]
    return [said, *torch.autograd.grad((said * drawn(*said.shape)).sum(), [x, *weights])]


@PARTS
@pytest.mark.parametrize("n", [5, 7, 8, 9])
def test_tokens_that_a_gpu_is_given_beside_change_nothing(make, n, monkeypatch):
    part, x = unlike_a_fresh_one(make()), drawn(3, n, 8)
    usual = answers(part, x)
    seen = []
    pad = torch.nn.functional.pad
    monkeypatch.setattr(
        "teeter.models.wide_attention.F.pad", lambda *given, **how: seen.append(1) or pad(*given, **how)
    )
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    monkeypatch.setattr("teeter.models.wide_attention.ON_GPU", True)
    padded = answers(part, x)
    assert bool(seen) == (n != 8)
    assert all(torch.allclose(one, other, rtol=0, atol=1e-10) for one, other in zip(usual, padded, strict=True))


@PARTS
def test_no_images(make):
    assert make()(torch.zeros(0, 5, 8)).shape == (0, 5, 8)


@PARTS
def test_weights_of_many_models_at_once(make):
    part, x = unlike_a_fresh_one(make()), drawn(3, 6, 8)
    many = {name: torch.stack([each.detach(), 2 * each.detach()]) for name, each in part.named_parameters()}
    both = torch.vmap(lambda own: torch.func.functional_call(part, own, (x,)))(many)
    for k in range(2):
        own = {name: each[k] for name, each in many.items()}
        assert torch.allclose(both[k], torch.func.functional_call(part, own, (x,)), rtol=0, atol=1e-10)


def maps(width: int = 8, bias: bool = False):
    return nn.Linear(8, 6 * width, bias=bias), nn.Linear(2 * width, 8)


def test_wide_are_plain_maps_of_enough_features_for_a_few_tokens():
    assert is_wide(*maps(), heads=2, tokens=5) and is_wide(*maps(9), heads=2, tokens=5)
    assert not is_wide(*maps(7), heads=2, tokens=5) and not is_wide(*maps(bias=True), heads=2, tokens=5)
    assert [tokens for tokens in (0, 1, 2, 128, 129) if is_wide(*maps(), heads=2, tokens=tokens)] == [2, 128]


@pytest.mark.parametrize("watched", [0, 1])
@pytest.mark.parametrize(
    "watch",
    [
        lambda each: each.register_forward_hook(lambda *given: None),
        lambda each: each.register_forward_pre_hook(lambda *given: None),
        lambda each: each.register_full_backward_hook(lambda *given: None),
        lambda each: each.register_full_backward_pre_hook(lambda *given: None),
    ],
    ids=["forward", "before forward", "backward", "before backward"],
)
def test_nobody_watches_them(watch, watched):
    pair = maps()
    handle = watch(pair[watched])
    assert not is_wide(*pair, heads=2, tokens=5)
    handle.remove()
    assert is_wide(*pair, heads=2, tokens=5)


@pytest.mark.parametrize("replaced", [0, 1])
def test_nothing_stands_in_their_place(replaced):
    pair = maps()
    torch.nn.utils.parametrize.register_parametrization(pair[replaced], "weight", nn.Identity())
    assert not is_wide(*pair, heads=2, tokens=5)
    pair = maps()
    pair[replaced].forward = lambda x: x
    assert not is_wide(*pair, heads=2, tokens=5)


def test_on_a_gpu_it_waits_for_a_measurement(monkeypatch):
    pair = maps()
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    assert not is_wide(*pair, heads=2, tokens=5)
    monkeypatch.setattr("teeter.models.wide_attention.ON_GPU", True)
    assert is_wide(*pair, heads=2, tokens=5)


@PARTS
@pytest.mark.parametrize("dynamic", [False, True])
def test_compilers_see_one_program(make, dynamic):
    part = torch.compile(make(), backend="eager", fullgraph=True, dynamic=dynamic)
    assert part(torch.zeros(3, 5, 8)).shape == (3, 5, 8)


@PARTS
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_token_that_sees_nobody_is_no_gap(make, n):
    assert make()(torch.randn(2, n, 8)).isfinite().all()


@pytest.mark.parametrize("name", ["vit-small", "vit-simple"])
def test_noise_within_the_attention(name):
    """Where queries, keys and values are nudged, there are some."""
    sizes = dict(image_size=8, patch=4, dim=8, layers=1, heads=2, dim_head=8, width=8, classes=3)
    torch.manual_seed(0)
    model, images = MODELS[name](**sizes).eval(), torch.randn(20, 3, 8, 8)
    tokens = 5 if name == "vit-small" else 4
    for module in ("blocks.0.attend.qkv", "blocks.0.attend.out"):
        assert sensitivity(model, images, HiddenNoise(module, 1e6, tokens=tokens), budget=200).value > 0.1
