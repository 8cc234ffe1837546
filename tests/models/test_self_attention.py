import pytest
import torch
import torch.nn.functional as F

import teeter
from teeter.data import Vocabulary, sequences
from teeter.errors import InputError
from teeter.models import MODELS, SelfAttention
from teeter.perturb import TokenReplace

from .training import falls, losses, reached, shuffled, size

TOKENS = torch.randint(9, (6, 5), generator=torch.Generator().manual_seed(0))


def model_of(seed=0, **settings):
    torch.manual_seed(seed)
    return SelfAttention(vocabulary=9, length=5, **settings)


def test_size():
    # W_Q, W_K, W_V of 59 x 59 and U of 50 x 59
    assert size(MODELS["self-attention"]()) == 3 * 59**2 + 50 * 59 == 13_393
    assert size(model_of(dim=4)) == 3 * 9 * 4 + 5 * 4


def test_it_is_equation_3():
    model = shuffled(model_of(dim=4))
    for tokens, value, weights in zip(TOKENS, model(TOKENS), model.weights(TOKENS), strict=True):
        x = F.one_hot(tokens, 9).double()
        phi = torch.softmax(x @ model.query @ model.key.T @ x.T, dim=1)
        assert torch.allclose(weights, phi, rtol=0, atol=1e-12)
        assert torch.allclose(value, torch.trace(model.head.T @ (phi @ x @ model.value)), rtol=0, atol=1e-12)


def test_what_the_study_looks_at():
    model = shuffled(model_of(dim=4))
    attended = model.attended(TOKENS)
    assert attended.shape == (6, 5)
    assert torch.allclose(attended.sum(-1), torch.ones(6, dtype=torch.float64))
    assert torch.equal(attended, model.weights(TOKENS).mean(1))
    # <U, phi X W_V> = <U W_V^T, phi X>: the readout's rows meet what each place gathers
    gathered = model.weights(TOKENS) @ F.one_hot(TOKENS, 9).double()
    assert torch.allclose((model.readout() * gathered).sum((1, 2)), model(TOKENS), rtol=0, atol=1e-12)


def test_gradient_check_and_reach():
    model = shuffled(model_of(dim=3))
    names, weights = zip(*model.named_parameters(), strict=True)

    def run(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (TOKENS,))

    assert torch.autograd.gradcheck(run, weights)
    assert reached(model, model(TOKENS).square().mean()) == []


def test_a_seed_and_a_scale():
    assert torch.equal(model_of(0)(TOKENS), model_of(0)(TOKENS))
    assert not torch.equal(model_of(0)(TOKENS), model_of(1)(TOKENS))
    for name, weight in SelfAttention(scale=0.03).named_parameters():
        assert float(weight.detach().std()) == pytest.approx(0.03, rel=0.05), name


def test_stacked_weights_give_what_a_loop_gives():
    models = [model_of(seed).double() for seed in range(3)]
    stack, _ = torch.func.stack_module_state(models)
    together = torch.vmap(lambda weights: torch.func.functional_call(models[0], weights, (TOKENS,)))(stack)
    assert torch.allclose(together, torch.stack([model(TOKENS) for model in models]), rtol=0, atol=1e-12)


def test_it_learns_the_sparse_tokens_where_they_are_the_safer_ones():
    """V Figure 3, left column: V's sizes, SGD in batches of 100 of 1,000 sentences, 200 steps."""
    words = Vocabulary(m=16, size=59)
    setting = dict(length=50, n_sparse=3, n_frequent=5, n_difference=1)
    tokens, labels = sequences(words, 1000, **setting, seed=0)
    torch.manual_seed(0)
    model = SelfAttention()

    def loss(step):
        rows = slice(step % 10 * 100, step % 10 * 100 + 100)
        return F.softplus(-labels[rows] * model(tokens[rows])).mean()

    assert falls(losses(model, loss, lr=0.15, optimizer=torch.optim.SGD), to=0.8)
    with torch.no_grad():
        other, truth = sequences(words, 200, **setting, seed=1, altered=True)
        assert float((model(other).sign() == truth).double().mean()) == 0  # fooled by its sparse tokens, each time
        rows, sparse = F.normalize(model.readout(), dim=-1), words.votes("sparse").float()
        assert float((rows @ F.normalize(sparse, dim=0)).mean()) > 0.95
    # n_s = 3 sparse tokens outvote any one replacement: V Table 1 says 0
    fresh, _ = sequences(words, 200, **setting, seed=2)
    assert teeter.sensitivity(model.eval(), fresh, TokenReplace(59), budget=4000).value < 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SelfAttention(vocabulary=0), "vocabulary is a whole number of at least 1, got 0"),
        (lambda: SelfAttention(length=0), "length is a whole number of at least 1, got 0"),
        (lambda: SelfAttention(dim=0), "dim is a whole number of at least 1, got 0"),
        (lambda: SelfAttention(scale=0), "above 0, got 0"),
        (lambda: model_of()(TOKENS[:, :4]), "\\(batch, 5\\), got torch.int64 \\(6, 4\\)"),
        (lambda: model_of()(TOKENS.double()), "torch.float64"),
        (lambda: model_of()(TOKENS + 5), "from 0 to 8, got 5 to 13"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
