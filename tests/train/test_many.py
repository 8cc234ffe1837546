"""Jobs of several shapes: each as if alone, in the order they were given."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from teeter import cube
from teeter.errors import InputError, TooLarge
from teeter.models import MODELS, Encoder
from teeter.train import BitStream, Job, Recipe, train, train_many
from teeter.train.many import divided, fitting, groups
from teeter.train.stack_step import StackStep


def jobs():
    torch.manual_seed(0)
    norm = {"norm": lambda model: sum(float(part.square().sum()) for part in model.parameters())}
    recipe = Recipe(steps=30, batch=8, rate=1e-2)

    def encoder(n, seed, **more):
        model = Encoder(length=n, dim=8).double()
        return Job(model, BitStream(cube.parity, n, 8, seed, dtype=torch.float64), replace(recipe, **more))

    averaged = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1), nn.Flatten(0)).double()
    return [
        encoder(4, 0),
        encoder(5, 1),
        encoder(4, 2, rate=1e-3, schedule="cosine"),
        encoder(4, 3, steps=20),
        Job(averaged, BitStream(cube.first, 4, 8, 5, dtype=torch.float64), recipe, norm),
        encoder(5, 4, weight_decay=0.5),
    ]


@pytest.mark.parametrize("most", [None, 1])
def test_each_as_if_alone(most, tmp_path):
    told = []
    made = train_many(jobs(), every=10, most=most, folder=tmp_path, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (6, 6)
    for job, one in zip(jobs(), made, strict=True):
        alone = train(job.model, job.stream, job.recipe, measures=job.measures, every=10)
        assert [row.keys() for row in one.rows] == [row.keys() for row in alone.rows]
        for own, part in zip(alone.model.parameters(), one.model.parameters(), strict=True):
            assert torch.allclose(own, part, rtol=1e-9, atol=1e-9)
    again = train_many(jobs(), every=10, most=most, folder=tmp_path)  # all of it is there
    assert [one.rows for one in again] == [one.rows for one in made]


def test_groups():
    assert groups(jobs()) == [[0, 2], [1, 5], [3], [4]]
    assert divided(jobs()) == ([[0, 2], [1, 5], [3]], [4])
    assert fitting(jobs()[:1]) == 1
    assert fitting([jobs()[0]] * 1000) == 256


def test_what_cannot_be_stacked_is_trained_alone():
    """Recurrent networks have no rule to be batched by, mappings no row for each model."""
    torch.manual_seed(0)

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, inputs):
            return self.layer(inputs["x"]).squeeze(-1)

    recipe = Recipe(steps=5, batch=8)
    named = lambda step: ({"x": torch.ones(8, 4)}, torch.ones(8))  # noqa: E731
    some = [
        Job(MODELS["lstm"](dim=4, layers=1), BitStream(cube.first, 4, 8, 0), recipe),
        Job(Named(), named, recipe),
        Job(nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), BitStream(cube.first, 4, 8, 0), recipe),
    ]
    assert divided(some) == ([[2]], [0, 1])
    assert [made.stopped for made in train_many(some)] == ["done"] * 3


def test_a_stack_goes_on_as_it_was_begun(tmp_path):
    """However much memory there is the second time."""
    made = train_many(jobs(), every=10, most=2, folder=tmp_path)
    again = train_many(jobs(), every=10, most=1, folder=tmp_path)
    assert [one.rows for one in again] == [one.rows for one in made]
    with pytest.raises(InputError, match="is of another run"):
        train_many(jobs()[1:], every=10, most=2, folder=tmp_path)


@pytest.mark.parametrize("stopped", [1, 4])
def test_interrupted(stopped, tmp_path):
    def run(stop=False):
        def measure(model):
            if stop:
                raise KeyboardInterrupt
            return 0.0

        some = jobs()
        some[stopped] = replace(some[stopped], measures={"there": measure})
        return train_many(some, every=10, folder=tmp_path)

    with pytest.raises(KeyboardInterrupt):
        run(stop=True)
    assert [made.stopped for made in run()] == ["done"] * 6


def test_one_that_diverges_leaves_the_others_alone():
    some = jobs()[3:5]
    some[1] = replace(some[1], recipe=replace(some[1].recipe, rate=1e30, optimizer="sgd"))
    assert [made.stopped for made in train_many(some, every=10)] == ["done", "diverged"]


def test_what_cannot_be():
    with pytest.raises(InputError, match="at least one model, got most = 0"):
        train_many(jobs(), most=0)
    with pytest.raises(InputError, match="is trained alone, to its end"):
        train_many(jobs(), until=lambda row: True)
    with pytest.raises(InputError, match="got one model twice"):
        train_many(jobs()[:1] * 2)


class Crowded(nn.Module):
    """A model that several of are too much for memory."""

    fits = 2

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x).squeeze(-1)


@pytest.fixture
def crowded(monkeypatch):
    sizes = []

    def step(self, inputs, targets, facts, once=StackStep.once):
        sizes.append(len(inputs))
        if len(inputs) > Crowded.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        once(self, inputs, targets, facts)

    monkeypatch.setattr(StackStep, "once", step)
    torch.manual_seed(0)
    recipe = Recipe(steps=4, batch=8)
    return sizes, [Job(Crowded(), BitStream(cube.first, 4, 8, seed), recipe) for seed in range(5)]


def test_a_stack_too_large_for_memory_is_halved(crowded, tmp_path):
    sizes, some = crowded
    alone = [train_many([copy.deepcopy(job)], every=2)[0] for job in some]
    sizes.clear()
    made = train_many(some, every=2, folder=tmp_path)
    assert list(dict.fromkeys(sizes)) == [5, 2, 1]
    assert sorted(place.name for place in tmp_path.iterdir()) == ["stack-0-of-2", "stack-2-of-2", "stack-4-of-1"]
    for one, other in zip(made, alone, strict=True):
        assert one.rows[-1]["loss"] == pytest.approx(other.rows[-1]["loss"], rel=1e-5)


def test_no_memory_for_even_one(crowded, monkeypatch, tmp_path):
    _, some = crowded
    monkeypatch.setattr(Crowded, "fits", 0)
    before = [part.clone() for part in some[0].model.parameters()]
    with pytest.raises(TooLarge, match="not enough memory to train 1 x Crowded"):
        train_many(some, folder=tmp_path)
    assert all(map(torch.equal, before, some[0].model.parameters()))


def test_what_was_begun_is_not_thrown_away_for_want_of_memory(crowded, monkeypatch, tmp_path):
    sizes, some = crowded
    fresh = copy.deepcopy(some[:2])
    whole = train_many(copy.deepcopy(some[:2]), every=1)

    def full(model):
        monkeypatch.setattr(Crowded, "fits", 0 if len(sizes) > 2 else 2)
        return 0.0

    def run(jobs):
        return train_many([replace(job, measures={"full": full}) for job in jobs], every=1, keep=1, folder=tmp_path)

    sizes.clear()
    with pytest.raises(TooLarge, match="not enough memory to train 2 x Crowded"):
        run(some[:2])
    assert (tmp_path / "stack-0-of-2").is_dir()
    monkeypatch.setattr(Crowded, "fits", 2)
    sizes.clear()
    for one, other in zip(run(fresh), whole, strict=True):
        assert [row["loss"] for row in one.rows] == [row["loss"] for row in other.rows]
    assert len(sizes) == 1  # the last step, which there had been no memory for
