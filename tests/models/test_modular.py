import pytest
import torch
import torch.nn.functional as F
from torch import nn

import teeter
from teeter.errors import InputError
from teeter.models import MODELS, ModularAddition
from teeter.perturb import EmbeddingNoise, HiddenNoise, TokenReplace
from teeter.train import Stack

from .training import Largest, falls, losses, reached, shuffled, size, torch_attention

P = 5
TOKENS = torch.cartesian_prod(torch.arange(P), torch.arange(P), torch.tensor([P]))
ANSWERS = (TOKENS[:, 0] + TOKENS[:, 1]) % P
SMALL = dict(p=P, dim=16, heads=4, width=32)


def model_of(seed=0, **settings):
    torch.manual_seed(seed)
    return ModularAddition(**SMALL, **settings)


def test_size():
    # 114 tokens and 3 positions of 128; attention 4 (128^2 + 128) = 66,048; network 128 x 512 + 512 and
    # 512 x 128 + 128, together 131,712; head 113 x 128 + 113
    assert size(MODELS["modular"]()) == 14_976 + 66_048 + 131_712 + 14_577 == 227_313
    # with residuals, as Nanda et al. have it, neither attention nor head has biases: 4 x 128 and 113 fewer
    assert size(ModularAddition(residual=True)) == 227_313 - 512 - 113


@pytest.mark.parametrize("residual", [False, True])
def test_it_is_the_transformer_spelled_out(residual):
    model = shuffled(model_of(residual=residual))
    x = model.embedding.token.weight[TOKENS] + model.embedding.position.weight
    if residual:  # all positions at once, without biases
        attention = model.attention
        heads = [part(x).unflatten(-1, (4, 4)) for part in (attention.query, attention.key, attention.value)]
        scores = torch.einsum("bihd,bjhd->bhij", heads[0], heads[1]) / 2
        mixed = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), heads[2]).flatten(-2)
        mid = x + attention.output(mixed)
        out = mid + model.down(F.relu(model.up(mid)))
    else:
        mid, _ = torch_attention(model.attention, 4)(x, x, x)
        out = model.down(F.relu(model.up(mid)))
    assert torch.allclose(model(TOKENS), model.head(out)[:, -1], rtol=0, atol=1e-10)
    assert model(TOKENS).shape == (25, 5)


def test_initial_weights():
    torch.manual_seed(0)
    released, nanda = ModularAddition(), ModularAddition(residual=True)
    assert not released.embedding.position.weight.any()
    assert float(released.embedding.token.weight.detach().std()) == pytest.approx(1, rel=0.03)
    for name, weight in nanda.named_parameters():
        if weight.ndim == 1:
            assert not weight.any(), name
        else:
            std = (113 if name == "head.weight" else 128) ** -0.5
            assert float(weight.detach().std()) == pytest.approx(std, rel=0.15), name


@pytest.mark.parametrize("residual", [False, True])
def test_a_seed_gradients_and_stacks(residual):
    assert torch.equal(model_of(0, residual=residual)(TOKENS), model_of(0, residual=residual)(TOKENS))
    assert not torch.equal(model_of(0, residual=residual)(TOKENS), model_of(1, residual=residual)(TOKENS))
    model = shuffled(model_of(residual=residual))
    silent = reached(model, F.cross_entropy(model(TOKENS), ANSWERS))
    assert all(name.endswith("key.bias") for name in silent)  # softmax does not see what all keys share
    models = [model_of(seed, residual=residual).double() for seed in range(3)]
    stack, _ = torch.func.stack_module_state(models)
    together = torch.vmap(lambda weights: torch.func.functional_call(models[0], weights, (TOKENS,)))(stack)
    assert torch.allclose(together, torch.stack([model(TOKENS) for model in models]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("residual", [False, True])
def test_gradient_check(residual):
    torch.manual_seed(0)
    model = shuffled(ModularAddition(p=3, dim=4, heads=2, width=3, residual=residual))
    names, weights = zip(*model.named_parameters(), strict=True)
    tokens = torch.tensor([[0, 1, 3], [2, 2, 3]])

    def run(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (tokens,))

    assert torch.autograd.gradcheck(run, weights)


@pytest.mark.parametrize("residual", [False, True])
def test_it_learns_addition(residual):
    model = model_of(residual=residual)
    seen = losses(model, lambda _: F.cross_entropy(model(TOKENS), ANSWERS), lr=1e-2)
    assert falls(seen, to=0.1)
    assert torch.equal(model(TOKENS).argmax(-1), ANSWERS)
    model.eval()
    # Of the p + 1 tokens that may replace a number p - 1 = 4 change the sum, one leaves it, and "=" may do either.
    replaced = teeter.sensitivity(model, TOKENS, TokenReplace(P + 1, skip=(P,)), design="paper", draws=20)
    assert 4 / 6 - 0.05 < replaced.value < 5 / 6 + 0.05
    little, much = (
        teeter.sensitivity(model, TOKENS, EmbeddingNoise(sigma2=s, skip=(P,)), budget=2000).value for s in (1e-6, 9.0)
    )
    assert little == 0 < 0.3 < much


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ModularAddition(p=1), "at least 2, got 1"),
        (lambda: ModularAddition(width=0), "width is a whole number of at least 1, got 0"),
        (lambda: ModularAddition(heads=3), "heads = 3"),
        (lambda: model_of()(TOKENS[:, :2]), "\\(batch, 3\\), got torch.int64 \\(25, 2\\)"),
        (lambda: model_of()(TOKENS.double()), "torch.float64"),
        (lambda: model_of()(TOKENS + 1), "from 0 to 5, got 1 to 6"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_stack_has_one_matrix_of_queries_a_model(monkeypatch):
    """Torch would otherwise copy it for every input, which took most of a training step."""
    stack, tokens = Stack([model_of(0), model_of(1)]), TOKENS.expand(2, *TOKENS.shape)
    monkeypatch.setattr(ModularAddition, "_has_tables", lambda self, tokens: False)
    with Largest() as seen:
        stack(tokens).sum().backward()
    assert 0 < seen.numbers <= 2 * len(TOKENS) * 3 * 16  # no more than the keys of all inputs, or the inner layer


MANY = torch.cartesian_prod(*[torch.arange(P + 1)] * 3)  # whatever there can be, at the last position too


def taken(monkeypatch):
    """Which ways the model goes from now on."""
    ways = []
    for name in ("_picked", "_attended"):
        usual = getattr(ModularAddition, name)
        monkeypatch.setattr(
            ModularAddition, name, lambda self, x, usual=usual, name=name: ways.append(name) or usual(self, x)
        )
    return ways


@pytest.mark.parametrize("residual", [False, True])
def test_tables_are_the_same_function(residual, monkeypatch):
    model, ways = shuffled(model_of(residual=residual)), taken(monkeypatch)
    weight = torch.randn(len(MANY), P, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def told():
        said = model(MANY)
        return [said, *torch.autograd.grad((said * weight).sum(), list(model.parameters()))]

    picked = told()
    monkeypatch.setattr(ModularAddition, "_has_tables", lambda self, tokens: False)
    assert all(torch.allclose(one, other, rtol=0, atol=1e-10) for one, other in zip(picked, told(), strict=True))
    assert ways == ["_picked", "_attended"]


def test_tables_are_for_many_inputs_on_a_processor(monkeypatch):
    model, ways = model_of(), taken(monkeypatch)
    model(MANY[: 4 * (P + 1) - 1]), model(MANY[: 4 * (P + 1)])
    assert ways == ["_attended", "_picked"]
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    model(MANY)  # where it has not been measured
    assert ways[2:] == ["_attended"]


def test_a_program_that_is_exported_is_for_any_number_of_inputs():
    model = ModularAddition(p=5, dim=8, width=8).eval()
    tokens = torch.cat([torch.randint(5, (100, 2)), torch.full((100, 1), 5)], 1)
    program = torch.export.export(model, (tokens,), dynamic_shapes=({0: torch.export.Dim("batch")},)).module()
    for some in (tokens, tokens[:3]):
        assert torch.allclose(program(some), model(some), atol=1e-6)


@pytest.mark.parametrize("name", ["embedding", "embedding.token", "attention", "attention.key", "attention.output"])
def test_who_watches_a_part_sees_all_inputs(name, monkeypatch):
    model, ways, seen = model_of(), taken(monkeypatch), []
    handle = model.get_submodule(name).register_forward_hook(lambda part, given, out: seen.append(len(out)))
    model(MANY)
    handle.remove()
    assert seen == [len(MANY)] and ways == ["_attended"]
    torch.nn.utils.parametrize.register_parametrization(model.get_submodule("attention.key"), "weight", nn.Identity())
    model(MANY)
    assert ways == ["_attended"] * 2


def test_tables_in_a_stack():
    models = [model_of(seed).double() for seed in range(2)]
    said = Stack(models)(torch.stack([MANY, MANY.flip(0)]))
    alone = torch.stack([models[0](MANY), models[1](MANY.flip(0))])
    assert torch.allclose(said, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["up", "down"])
@pytest.mark.parametrize("tables", [False, True])
def test_noise_within_the_network(name, tables, monkeypatch):
    """Which sees one position, whichever way that has come."""
    model = model_of().eval()
    monkeypatch.setattr(ModularAddition, "_has_tables", lambda self, tokens: tables)
    little, much = (
        teeter.sensitivity(model, TOKENS, HiddenNoise(name, sigma2, tokens=1), budget=2000).value
        for sigma2 in (1e-8, 9.0)
    )
    assert little < 0.02 < 0.2 < much
