"""A stack measured at once says of every model what is said of it alone."""

import copy
import math
import signal
from functools import partial

import pytest
import torch
from torch import nn

from teeter import cube
from teeter.errors import InputError
from teeter.measure import Estimate, stacked
from teeter.measure.room import pairs_at_once
from teeter.models import Encoder
from teeter.train import Recipe, Stack, bit_streams, measures, train_stack
from teeter.train.rows import measured, measured_stack
from teeter.train.stack import Stacked

X = cube.points(5)[:30]
CPU = torch.device("cpu")
CLASSES = torch.arange(30) % 3


class Classifier(nn.Module):
    """Normalised in two ways, with dropout, a weight that is not trained and several logits."""

    def __init__(self, out=3):
        super().__init__()
        self.first, self.norm = nn.Linear(5, 6), nn.LayerNorm(6)
        self.frozen, self.still = nn.Linear(6, 6).requires_grad_(False), nn.Dropout(0.5)
        self.rms, self.head = nn.RMSNorm(6), nn.Linear(6, out)

    def forward(self, x):
        return self.head(self.rms(self.still(self.frozen(self.norm(self.first(x)).relu()))))


class Alternating(Classifier):
    """A truth value of weights decides, which vmap cannot follow."""

    def forward(self, x):
        return super().forward(x) * (1 if bool(self.head.bias.sum() > 0) else 2)


KINDS = {
    "encoder": partial(Encoder, length=5, dim=8),
    "pre-norm encoder": partial(Encoder, length=5, dim=8, norm="pre"),
    "classifier": Classifier,
    "alternating": Alternating,
}


def models(kind, count=4, dtype=torch.float64):
    torch.manual_seed(0)
    return [KINDS[kind]().to(dtype) for _ in range(count)]


def usual(kind, dtype=torch.float64, batch=7):
    x = X.to(dtype)
    several = "encoder" not in kind
    targets, loss = (CLASSES, "cross-entropy") if several else (cube.majority(x), "mse")
    return {
        "both": measures.fit(x, targets, loss, batch=batch),
        "fit": measures.loss(x, targets, loss, batch=batch),
        "right": measures.accuracy(x, targets, batch=batch),
        "direction": measures.sharpness(x, draws=4, rho=0.1, batch=batch, seed=3),
        "output": measures.sharpness(x, "output", law="sphere", skip=("head",), draws=5, batch=batch),
        "prediction": measures.sharpness(x, "prediction", rho=0.3, confidence=0.8, together=False, batch=batch),
        "rise": measures.sharpness(x, "rise", targets=x[:, : 3 if several else 1], rho=0.1, batch=batch),
        "steady": measures.sharpness(x, "prediction", rho=1e-12, batch=batch),
        "blowup": measures.blowup(x, batch=batch),
        "more": measures.blowup(x, positions="last", plus_one=True),
        "norm": measures.parameter_norm(),
        "some": measures.parameter_norm(skip=("norm", "bias")),
        "none": measures.parameter_norm(skip=("",)),
    }


def rows(stack, what, places=None, pause=lambda: None):
    places = range(len(stack)) if places is None else places
    return measured_stack(stack, places, [what] * len(places), CPU, pause)


def one_by_one(stack, what, places=None):
    places = range(len(stack)) if places is None else places
    return [measured(stack.put(place, copy.deepcopy(stack.shape)), what, CPU) for place in places]


def agree(ours, theirs, rel):
    for mine, yours in zip(ours, theirs, strict=True):
        assert list(mine) == list(yours)
        assert mine == pytest.approx(yours, rel=rel, abs=rel)


@pytest.fixture
def never_alone(monkeypatch):
    """No ready-made measure may be told of one model alone."""
    kinds = (measures.Accuracy, measures.Loss, measures.Fit, measures.Sharpness)
    for kind in (*kinds, measures.LogBlowup, measures.ParameterNorm):
        monkeypatch.setattr(kind, "__call__", lambda self, model: pytest.fail(f"{self} was told of one model"))


@pytest.mark.parametrize("kind", ["encoder", "pre-norm encoder", "classifier"])
def test_at_once_as_alone(kind, never_alone, monkeypatch):
    stack = Stack(models(kind))
    ours = [rows(stack, usual(kind), places) for places in (None, [3, 1])]
    monkeypatch.undo()
    theirs = one_by_one(stack, usual(kind))
    agree(ours[0], theirs, 1e-9)
    agree(ours[1], [theirs[3], theirs[1]], 1e-9)
    assert theirs[0]["direction_low"] < theirs[0]["direction"] < theirs[0]["direction_high"]
    assert len({row["direction"] for row in theirs}) == 4


@pytest.mark.parametrize("kind", ["encoder", "classifier"])
def test_in_float32_within_rounding(kind, never_alone, monkeypatch):
    stack = Stack(models(kind, dtype=torch.float32))
    what = {name: each for name, each in usual(kind, torch.float32).items() if name not in ("right", "prediction")}
    ours = rows(stack, what)
    monkeypatch.undo()
    agree(ours, one_by_one(stack, what), 1e-4)


@pytest.mark.parametrize("pairs", [1, 3, 12, 50])
def test_whatever_the_room(pairs, never_alone, monkeypatch):
    """A pair at a time, part of a batch, one batch of some copies, several models: the same."""
    stack = Stack(models("encoder"))
    what = {name: usual("encoder")[name] for name in ("fit", "direction", "blowup")}
    whole = rows(stack, what)
    monkeypatch.setattr(Stacked, "pairs", lambda self, inputs, plain=False: pairs)
    agree(rows(stack, what), whole, 1e-12)


def test_few_copies_at_a_time(monkeypatch):
    stack = Stack(models("classifier"))
    whole = rows(stack, usual("classifier"))
    monkeypatch.setattr(stacked, "TOGETHER", 3 * 150)
    agree(rows(stack, usual("classifier")), whole, 1e-12)


def test_what_is_held_at_once_is_bounded():
    """Of forty of H's encoders with ten copies each, at most so many numbers as fit."""
    shape = Encoder(length=30, dim=128)
    one = {name: part.detach().unsqueeze(0) for name, part in shape.named_parameters()}
    stack = Stacked(shape, one, fast=True)
    inputs = 1 - 2 * torch.randint(0, 2, (1000, 30)).float()
    seen = []

    def watched(weights, bits):
        numbers = sum(part.numel() for part in weights.values())
        seen.append((numbers, len(next(iter(weights.values()))) * len(bits)))
        return torch.zeros(len(next(iter(weights.values()))), len(bits))

    many = {name: part.expand(40, *part.shape[1:]) for name, part in one.items()}
    for pairs in (stack.pairs(inputs), 20_000):
        seen.clear()
        stacked.stacked_sharpness(watched, many, inputs, batch=1024, pairs=pairs)
        assert sum(count for _, count in seen) == 40 * 11 * 1000
        assert max(count for _, count in seen) <= pairs
        assert max(numbers for numbers, _ in seen) <= 20 * sum(part.numel() for part in one.values())
    assert len(seen) == 2 + 20  # clean answers and copies, none of them in smaller parts than there is room for


def test_room_goes_by_what_an_input_takes():
    wide, narrow = (nn.Sequential(nn.Linear(3, width), nn.Linear(width, 1)) for width in (1024, 256))
    x = torch.ones(1, 3)
    assert pairs_at_once(wide, x) == 512 == pairs_at_once(narrow, x) // 4
    assert pairs_at_once(wide.double(), x.double()) == 256
    assert pairs_at_once(lambda x: None, x) > 1e5
    long = Stack([Encoder(length=200, dim=4, layers=1)])  # of which the fast program never makes 200 x 200 scores
    bits = torch.ones(1, 200)
    assert long.pairs(bits, plain=True) == (1 << 24) // (8 * 4 * 2 * 200 * 200) < long.pairs(bits) / 50


def test_modes_gradients_and_randomness_are_left_alone():
    stack = Stack(models("classifier"))
    stack.shape.norm.eval()
    modes = [part.training for part in stack.shape.modules()]
    before, flat = torch.get_rng_state(), stack.flat.clone()
    first, again = rows(stack, usual("classifier")), rows(stack, usual("classifier"))
    assert first == again  # without dropout
    assert [part.training for part in stack.shape.modules()] == modes
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(stack.flat, flat)
    assert not any(len(part._forward_pre_hooks) for part in stack.shape.modules())
    assert all(part.grad is None for part in stack.trained.values())


def test_what_cannot_be_batched_is_measured_one_by_one():
    stack = Stack(models("alternating"))
    with pytest.warns(RuntimeWarning, match="is measured one model after the other: vmap"):
        found = rows(stack, usual("alternating"))
    agree(found, one_by_one(stack, usual("alternating")), 1e-12)


def test_own_measures_shared_measures_and_plain_functions():
    """Of each model what was asked, in the order in which it was asked; whatever is one object is told once."""
    told = []

    class Sum:
        def __call__(self, model):
            return float(sum(part.sum() for part in model.parameters()))

        def of_stack(self, stack):
            told.append(len(stack))
            return [{"all": each} for each in sum(part.flatten(1).sum(1) for part in stack.weights.values()).tolist()]

    shared, own, plain = Sum(), Sum(), lambda model: Estimate(1.0, 0.5, 1.5, 3)
    stack = Stack(models("encoder"))
    asked = [{"a": shared, "b": plain}, {"b": plain, "a": shared}, {"a": own}, {}]
    found = measured_stack(stack, range(4), asked, CPU, lambda: None)
    assert told == [2, 1]
    assert [list(row) for row in found] == [
        ["a_all", "b", "b_low", "b_high"],
        ["b", "b_low", "b_high", "a_all"],
        ["a_all"],
        [],
    ]
    alone = one_by_one(stack, {"a": Sum()})
    assert [row["a_all"] for row in found[:3]] == pytest.approx([row["a"] for row in alone[:3]], rel=1e-12)


def test_an_answer_for_each_model():
    class First:
        def __call__(self, model):
            pytest.fail("told of one model")

        def of_stack(self, stack):
            return [1.0]

    with pytest.raises(InputError, match="'it' was told of 4 models and gave 1 answers"):
        rows(Stack(models("encoder")), {"it": First()})


def test_what_is_wrong_is_said_as_of_one_model():
    stack = Stack(models("encoder"))
    x = X.double()
    for measure, message in [
        (measures.loss((x + 1) / 2, x[:, 0]), "bits are \\+1 and -1"),
        (measures.loss(cube.points(6).double(), torch.ones(64)), "has 5 positions"),
        (measures.loss(x, torch.ones(3)), "one shape"),
        (measures.sharpness(x, "loss"), "the kind is"),
        (measures.sharpness(x[:1]), "at least two inputs"),
        (measures.blowup(x, positions="first"), "positions are"),
        (measures.accuracy(x[:1], x[:1, 0]), "at least two inputs"),
    ]:
        with pytest.raises(InputError, match=message):
            rows(stack, {"it": measure})
    networks = [nn.Sequential(nn.Linear(5, 1), nn.Flatten(0)) for _ in range(2)]
    with pytest.raises(InputError, match="no LayerNorm"):
        rows(Stack(networks), {"it": measures.blowup(x.float())})
    networks[1][0].weight.data.fill_(math.inf)
    found = rows(Stack(networks), {"norm": measures.parameter_norm(), "it": measures.sharpness(x.float())})
    assert found[0] is not None and found[0]["it"] > 0
    assert found[1] is None
    seconds = [nn.Sequential(nn.Linear(5, 4), nn.Unflatten(1, (2, 2))) for _ in range(2)]
    with pytest.raises(InputError, match="returns \\(30,\\) or \\(30, classes\\) numbers"):
        rows(Stack(seconds), {"it": measures.sharpness(x.float())})
    with pytest.raises(InputError, match="two measures give the column a_low"):
        rows(stack, {"a": measures.accuracy(x, x[:, 0]), "a_low": measures.parameter_norm()})
    with pytest.raises(InputError, match="no parameter is left"):
        rows(stack, {"it": measures.sharpness(x, skip=("",))})
    endless = [nn.Sequential(nn.LayerNorm(5, eps=0.0)) for _ in range(2)]
    assert rows(Stack(endless), {"it": measures.blowup(torch.ones(3, 5))}) == [{"it": math.inf}] * 2


def test_an_interrupt_between_measures_leaves_no_half_row(tmp_path):
    """Whoever answers an interrupt with what it has by then is not believed."""

    class Interrupted:
        asked = 0

        def __call__(self, model):
            pytest.fail("told of one model")

        def of_stack(self, stack):
            self.asked += 1
            if self.asked == 2:
                try:
                    signal.raise_signal(signal.SIGINT)
                except KeyboardInterrupt:
                    return [-1.0] * len(stack)
            return [float(part) for part in stack.weights["head.weight"].sum((1, 2))]

    def run(folder=None):
        stream, recipe = bit_streams(cube.first, 5, 16, range(4)), Recipe(20, 16)
        made = Interrupted()
        made.asked = 0 if folder == "first" else 5
        what = {"a": made, "sharp": measures.sharpness(X.float())}
        where = None if folder is None else tmp_path
        return train_stack(
            models("encoder", dtype=torch.float32), stream, recipe, every=10, measures=what, folder=where
        )

    half = run("first")
    assert {each.stopped for each in half} == {"interrupted"}
    assert [[row["step"] for row in each.rows] for each in half] == [[0]] * 4
    for one, other in zip(run("again"), run(), strict=True):
        assert one.rows == other.rows
        assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))


def test_rows_of_a_stack_that_loses_models(tmp_path):
    """One diverges, two end early, it is killed and goes on: rows are those of models measured alone, and resume as
    they were."""
    stream = bit_streams(cube.majority, 5, 16, range(4), dtype=torch.float64)
    recipes = [Recipe(40, 16, "sgd", rate=rate) for rate in (1e9, 1e-3, 2e-3, 3e-3)]

    def run(asked, folder=None, end=None):
        def halting(step):
            if step == end:
                raise RuntimeError("killed")
            return stream(step)

        until = lambda row: row["step"] == 20 and row["rate"] < 2.5e-3  # noqa: E731
        how = dict(every=10, measures=asked, until=until, folder=folder, keep=7)
        return train_stack(models("encoder"), halting, recipes, **how)

    what = {name: usual("encoder")[name] for name in ("right", "direction", "blowup", "norm")}
    whole, theirs = run(what), run({name: lambda model, own=own: own(model) for name, own in what.items()})
    assert [each.stopped for each in whole] == ["diverged", "until", "until", "done"]
    for one, other in zip(whole, theirs, strict=True):
        assert (one.stopped, one.steps) == (other.stopped, other.steps)
        agree([row | {"loss": 0} for row in one.rows], [row | {"loss": 0} for row in other.rows], 1e-9)
    for one, other in zip(whole[1:], theirs[1:], strict=True):  # measures do not touch the training
        assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))
    for end in (9, 15, 24, 38):
        with pytest.raises(RuntimeError, match="killed"):
            run(what, tmp_path / str(end), end)
        for one, other in zip(whole, run(what, tmp_path / str(end)), strict=True):
            assert one.rows == other.rows
