"""The penalty against closed forms, naive twins and what it is for: less sensitivity at the same accuracy."""

import copy
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError
from teeter.measure import kl_divergence
from teeter.perturb import Noise
from teeter.train import SensitivityPenalty, ramp
from teeter.train.draws import draw

PATCH = perturb.PatchNoise(patch=2, sigma2=0.5)


def images(rows=8, seed=0):
    return torch.randn(rows, 1, 4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def texts(rows=8, length=6):
    torch.manual_seed(0)
    mask = torch.ones(rows, length, dtype=torch.long)
    mask[1::2, 4:] = 0
    return {"input_ids": torch.randint(0, 11, (rows, length)), "attention_mask": mask}


def network(outputs=3, hidden=12):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, hidden), nn.Tanh(), nn.Linear(hidden, outputs)).double()


class Reader(nn.Module):
    """Embedding, LayerNorm, one mixing layer, a head; masked mean over tokens."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embeddings = nn.ModuleDict({"word": nn.Embedding(11, 16), "LayerNorm": nn.LayerNorm(16)})
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, inputs):
        hidden = self.embeddings["LayerNorm"](self.embeddings["word"](inputs["input_ids"]))
        mask = inputs["attention_mask"].unsqueeze(-1)
        hidden = torch.tanh(self.mix(hidden)) * mask
        return SimpleNamespace(logits=self.head(hidden.sum(1) / mask.sum(1)))


def gradients(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


# Closed forms


@pytest.mark.parametrize("gradient", ["both", "stop"])
def test_a_linear_model_has_the_closed_form(gradient):
    """(w . noise)^2 on a random patch: sigma2 |w|^2 / patches, with gradient 2 sigma2 w / patches."""
    line = nn.Sequential(nn.Flatten(), nn.Linear(16, 1, bias=False)).double()
    weight = line[1].weight
    nn.init.uniform_(weight, 0.5, 1.5)
    penalty = SensitivityPenalty(PATCH, strength=1.0, gradient=gradient)
    values, slopes = [], []
    x = images(200) * 0.1
    for _ in range(300):
        value = penalty(line, x, line(x))
        slopes.append(torch.autograd.grad(value, weight)[0].flatten())
        values.append(value.detach())
    values, slopes = torch.stack(values), torch.stack(slopes)
    truth = 0.5 * float(weight.detach().square().sum()) / 4
    assert abs(float(values.mean()) - truth) < 4 * float(values.std()) / math.sqrt(300)
    assert float(values.std()) / math.sqrt(300) < 0.02 * truth  # tight enough to tell
    error = (slopes.mean(0) - 2 * 0.5 * weight.detach().flatten() / 4) / (slopes.std(0) / math.sqrt(300))
    assert float(error.abs().max()) < 4.5


def test_a_function_of_two_bits_by_hand():
    """Flipping bit i of w . x moves it by 2 w_i: 4 w_i^2, and which i it was says the draw."""
    weight = torch.tensor([1.0, 3.0], requires_grad=True)
    x = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    penalty = SensitivityPenalty(perturb.BitFlip(), strength=0.5, seed=3)
    value = penalty(lambda given: given @ weight, x, x @ weight, step=7)
    token = draw(perturb.BitFlip(), x, torch.arange(3), seed=3, step=7)[0].token
    expected = 0.5 * sum(4 * (1.0, 9.0)[int(i)] for i in token) / 3
    assert float(value.detach()) == pytest.approx(expected)


def test_mse_is_the_mean_over_rows_and_outputs_and_kl_that_of_the_measure():
    model, x = network(), images()
    noise, _ = draw(PATCH, x, torch.arange(8), seed=5, step=2)
    clean, nudged = model(x), PATCH.run(model, x, noise)
    mse = SensitivityPenalty(PATCH, 0.25, seed=5)(model, x, clean, step=2)
    torch.testing.assert_close(mse, 0.25 * nn.functional.mse_loss(nudged, clean))
    kl = SensitivityPenalty(PATCH, 0.25, distance="kl", seed=5)(model, x, clean, step=2)
    torch.testing.assert_close(kl, 0.25 * kl_divergence(clean, nudged).mean())
    assert float(kl.detach()) > 0
    one = network(outputs=1)
    single = SensitivityPenalty(PATCH, 1.0, distance="kl", seed=5)
    flat = single(lambda given: one(given)[:, 0], x, one(x)[:, 0], step=2)
    torch.testing.assert_close(flat, single(one, x, one(x), step=2))
    torch.testing.assert_close(flat, kl_divergence(one(x), PATCH.run(one, x, noise)).mean())


@pytest.mark.parametrize("distance", ["mse", "kl"])
def test_no_noise_no_penalty(distance):
    model, x = network(), images()
    penalty = SensitivityPenalty(perturb.PatchNoise(2, sigma2=0.0), 1.0, distance=distance)
    value = penalty(model, x, model(x))
    assert float(value.detach()) == pytest.approx(0, abs=1e-15)
    assert all(float(slope.abs().max()) < 1e-12 for slope in gradients(model, value))


# Gradients


@pytest.mark.parametrize("distance", ["mse", "kl"])
@pytest.mark.parametrize("gradient", ["both", "stop"])
def test_gradient_against_a_naive_twin(distance, gradient):
    model, x = network(), images()
    value = SensitivityPenalty(PATCH, 0.7, distance=distance, gradient=gradient, seed=1)(model, x, model(x), step=4)
    noise, _ = draw(PATCH, x, torch.arange(8), seed=1, step=4)
    clean, nudged = model(x), PATCH.run(model, x, noise)
    clean = clean.detach() if gradient == "stop" else clean
    if distance == "mse":
        naive = (clean - nudged).square().mean()
    else:
        naive = nn.functional.kl_div(nudged.log_softmax(-1), clean.softmax(-1), reduction="batchmean")
    expected = gradients(model, 0.7 * naive)
    for ours, theirs in zip(gradients(model, value), expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    other = SensitivityPenalty(PATCH, 0.7, distance=distance, gradient="both" if gradient == "stop" else "stop", seed=1)
    different = gradients(model, other(model, x, model(x), step=4))
    assert not torch.allclose(different[0], expected[0])


EVERY = {
    "patch": (perturb.PatchNoise(2, 0.5), images, network),
    "relative": (perturb.PatchNoise(2, 0.5, relative=True), images, network),
    "replace": (perturb.PatchReplace(2), images, network),
    "input": (perturb.InputNoise(0.5), images, network),
    "weights": (perturb.WeightNoise(0.01), images, network),
    "embedding": (perturb.EmbeddingNoise(sigma2=0.5), texts, Reader),
    "hidden": (perturb.HiddenNoise("mix", 0.5, relative=True), texts, Reader),
    "token": (perturb.TokenReplace(11), texts, Reader),
    "bit": (
        perturb.BitFlip(),
        lambda: torch.ones(8, 5, dtype=torch.float64).cumprod(1),
        lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)).double(),
    ),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_perturbation_trains_every_weight(name):
    """The gradient along a random direction is the slope of the value: nothing on the way is cut off."""
    nudge, data, make = EVERY[name]
    torch.manual_seed(0)
    model, inputs = make().double(), data()
    penalty = SensitivityPenalty(nudge, 1.0)

    def value():
        return penalty(model, inputs, model(inputs), step=1)

    slopes = gradients(model, value())
    directions = [torch.randn_like(weight) for weight in model.parameters()]
    at = []
    for size in (1e-4, -1e-4):
        with torch.no_grad():
            for weight, direction in zip(model.parameters(), directions, strict=True):
                weight.add_(size * direction)
            at.append(float(value()))
            for weight, direction in zip(model.parameters(), directions, strict=True):
                weight.sub_(size * direction)
    along = float(sum((slope * direction).sum() for slope, direction in zip(slopes, directions, strict=True)))
    assert abs(along) > 1e-6
    # Hidden sizes are taken in float32, which a difference quotient feels.
    assert (at[0] - at[1]) / 2e-4 == pytest.approx(along, rel=1e-2 if name == "hidden" else 1e-5)


def test_relative_noise_on_a_token_of_zeros_has_a_gradient():
    table = nn.Embedding(5, 4, padding_idx=0)
    model = nn.Sequential(table, nn.Flatten(), nn.Linear(8, 2))
    inputs = torch.zeros(3, 2, dtype=torch.long)
    penalty = SensitivityPenalty(perturb.HiddenNoise("0", 1.0, relative=True), 1.0)
    penalty(model, inputs, model(inputs)).backward()
    assert bool(torch.isfinite(table.weight.grad).all())


# Draws and state


def test_the_draw_is_a_pure_function_of_seed_step_and_row():
    model, x = network(), images(64)
    outputs = model(x)

    def value(seed, step, start=0, rows=slice(None)):
        penalty = SensitivityPenalty(PATCH, 1.0, seed=seed)
        return float(penalty(model, x[rows], outputs[rows], step=step, start=start).detach())

    assert value(0, 3) == value(0, 3)
    assert len({value(0, 3), value(0, 4), value(1, 3), value(0, 3, start=64)}) == 4
    halves = (value(0, 3, 0, slice(32)) + value(0, 3, 32, slice(32, None))) / 2
    assert halves == pytest.approx(value(0, 3), rel=1e-12)


def test_tokens_are_drawn_evenly_among_those_there_are():
    inputs = texts(4000)
    noise, there = draw(perturb.TokenReplace(11), inputs, torch.arange(4000), seed=0, step=0)
    assert bool(there.all())
    for rows, tokens in ((slice(0, None, 2), 6), (slice(1, None, 2), 4)):
        counts = noise.token[rows].bincount()
        assert len(counts) == tokens
        assert float((counts - 2000 / tokens).abs().max()) < 4.5 * math.sqrt(2000 / tokens)


def test_training_noise_is_not_the_noise_of_a_measurement():
    noise, _ = draw(PATCH, images(4), torch.arange(4), seed=0, step=0)
    for seed in range(8):
        assert not torch.equal(noise.normal(3), Noise(seed, noise.input, noise.token, noise.draw).normal(3))


def test_rows_of_padding_alone_do_not_count():
    inputs, model = texts(), Reader()
    # Both rows are read, neither has a word that may be nudged.
    inputs["input_ids"][:2] = 7
    penalty = SensitivityPenalty(perturb.TokenReplace(11, skip=(7,)), 1.0)
    rest = {name: part[2:] for name, part in inputs.items()}
    whole = penalty(model, inputs, model(inputs), step=0)
    torch.testing.assert_close(whole, penalty(model, rest, model(rest), step=0, start=2))
    none = {name: part[:2] for name, part in inputs.items()}
    assert float(penalty(model, none, model(none), step=0).detach()) == 0


def test_a_resumed_run_draws_what_the_whole_would_have():
    model, x = network(), images()
    penalty = SensitivityPenalty(PATCH, 1.0)
    whole = [float(penalty(model, x, model(x)).detach()) for _ in range(6)]
    assert len(set(whole)) == 6
    first = SensitivityPenalty(PATCH, 1.0)
    for _ in range(3):
        first(model, x, model(x))
    second = SensitivityPenalty(PATCH, 1.0)
    second.load_state_dict(first.state_dict())
    assert [float(second(model, x, model(x)).detach()) for _ in range(3)] == whole[3:]
    assert [float(penalty(model, x, model(x), step=step).detach()) for step in range(6)] == whole


def test_schedule():
    model, x = network(), images()
    seen = []
    plain = SensitivityPenalty(PATCH, 0.5)
    ramped = SensitivityPenalty(PATCH, 0.5, schedule=ramp(10, start=5))

    def watched(inputs):
        seen.append(1)
        return model(inputs)

    for step, factor in ((0, 0), (5, 0), (7, 0.2), (15, 1), (99, 1)):
        expected = factor * plain(model, x, model(x), step=step)
        torch.testing.assert_close(ramped(watched, x, model(x), step=step), expected)
    assert len(seen) == 3  # where the factor is 0 the model does not run


# Modes


def test_dropout_draws_a_mask_for_each_branch():
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 2)).double()
    x, penalty = images(), SensitivityPenalty(perturb.PatchNoise(2, sigma2=0.0), 1.0)
    assert float(penalty(model.train(), x, model(x)).detach()) > 0.001
    assert float(penalty(model.eval(), x, model(x)).detach()) == 0


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_averages_follow_the_clean_batch_alone(momentum):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, momentum=momentum), nn.Flatten(), nn.Linear(8, 2))
    model, x = model.double().train(), images()
    twin = copy.deepcopy(model)
    twin(x)
    (model(x).sum() + SensitivityPenalty(PATCH, 1.0)(model, x, model(x))).backward()
    twin(x)
    for name, buffer in twin.state_dict().items():
        assert torch.equal(model.state_dict()[name], buffer), name
    assert model[1].track_running_stats and model.training


def test_it_runs_without_gradients_and_in_half_precision():
    model, x = network().float(), images().float()
    penalty = SensitivityPenalty(PATCH, 1.0)
    with torch.no_grad():
        full = penalty(model, x, model(x), step=0)
    with torch.autocast("cpu", torch.bfloat16):
        half = penalty(model, x, model(x), step=0)
    assert half.dtype == torch.float32 and not full.requires_grad
    assert float(half.detach()) == pytest.approx(float(full), rel=0.1)


# The released form


def test_mixed():
    model, x = network(), images()
    labels = torch.arange(8) % 3
    loss = nn.functional.cross_entropy(model(x), labels)
    penalty = SensitivityPenalty(PATCH, 0.25)
    mixed = penalty.mixed(loss, model, x, model(x), step=3)
    torch.testing.assert_close(mixed, 0.75 * loss + penalty(model, x, model(x), step=3))
    off = SensitivityPenalty(PATCH, 0.25, schedule=lambda step: 0.0)
    assert off.mixed(loss, model, x, model(x)) is loss
    assert off.step == 1
    with pytest.raises(InputError, match="between 0 and 1, got a strength of 2"):
        SensitivityPenalty(PATCH, 2.0).mixed(loss, model, x, model(x))


# Bad input


def test_errors():
    model, x = network(), images()
    with pytest.raises(InputError, match="a perturbation is an object, got 'bit'"):
        SensitivityPenalty("bit", 1.0)
    with pytest.raises(InputError, match="'mse' or 'kl', got 'l1'"):
        SensitivityPenalty(PATCH, 1.0, distance="l1")
    with pytest.raises(InputError, match="'both' or 'stop', got 'none'"):
        SensitivityPenalty(PATCH, 1.0, gradient="none")
    for strength in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="at least 0"):
            SensitivityPenalty(PATCH, strength)
    with pytest.raises(InputError, match="at least 0, got -1"):
        SensitivityPenalty(PATCH, 1.0, schedule=lambda step: -1.0)(model, x, model(x))
    with pytest.raises(InputError, match="at least 1 step, got 0"):
        ramp(0)
    penalty = SensitivityPenalty(PATCH, 1.0)
    with pytest.raises(InputError, match="or have one as .logits, got dict"):
        penalty(model, x, {"a": 1})
    with pytest.raises(InputError, match=r"outputs for 8 inputs.*got \(4, 3\) and \(8, 3\)"):
        penalty(model, x, model(x)[:4])
    wide = nn.Conv2d(1, 2, 1).double()
    with pytest.raises(InputError, match=r"\(8,\) or \(8, classes\)"):
        penalty(wide, x, wide(x))


# What it is for


def fitted(strength, seed, steps=200):
    """Strings whose first bit is the label and whose other eleven agree with it seven times in ten.

    A network may read the first bit, whose flip changes its answer, or the vote of all of them, where few flips do.
    """
    labels = torch.arange(800) % 2
    signs = (2.0 * labels - 1).unsqueeze(1)
    agree = torch.rand(800, 12, generator=torch.Generator().manual_seed(100 + seed)) < 0.7
    agree[:, 0] = True
    x = torch.where(agree, signs, -signs)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    penalty = SensitivityPenalty(perturb.BitFlip(), strength, seed=seed)
    for _ in range(steps):
        outputs = model(x)
        loss = nn.functional.cross_entropy(outputs, labels) + penalty(model, x, outputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = float((model(x).argmax(-1) == labels).double().mean())
    return accuracy, teeter.sensitivity(model.eval(), x, perturb.BitFlip(), budget=6000, batch=800)


@pytest.mark.parametrize("seed", [0, 1])
def test_half_the_sensitivity_at_the_same_accuracy(seed):
    plain, penalised = fitted(0.0, seed), fitted(0.1, seed)
    assert plain[0] >= 0.997 and penalised[0] >= 0.997
    assert penalised[1].high < plain[1].low
    assert penalised[1].value < 0.7 * plain[1].value  # 0.039 against 0.080


def test_the_same_seed_trains_the_same_network():
    assert fitted(0.1, 0, steps=20) == fitted(0.1, 0, steps=20)
