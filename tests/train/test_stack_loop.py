"""Model k of a stack is what the loop makes of it alone, to the last digits of float64."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from teeter import cube, perturb
from teeter.errors import InputError
from teeter.models import Encoder
from teeter.train import BitStream, Diverged, Recipe, bit_streams, measures, together, train, train_stack

FUNCTIONS = [cube.parity, cube.majority, cube.first, cube.majority]
RATES, DECAYS = (1e-2, 3e-3, 1e-3, 5e-3), (0.0, 0.1, 0.5, 0.01)


def encoders(dtype=torch.float64):
    torch.manual_seed(0)
    return [Encoder(length=5, dim=8).to(dtype) for _ in range(4)]


def networks(dtype=torch.float64):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1), nn.Flatten(0)).to(dtype) for _ in range(4)]


def recipes(**more):
    each = Recipe(steps=200, batch=16, **more)
    return [replace(each, rate=rate, weight_decay=decay) for rate, decay in zip(RATES, DECAYS, strict=True)]


def streams(dtype=torch.float64):
    return [BitStream(f, 5, 16, seed=k, dtype=dtype) for k, f in enumerate(FUNCTIONS)]


CASES = [
    (encoders, dict(optimizer="adamw")),
    (encoders, dict(optimizer="adamw", clip=0.5, schedule="cosine", warmup=20)),
    (networks, dict(optimizer="adam", schedule="step:50")),
    (networks, dict(optimizer="sgd", clip=0.3)),
    (networks, dict(optimizer="adamw", schedule="linear")),
]


@pytest.mark.parametrize(("make", "more"), CASES, ids=lambda case: getattr(case, "__name__", None) or str(case))
def test_each_model_is_trained_as_if_alone(make, more):
    norm = {"norm": lambda model: sum(float(part.square().sum()) for part in model.parameters())}
    stacked = train_stack(
        make(), bit_streams(FUNCTIONS, 5, 16, range(4), dtype=torch.float64), recipes(**more), every=80, measures=norm
    )
    for made, model, stream, recipe in zip(stacked, make(), streams(), recipes(**more), strict=True):
        alone = train(model, stream, recipe, every=80, measures=norm)
        for own, part in zip(alone.model.parameters(), made.model.parameters(), strict=True):
            assert torch.allclose(own, part, rtol=1e-9, atol=1e-9)
        assert [row["step"] for row in made.rows] == [0, 80, 160, 200]
        for mine, theirs in zip(made.rows, alone.rows, strict=True):
            assert mine.keys() == theirs.keys()
            assert (mine["loss"] is None) == (theirs["loss"] is None) == (mine["step"] == 0)
            first = {"loss": 0.0} if mine["step"] == 0 else {}
            assert mine | first == pytest.approx(theirs | first, rel=1e-9)
        assert made.stopped == alone.stopped == "done"


def test_streams_drawn_at_once_are_those_drawn_one_by_one():
    seeds = (3, 1, 4, 1)
    for n in (5, 64, 70):
        each = [BitStream(f, n, 7, seed=seed) for f, seed in zip(FUNCTIONS, seeds, strict=True)]
        for at_once in (
            bit_streams(FUNCTIONS, n, 7, seeds),
            together(each),
            together([lambda step, e=e: e(step) for e in each]),
        ):
            for step in (0, 9):
                x, y = at_once(step)
                for k, alone in enumerate(each):
                    assert torch.equal(x[k], alone(step)[0])
                    assert torch.equal(y[k], alone(step)[1])
                    assert (x.dtype, y.dtype) == (alone(step)[0].dtype, alone(step)[1].dtype)
    same = [Power(2), Power(3), Power(2)]  # equal, and not the same object
    x, y = bit_streams(same, 5, 7, seeds=range(3))(0)
    assert torch.equal(y, torch.stack([f(rows) for f, rows in zip(same, x, strict=True)]))
    with pytest.raises(InputError, match="2 seeds have one function or as many"):
        bit_streams(FUNCTIONS, 5, 7, seeds=(0, 1))
    with pytest.raises(InputError, match="got none"):
        together([])
    with pytest.raises(InputError, match="a stack reads tensors"):
        together([lambda step: ({"a": torch.ones(1)}, torch.ones(1))])(0)


@dataclass(frozen=True)
class Power:
    of: int

    def __call__(self, x):
        return x[:, : self.of].prod(-1)


def test_killed_and_resumed(tmp_path):
    """Interrupted wherever it may be, the same command goes on to the same rows and weights, bit for bit."""
    stream = bit_streams(FUNCTIONS, 5, 16, range(4))

    def run(folder=None, end=None):
        def halting(step):
            if step == end:
                raise RuntimeError("killed")
            return stream(step)

        recipe = [replace(each, steps=60) for each in recipes()]
        return train_stack(encoders(torch.float32), halting, recipe, every=20, folder=folder, keep=7)

    whole = run()
    for end in (1, 7, 8, 20, 21, 33, 40, 55, 59):
        folder = tmp_path / str(end)
        with pytest.raises(RuntimeError, match="killed"):
            run(folder, end)
        for made, again in zip(whole, run(folder), strict=True):
            assert again.rows == made.rows
            assert all(map(torch.equal, made.model.parameters(), again.model.parameters()))
    with pytest.raises(InputError, match="is of another run"):
        train_stack(encoders(torch.float32), stream, [replace(each, steps=61) for each in recipes()], folder=folder)


def test_one_that_diverges_leaves_the_others_alone():
    def run(first):
        each = [replace(recipe, steps=40, optimizer="sgd") for recipe in recipes()]
        each[0] = replace(each[0], rate=first)
        return train_stack(networks(), bit_streams(FUNCTIONS, 5, 16, range(4), dtype=torch.float64), each, every=10)

    wild, tame = run(1e9), run(1e-3)
    assert [made.stopped for made in wild] == ["diverged", "done", "done", "done"]
    assert len(wild[0].rows) < 5
    for one, other in zip(wild[1:], tame[1:], strict=True):
        assert one.rows == other.rows


@pytest.mark.parametrize("kind", ["sharpness", "sensitivity"])
def test_one_whose_answers_are_no_numbers_leaves_the_others_alone(kind):
    """Its weights are finite, and there is no loss yet: a measure is the first to see it."""
    wild = networks()
    for part in wild[1].parameters():
        part.data.fill_(1.7e308)
    stream, x = bit_streams(FUNCTIONS, 5, 16, range(4), dtype=torch.float64), cube.points(5).double()
    what = {"sharpness": measures.sharpness(x), "sensitivity": measures.sensitivity(x, perturb.BitFlip(), budget=50)}
    each = [replace(recipe, steps=20) for recipe in recipes()]
    made = train_stack(wild, stream, each, every=10, measures={kind: what[kind]})
    assert [one.stopped for one in made] == ["done", "diverged", "done", "done"]
    assert [len(one.rows) for one in made] == [3, 0, 3, 3]
    with pytest.raises(Diverged, match="the model returned NaN or infinity: try a smaller rate"):
        alone = BitStream(cube.first, 5, 16, 0, dtype=torch.float64)
        train(wild[1], alone, each[1], measures={kind: what[kind]})


def test_models_that_are_done_are_dropped(tmp_path):
    """Three of four end early; what is left is a smaller stack, and the last one is as if it had been alone."""

    def run(folder=None, end=None):
        stream = bit_streams(FUNCTIONS, 5, 16, range(4), dtype=torch.float64)

        def watched(step):
            if step == end:
                raise RuntimeError("killed")
            return stream(step)

        early = lambda row: row["step"] >= {1e-2: 20, 3e-3: 20, 1e-3: 60, 5e-3: 1000}[row["rate"]]  # noqa: E731
        each = [replace(recipe, steps=80) for recipe in recipes()]
        return train_stack(encoders(), watched, each, every=20, until=early, folder=folder, keep=5)

    made = run()
    assert [(each.stopped, each.steps) for each in made] == [("until", 20), ("until", 20), ("until", 60), ("done", 80)]
    for k, each in enumerate(made):
        recipe = replace(recipes()[k], steps=each.steps)
        alone = train(encoders()[k], streams()[k], recipe, every=20)
        assert [row["step"] for row in each.rows] == [row["step"] for row in alone.rows]
        for own, part in zip(alone.model.parameters(), each.model.parameters(), strict=True):
            assert torch.allclose(own, part, rtol=1e-9, atol=1e-9)
    for end in (19, 22, 41, 66):
        with pytest.raises(RuntimeError, match="killed"):
            run(tmp_path / str(end), end)
        again = run(tmp_path / str(end))
        for one, other in zip(made, again, strict=True):
            assert (one.rows, one.stopped, one.steps) == (other.rows, other.stopped, other.steps)
            assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))


def test_all_of_them_may_end_early():
    stream = bit_streams(cube.first, 5, 16, range(4))
    made = train_stack(
        networks(torch.float32), stream, Recipe(steps=90, batch=16), every=30, until=lambda row: row["step"]
    )
    assert [(each.stopped, each.steps) for each in made] == [("until", 30)] * 4


def test_interrupted(tmp_path):
    stream, recipe = bit_streams(cube.first, 5, 16, range(4)), Recipe(steps=30, batch=16)

    def stop(step, steps, row):
        if step == 13:
            raise KeyboardInterrupt

    made = train_stack(networks(torch.float32), stream, recipe, every=10, folder=tmp_path, progress=stop)
    assert {each.stopped for each in made} == {"interrupted"}
    assert made[0].steps == 13
    again = train_stack(networks(torch.float32), stream, recipe, every=10, folder=tmp_path)
    assert [row["step"] for row in again[3].rows] == [0, 10, 20, 30]


def test_the_same_models_go_on_after_an_interrupt(tmp_path):
    stream, recipe = bit_streams(FUNCTIONS, 5, 16, range(4)), Recipe(steps=30, batch=16)

    def stop(step, steps, row):
        if step == 13:
            raise KeyboardInterrupt

    models = encoders(torch.float32)
    train_stack(models, stream, recipe, every=10, folder=tmp_path, progress=stop)
    again = train_stack(models, stream, recipe, every=10, folder=tmp_path)
    whole = train_stack(encoders(torch.float32), stream, recipe, every=10)
    for one, other in zip(again, whole, strict=True):
        assert one.rows == other.rows
        assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))


def test_dropout_goes_on_where_it_was(tmp_path):
    def run(folder=None, end=None, seed=0):
        torch.manual_seed(0)
        layers = lambda: (nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 1), nn.Flatten(0))  # noqa: E731
        models = [nn.Sequential(*layers()).eval() for _ in range(3)]
        stream = bit_streams(cube.first, 5, 16, range(3))

        def halting(step):
            if step == end:
                raise RuntimeError("killed")
            return stream(step)

        torch.manual_seed(end or 99)  # the caller's own random numbers are of no account
        return train_stack(models, halting, Recipe(steps=30, batch=16), every=10, folder=folder, keep=4, seed=seed)

    whole = run()
    other = run(seed=1)[0].model
    assert not all(map(torch.equal, whole[0].model.parameters(), other.parameters()))
    for end in (9, 17):
        with pytest.raises(RuntimeError, match="killed"):
            run(tmp_path / str(end), end)
        for one, other in zip(whole, run(tmp_path / str(end)), strict=True):
            assert one.rows == other.rows
            assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))


def test_weights_that_are_not_trained_stay(tmp_path):
    """Frozen ones, and ones that the answer does not depend on, which torch's optimizers leave alone."""

    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen, self.top, self.idle = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(2, 2)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.top(self.frozen(x).tanh()).squeeze(-1)

    def models():
        torch.manual_seed(0)
        return [Partly().double() for _ in range(4)]

    early = lambda row: row["step"] == 100 and row["rate"] != RATES[1]  # noqa: E731
    made = train_stack(models(), together(streams()), recipes(), every=100, until=early)
    assert [each.steps for each in made] == [100, 200, 100, 100]  # the second goes on in a smaller stack
    for one, model, stream, recipe in zip(made, models(), streams(), recipes(), strict=True):
        alone = train(model, stream, replace(recipe, steps=one.steps), every=100)
        for own, part in zip(alone.model.parameters(), one.model.parameters(), strict=True):
            assert torch.allclose(own, part, rtol=1e-9, atol=1e-9)
    assert torch.equal(made[1].model.frozen.weight, models()[1].frozen.weight)
    assert torch.equal(made[1].model.idle.weight, models()[1].idle.weight)


@pytest.mark.parametrize(
    ("models", "recipe", "message"),
    [
        ([], [], "0 models have one recipe or as many"),
        (networks()[:2], [Recipe()] * 3, "2 models have one recipe or as many, got 3"),
        (networks()[:2], [Recipe(), Recipe(steps=7)], "differ in rate, schedule, warmup and weight decay"),
        ([nn.Linear(2, 1), nn.Linear(3, 1)], Recipe(), "models of one shape"),
        ([Encoder(length=4, dim=8, heads=heads) for heads in (1, 2)], Recipe(), "models of one shape"),
        ([Encoder(length=4, dim=8, norm=norm) for norm in ("post", "pre")], Recipe(), "models of one shape"),
        ([nn.BatchNorm1d(3), nn.BatchNorm1d(3)], Recipe(), "has buffers"),
        ([networks()[0]] * 2, Recipe(), "each of them once, got 2"),
        ([nn.Flatten(), nn.Flatten()], Recipe(), "a stack has weights to train, of one type"),
        (networks(torch.float32)[:3], Recipe(batch=16), "a stack of 3 reads one tensor with a batch for each"),
        (networks(torch.float32)[:2], Recipe(batch=17), "batches of 17 and the stream gives 16"),
    ],
)
def test_what_cannot_be_stacked(models, recipe, message):
    with pytest.raises(InputError, match=message):
        train_stack(models, bit_streams(cube.first, 5, 16, range(2)), recipe)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (dict(keep=0), "a checkpoint is kept every so many steps, at least 1, got 0"),
        (dict(measures={"loss": lambda model: -7.0}), "every row has a column loss already"),
        (dict(measures=[{}] * 3), "2 models have the same measures or as many, got 3"),
    ],
)
def test_how_not_to_train(how, message):
    with pytest.raises(InputError, match=message):
        train_stack(networks(torch.float32)[:2], bit_streams(cube.first, 5, 16, range(2)), Recipe(5, 16), **how)


def test_bits_are_looked_at_as_in_the_loop():
    zeros_and_ones = lambda step: (torch.randint(0, 2, (4, 16, 5)).float(), torch.ones(4, 16))  # noqa: E731
    with pytest.raises(InputError, match="bits are"):
        train_stack(encoders(torch.float32), zeros_and_ones, Recipe(5, 16))


def test_a_model_that_answers_otherwise_in_a_stack():
    calls = []

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 1)

        def forward(self, x):
            calls.append(1)
            return self.layer(x).squeeze(-1) + 10 * len(calls)

    with pytest.raises(InputError, match="answers otherwise in a stack than alone"):
        train_stack([Counting(), Counting()], bit_streams(cube.first, 5, 16, range(2)), Recipe(5, 16))


def test_all_of_them_lost_at_once():
    models = networks(torch.float32)
    for model in models:
        model[0].weight.data.fill_(torch.inf)
    told = []
    stream = lambda step: (torch.ones(4, 16, 5), torch.ones(4, 16))  # noqa: E731
    made = train_stack(models, stream, Recipe(5, 16), progress=lambda step, steps, row: told.append((step, row)))
    assert {each.stopped for each in made} == {"diverged"}
    assert told == [(0, {"step": 0})]
