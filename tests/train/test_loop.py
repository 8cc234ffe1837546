"""The loop against steps written out by hand, and what it does with rows, modes, penalties and bad input."""

import pytest
import torch
from torch import nn

from teeter import cube, perturb
from teeter.errors import InputError
from teeter.measure import Estimate
from teeter.models import Encoder
from teeter.train import BitStream, Diverged, Recipe, measures, rate_at, train
from teeter.train.state import weights_of

from .killed import batch_norm, dropout


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def labelled(step):
    """A batch of float64 for each step, with classes or with numbers."""
    drawn = torch.Generator().manual_seed(step)
    x = torch.randn(10, 6, generator=drawn, dtype=torch.float64)
    return x, torch.randint(0, 3, (10,), generator=drawn)


def squares(step):
    x, classes = labelled(step)
    return x, torch.stack([classes, -classes, 2 * classes], -1).double()


def by_hand(model, stream, recipe):
    """Every optimizer written out from its definition; gradients by autograd, all else in plain steps."""
    weights = list(model.parameters())
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    losses = []
    for step in range(recipe.steps):
        x, y = stream(step)
        outputs = model(x)
        if recipe.loss == "mse":
            loss = ((outputs - y) ** 2).mean()
        else:
            loss = -(outputs - outputs.exp().sum(-1, keepdim=True).log())[range(len(y)), y].mean()
        gradients = list(torch.autograd.grad(loss, weights))
        losses.append(loss.item())
        if recipe.clip is not None:
            norm = sum(float((g**2).sum()) for g in gradients) ** 0.5
            gradients = [g * min(1.0, recipe.clip / (norm + 1e-6)) for g in gradients]  # the 1e-6 is torch's
        rate = rate_at(recipe, step)
        with torch.no_grad():
            for k, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
                if recipe.optimizer == "adamw":
                    weight.mul_(1 - rate * recipe.weight_decay)
                else:
                    gradient = gradient + recipe.weight_decay * weight
                if recipe.optimizer == "sgd":
                    weight.sub_(rate * gradient)
                    continue
                first[k] = 0.9 * first[k] + 0.1 * gradient
                second[k] = 0.999 * second[k] + 0.001 * gradient**2
                mean, square = first[k] / (1 - 0.9 ** (step + 1)), second[k] / (1 - 0.999 ** (step + 1))
                weight.sub_(rate * mean / (square.sqrt() + 1e-8))
    return losses


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize(
    ("loss", "more"),
    [
        ("mse", dict(weight_decay=0.1)),
        ("cross-entropy", dict(weight_decay=0.0, schedule="cosine", warmup=5)),
        ("mse", dict(weight_decay=0.3, clip=0.2, schedule="step:10")),
    ],
)
def test_the_loop_is_the_definition(optimizer, loss, more):
    recipe = Recipe(60, 10, optimizer, rate=0.02, loss=loss, **more)
    stream = squares if loss == "mse" else labelled
    twin, model = network(), network()
    losses = by_hand(twin, stream, recipe)
    made = train(model, stream, recipe, every=20)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert [row["step"] for row in made.rows] == [0, 20, 40, 60]
    assert made.rows[0]["loss"] is None
    for row in made.rows[1:]:
        assert row["loss"] == pytest.approx(sum(losses[row["step"] - 20 : row["step"]]) / 20, rel=1e-12)
        assert row["rate"] == rate_at(recipe, row["step"] - 1)


def trajectory(**more):
    torch.manual_seed(0)
    model = nn.Sequential(*batch_norm(), nn.Flatten(0), nn.Unflatten(0, (-1, 1)), *dropout()[2:3])
    stream = BitStream(cube.majority, 5, 32, seed=0)
    return train(model, stream, Recipe(40, 32, rate=0.01), **{"every": 10, "seed": 1, **more})


def meddling(model):
    """A measure that draws, adds up gradients and leaves the model in training mode."""
    assert not any(part.training for part in model.modules())
    assert not torch.is_grad_enabled()
    torch.manual_seed(5)
    with torch.enable_grad():
        model(torch.ones(2, 5)).sum().backward()
    model.train()
    return torch.rand(())


def test_measuring_changes_nothing():
    x = cube.points(5).float()
    plain = trajectory()
    what = {"meddling": meddling, "sensitivity": measures.sensitivity(x, perturb.BitFlip(), budget=200)}
    watched = trajectory(measures=what, every=3)
    ours, theirs = weights_of(plain.model), weights_of(watched.model)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    losses = {row["step"]: row["loss"] for row in watched.rows}
    assert sum(3 * losses[step] for step in range(3, 31, 3)) == pytest.approx(
        sum(10 * row["loss"] for row in plain.rows[1:4]), rel=1e-12
    )
    assert watched.measuring > 0
    assert plain.seconds > 0


def test_gradients_are_as_they_were_after_a_measure():
    """A model that is measured by hand between steps of its own."""
    from teeter.train.rows import measured

    model = nn.Linear(5, 1)
    model(torch.ones(1, 5)).sum().backward()
    gradient = model.weight.grad.clone()
    measured(model, {"meddling": meddling}, torch.device("cpu"))
    assert torch.equal(model.weight.grad, gradient)
    assert model.training


def test_global_randomness_is_left_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    model, stream = dropout(), BitStream(cube.parity, 5, 8, seed=0)
    torch.set_rng_state(before)
    train(model, stream, Recipe(5, 8))
    assert torch.equal(torch.get_rng_state(), before)
    train(model, stream, Recipe(5, 8), measures={"draws": lambda model: float(torch.rand(()))})
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_is_that_of_dropout():
    one, same, other = (trajectory(seed=seed).rows[-1] for seed in (1, 1, 2))
    assert one == same != other


def test_modes():
    """A model in evaluation mode is trained in training mode; a part that was set apart stays so."""
    model, seen = batch_norm().eval(), []
    model[0].register_forward_pre_hook(lambda part, given: seen.append(part.training))
    stream = BitStream(cube.parity, 5, 8, seed=0)
    made = train(model, stream, Recipe(2, 8))
    assert seen == [True, True]
    assert not made.model.training
    model = batch_norm().train()
    model[1].eval()
    train(model, stream, Recipe(2, 8))
    assert int(model[1].num_batches_tracked) == 0


def test_what_measures_may_answer():
    answers = {
        "number": lambda model: 3,
        "tensor": lambda model: torch.tensor(0.5),
        "estimate": lambda model: Estimate(0.2, 0.1, 0.4, n=9),
        "several": lambda model: {"a": 1.0, "b": 2.0},
    }
    row = train(network(), squares, Recipe(1, 10), measures=answers).rows[-1]
    del row["loss"], row["rate"]
    assert row == {
        **{"step": 1, "number": 3.0, "tensor": 0.5, "estimate": 0.2, "estimate_low": 0.1, "estimate_high": 0.4},
        **{"several_a": 1.0, "several_b": 2.0},
    }
    with pytest.raises(InputError, match="'words' gave 'much'"):
        train(network(), squares, Recipe(1, 10), measures={"words": lambda model: "much"})
    with pytest.raises(InputError, match="two measures give the column a_b"):
        clash = {"a": lambda model: {"b": 1.0}, "a_b": lambda model: 1.0}
        train(network(), squares, Recipe(1, 10), measures=clash)


def test_chosen_steps():
    made = train(network(), squares, Recipe(40, 10), every=(32, 1, 4, 4))
    assert [row["step"] for row in made.rows] == [0, 1, 4, 32, 40]
    dense = train(network(), squares, Recipe(40, 10), every=1)
    assert made.rows[3]["loss"] == pytest.approx(sum(row["loss"] for row in dense.rows[5:33]) / 28, rel=1e-12)
    assert [row["step"] for row in train(network(), squares, Recipe(5, 10)).rows] == [0, 5]


def test_a_penalty_is_added_to_the_loss():
    """mse + 3/2 |outputs|^2 by the penalty, against the same loss written into the targets' loss by hand."""
    recipe = Recipe(20, 10, "sgd", rate=0.05, weight_decay=0.0)
    model, twin = network(), network()
    made = train(model, squares, recipe, penalty=lambda model, x, outputs: 1.5 * outputs.square().mean(), every=20)
    optimizer, seen = torch.optim.SGD(twin.parameters(), lr=0.05), []
    for step in range(20):
        x, y = squares(step)
        outputs = twin(x)
        parts = (outputs - y).square().mean(), 1.5 * outputs.square().mean()
        optimizer.zero_grad()
        sum(parts).backward()
        optimizer.step()
        seen.append([part.item() for part in parts])
    torch.testing.assert_close(list(model.parameters()), list(twin.parameters()), rtol=1e-12, atol=1e-12)
    loss, penalty = torch.tensor(seen, dtype=torch.float64).mean(0).tolist()
    assert made.rows[-1]["loss"] == pytest.approx(loss, rel=1e-12)
    assert made.rows[-1]["penalty"] == pytest.approx(penalty, rel=1e-12)
    assert made.rows[0]["penalty"] is None


def test_progress_is_told_of_every_step():
    told = []
    train(
        network(), squares, Recipe(4, 10), every=2, progress=lambda *given: told.append((*given[:2], given[2]["step"]))
    )
    assert told == [(0, 4, 0), (1, 4, 0), (2, 4, 2), (3, 4, 2), (4, 4, 4)]


def test_fewer_bits_in_training_and_all_of_them_in_measures():
    types, backward = set(), set()
    model = network().float()
    model[0].weight.register_hook(lambda gradient: backward.add(torch.is_autocast_enabled("cpu")))
    model[0].register_forward_hook(lambda part, given, out: types.add((part.training, out.dtype)))
    stream = lambda step: tuple(part.float() for part in squares(step))  # noqa: E731
    what = {"look": lambda model: float(model(torch.ones(1, 6)).sum())}
    made = train(model, stream, Recipe(30, 10, rate=0.01, arithmetic="bf16"), measures=what)
    assert types == {(True, torch.bfloat16), (False, torch.float32)}
    assert backward == {False}  # as torch asks for
    full = train(network().float(), stream, Recipe(30, 10, rate=0.01)).rows[-1]["loss"]
    assert made.rows[-1]["loss"] == pytest.approx(full, rel=0.02)
    assert made.rows[-1]["loss"] != full
    assert next(model.parameters()).dtype == torch.float32


def test_compile_is_for_training_alone(monkeypatch):
    """The compiler itself is tried on a GPU (test_cuda)."""
    asked, through = [], []

    def record(model, **how):
        asked.append(how)
        return lambda x: through.append(len(x)) or model(x)

    monkeypatch.setattr(torch, "compile", record)
    plain = train(network(), squares, Recipe(3, 10))
    what = {"look": lambda model: float(model(torch.ones(1, 6).double()).sum())}
    fast = train(network(), squares, Recipe(3, 10), compile=True, measures=what)
    train(network(), squares, Recipe(1, 10), compile="reduce-overhead")
    assert fast.rows[-1]["loss"] == plain.rows[-1]["loss"]
    assert through == [10] * 4
    assert asked == [dict(dynamic=False, mode=None), dict(dynamic=False, mode="reduce-overhead")]


def test_outputs_with_logits():
    class Answer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return type("Output", (), {"logits": self.inner(x["pixels"])})

    made = train(Answer(), lambda step: ({"pixels": squares(step)[0]}, squares(step)[1]), Recipe(5, 10))
    assert made.rows[-1]["loss"] == train(network(), squares, Recipe(5, 10)).rows[-1]["loss"]


# Ctrl-C


def test_a_loss_that_is_not_a_number_names_its_step():
    x, y = squares(0)
    for bad in (float("nan"), float("inf")):
        stream = lambda step, bad=bad: (x, y + (bad if step == 17 else 0.0))  # noqa: E731
        with pytest.raises(Diverged, match=f"loss of step 17 is {bad}: try a smaller rate") as found:
            train(network(), stream, Recipe(100, 10), every=10)
        assert [row["step"] for row in found.value.rows] == [0, 10]
    penalty = lambda model, x, outputs: outputs.sum() * float("nan")  # noqa: E731
    with pytest.raises(Diverged, match=r"loss of step 0 is \d.* and its penalty nan"):
        train(network(), squares, Recipe(5, 10), penalty=penalty)


def test_weights_that_are_not_numbers_are_seen_before_measures_are():
    """The gradient of a root at 0 is not finite, though the root is."""
    with pytest.raises(Diverged, match="after step 0 some weights are NaN or infinite"):
        train(network(), squares, Recipe(5, 10), penalty=lambda model, x, outputs: (0 * outputs.sum()).sqrt(), every=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(every=0), "rows are made every so many steps, or at steps from 0 to 5, got 0"),
        (dict(every=(1, 6)), r"at steps from 0 to 5, got \(1, 6\)"),
        (dict(every=(1.5,)), "rows are made"),
        (dict(keep=0), "every so many steps, at least 1, got 0"),
        (dict(measures={"loss": float}), "every row has a column loss already"),
        (dict(measures={"penalty": float}), "every row has a column penalty already"),
        (dict(penalty=lambda model, x, outputs: outputs), "a penalty is a tensor of one number"),
        (dict(penalty=lambda model, x, outputs: 0.5), "a penalty is a tensor of one number, got 0.5"),
    ],
)
def test_arguments_that_mean_nothing(given, message):
    with pytest.raises(InputError, match=message):
        train(network(), squares, Recipe(5, 10), **given)


def test_models_and_streams_that_do_not_fit():
    frozen = network()
    for weight in frozen.parameters():
        weight.requires_grad_(False)
    apart = nn.Sequential(network()[0], nn.Linear(8, 3, device="meta"))
    for model, stream, recipe, message in [
        (cube.parity, squares, Recipe(5, 10), "needs a torch module, got function"),
        (frozen, squares, Recipe(5, 10), "Sequential has no weight to train"),
        (nn.Tanh(), squares, Recipe(5, 10), "Tanh has no weight to train"),
        (apart, squares, Recipe(5, 10), "on one device, got cpu, meta"),
        (network().to("meta"), squares, Recipe(5, 10), "on one device, got cpu, meta"),
        (network(), squares, Recipe(5), "batches of 1024 and the stream gives 10"),
        (network(), squares, Recipe(5, 10, arithmetic="tf32"), "tf32 is arithmetic of NVIDIA GPUs"),
        (network(), squares, Recipe(5, 10, loss="cross-entropy"), "cross-entropy takes outputs"),
        (
            network(),
            lambda step: (squares(step)[0], labelled(step)[1]),
            Recipe(5, 10),
            "outputs and targets of one shape",
        ),
        (nn.LSTM(6, 3).double(), squares, Recipe(5, 10), "returns a tensor, or has it as .logits, got tuple"),
    ]:
        with pytest.raises(InputError, match=message):
            train(model, stream, recipe)


def test_frozen_weights_stay():
    model = network()
    model[0].weight.requires_grad_(False)
    before = model[0].weight.clone()
    train(model, squares, Recipe(5, 10, rate=0.1))
    assert torch.equal(model[0].weight, before)
    assert not torch.equal(model[2].weight, network()[2].weight)


def test_the_encoder_learns_majority():
    """H 7.1 in small: MAJORITY on 5 bits, whose sensitivity is 5 C(4,2) / 2^4 = 1.875 flips of 5."""
    x = cube.points(5).float()
    torch.manual_seed(0)
    what = {
        "accuracy": measures.accuracy(x, cube.majority(x)),
        "sensitivity": measures.sensitivity(x, perturb.BitFlip(), design="paper", draws=1, budget=None),
        "sharpness": measures.sharpness(x, draws=4),
        "blowup": measures.blowup(x),
        "norm": measures.parameter_norm(),
    }
    recipe = Recipe(400, 64, rate=3e-3)
    made = train(Encoder(length=5, dim=16), BitStream(cube.majority, 5, 64, seed=0), recipe, measures=what, every=200)
    last = made.rows[-1]
    assert last["loss"] < 0.05
    assert last["accuracy"] == 1
    assert last["sensitivity"] == pytest.approx(1.875 / 5, abs=1e-12)
    assert last["sharpness_low"] < last["sharpness"] < last["sharpness_high"]
    assert last["blowup"] > 0
    assert last["norm"] > 0
