"""Sharpness and norm of models for which both are known in closed form."""

import math
import sys

import pytest
import torch
from torch import nn

from teeter import counter
from teeter.errors import InputError
from teeter.measure import parameter_norm, sharpness
from teeter.measure.sharpness import KINDS, Nudging, allows_vmap
from teeter.measure.stacked import stacked_sharpness


def line(dimension=20, seed=0):
    torch.manual_seed(seed)
    return nn.Linear(dimension, 1, bias=False).double()


def sample(rows=300, dimension=20):
    return torch.randn(rows, dimension, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_linear_model_has_sharpness_rho_squared_times_length_squared():
    x = sample()
    model = line()
    truth = float(x.square().sum(-1).mean())
    gauss = sharpness(model, x, rho=0.1, draws=200, confidence=0.999)
    assert gauss.low <= 0.01 * truth <= gauss.high
    assert gauss.half_width < 0.5 * gauss.value
    sphere = sharpness(model, x, rho=0.1, law="sphere", draws=200, confidence=0.999)
    assert sphere.low <= 0.01 * truth / 20 <= sphere.high


def test_output_and_prediction_of_a_linear_model():
    x, model = sample(), line()
    lengths = x.norm(dim=-1)
    output = sharpness(model, x, "output", rho=0.1, draws=200, confidence=0.999)
    assert output.low <= float((0.1 * lengths * math.sqrt(2 / math.pi)).mean()) <= output.high
    margin = model(x).detach().squeeze(-1).abs()
    chance = float(torch.special.ndtr(-margin / (0.1 * lengths)).mean())
    prediction = sharpness(model, x, "prediction", rho=0.1, draws=200, confidence=0.999)
    assert prediction.low <= chance <= prediction.high


def test_the_rise_of_the_error_is_sharpness_at_a_perfect_fit_and_else_against_its_definition():
    x, model = sample(), nn.Sequential(line(), nn.Tanh())
    answers = model(x).detach()
    perfect = sharpness(model, x, "rise", rho=0.1, targets=answers)
    assert perfect.value == pytest.approx(sharpness(model, x, rho=0.1).value, rel=1e-12)
    targets = answers.squeeze(-1) - 0.5
    rises = []
    for noise in Nudging(rho=0.1).noise(dict(model.named_parameters()), range(10))["0.weight"]:
        nudged = torch.tanh(x @ (model[0].weight.detach() + noise).T).squeeze(-1)
        rises.append((nudged - targets).square().mean() - 0.25)
    found = [sharpness(model, x, "rise", rho=0.1, targets=targets, together=each) for each in (True, False)]
    assert all(each.value == pytest.approx(float(sum(rises)) / 10, rel=1e-9) for each in found)
    assert sharpness(model, x, "rise", rho=1e-4, targets=targets).low < 0  # an error may also fall


def test_the_sphere_has_its_radius():
    """With one input along a coordinate axis, no output moves by more than rho, and over all axes they add to rho^2."""
    model = line(6)
    every = sharpness(model, torch.eye(6).double(), rho=0.3, law="sphere", draws=5)
    assert every.value * 6 == pytest.approx(0.09)


class Two(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part, self.head = part, nn.Linear(8, 2)

    def forward(self, x):
        answer = self.part(x)
        return self.head((answer[0] if isinstance(answer, tuple) else answer).mean(1))


@pytest.mark.parametrize(
    "part",
    [
        nn.Linear(8, 8),
        nn.LSTM(8, 8, batch_first=True),  # has no rule under vmap
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
    ],
    ids=["linear", "lstm", "transformer"],
)
@pytest.mark.filterwarnings("ignore:RNN module weights")
def test_together_and_one_by_one_agree(part):
    torch.manual_seed(0)
    model = Two(part).eval()
    x = torch.randn(12, 5, 8)
    weights = [dict(model.named_parameters())] * 2
    assert allows_vmap(model, weights, x[:1]) == (not isinstance(part, nn.LSTM))
    for kind in ("direction", "output", "prediction"):
        together = sharpness(model, x, kind, rho=0.05, draws=4)
        alone = sharpness(model, x, kind, rho=0.05, draws=4, together=False, batch=5)
        assert together.value == pytest.approx(alone.value, rel=1e-4, abs=1e-7)


def test_few_copies_at_a_time_give_the_same_answer(monkeypatch):
    model, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double(), torch.randn(40, 6).double()
    kinds = [(kind, t) for kind in KINDS if kind != "rise" for t in (True, False)]
    all_at_once = [sharpness(model, x, kind, draws=7, together=t) for kind, t in kinds]
    monkeypatch.setattr(sys.modules[sharpness.__module__], "TOGETHER", 3 * 83)  # the numbers in three copies
    few_at_once = [sharpness(model, x, kind, draws=7, together=t) for kind, t in kinds]
    for one, other in zip(all_at_once, few_at_once, strict=True):
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=1e-12)


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_that_of_each_draw_and_parameter_alone(law, dtype):
    """To the last bit, and whichever draws are made together."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 5, bias=False), nn.LayerNorm(5)).to(dtype)
    weights = dict(model.named_parameters())
    how = Nudging(rho=0.3, law=law, skip=("0.bias",), seed=4)
    moved = [(name, weight) for name, weight in weights.items() if name != "0.bias"]
    for draws in (range(5), range(3, 5)):
        noise = how.noise(weights, draws)
        assert list(noise) == [name for name, _ in moved]
        for row, draw in enumerate(draws):
            steps = [counter.normal(4, draw, k, torch.arange(weight.numel())) for k, (_, weight) in enumerate(moved)]
            square = torch.tensor([sum(float(step.square().sum()) for step in steps)], dtype=torch.float64)
            length = float(square.sqrt()) if law == "sphere" else 1.0  # not math.sqrt to the last bit everywhere
            for (name, weight), step in zip(moved, steps, strict=True):
                assert torch.equal(noise[name][row], (0.3 / length * step).reshape(weight.shape).to(weight))


def test_what_is_skipped_stays():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)).double()
    x = sample(10, 4)
    assert sharpness(model, x, skip=("0.", "1.weight"), rho=0.5, draws=300).value == pytest.approx(0.25, rel=0.3)
    with pytest.raises(InputError, match="no parameter is left"):
        sharpness(model, x, skip=("weight", "bias"))
    assert sharpness(model, x, rho=0.0).value < 1e-30


def test_same_seed_same_answer_whatever_the_batch():
    model, x = line(), sample(50)
    values = {sharpness(model, x, batch=batch, seed=4).value for batch in (1, 7, 50)}
    assert max(values) - min(values) < 1e-15
    assert sharpness(model, x, seed=5).value not in values


def test_intervals_allow_for_the_draws_being_shared():
    """Few draws: the spread between them, not between inputs, is what the interval must hold."""
    x, model = sample(500), line()
    truth = 0.0004 * float(torch.tensor(20.0))  # E |x|^2 = 20
    covered = sum((e := sharpness(model, x, draws=8, seed=s)).low <= truth <= e.high for s in range(150))
    assert covered >= 133  # 95 % of 150, less two and a half standard errors


def test_parameter_norm():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    for weight in model.parameters():
        nn.init.constant_(weight, 2.0)
    assert parameter_norm(model) == pytest.approx(2 * math.sqrt(6 + 2 + 2 + 1))
    assert parameter_norm(model, skip=("1.",)) == pytest.approx(2 * math.sqrt(8))
    assert parameter_norm(model, skip=("",)) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(kind="loss"), "the kind is direction, output, prediction"),
        (dict(kind="rise"), "is one from targets"),
        (dict(kind="rize", targets=torch.ones(5)), "the kind is direction"),
        (dict(targets=torch.ones(5)), "no other kind has them"),
        (dict(kind="rise", targets=torch.ones(6).double()), r"outputs \(5, 1\) and targets \(6,\)"),
        (dict(kind="rise", targets=torch.ones(5, 2).double()), r"targets \(5, 2\)"),
        (dict(kind="rise", targets=torch.tensor(1.0)), r"targets \(\)"),
        (dict(law="cube"), "'gaussian' or 'sphere'"),
        (dict(rho=-1.0), "rho is at least 0"),
        (dict(draws=1), "draws at least 2"),
        (dict(inputs=torch.ones(1, 20).double()), "at least two inputs"),
        (dict(model=lambda x: x), "needs a torch module"),
        (dict(model=nn.Sequential(nn.Dropout(), line())), "training mode"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        sharpness(**{"model": line(), "inputs": sample(5), **change})


def test_a_share_is_at_most_one():
    """A model with a weight of its own for the sign: in every draw either all answers change or none does."""
    model = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(model.weight, 0.01)
    x = torch.ones(30, 1).double()
    found = [sharpness(model, x, "prediction", rho=1.0, draws=3, seed=seed) for seed in range(8)]
    assert {each.high for each in found if 0 < each.value < 1} == {1.0}
    weights = {"weight": model.weight.detach().unsqueeze(0)}
    program = lambda weights, x: x @ weights["weight"].transpose(1, 2)  # noqa: E731
    how = dict(batch=30, pairs=1000, kind="prediction", rho=1.0, draws=3)
    assert [stacked_sharpness(program, weights, x, seed=seed, **how)[0] for seed in range(8)] == found


def test_no_flip_at_all_is_still_in_doubt():
    steady = line()
    nn.init.constant_(steady.weight, 100.0)
    estimate = sharpness(steady, torch.ones(30, 20).double(), "prediction", rho=1e-6, draws=10)
    assert (estimate.value, estimate.low) == (0, 0)
    assert (1 - estimate.high) ** 10 == pytest.approx(0.025)
