"""Jobs of several shapes: each as if alone, in the order they were given."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from teeter import cube
from teeter.errors import InputError
from teeter.models import Encoder
from teeter.train import BitStream, Job, Recipe, train, train_many
from teeter.train.many import fitting, groups


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
    assert list(groups(jobs())) == [[0, 2], [1, 5], [3], [4]]
    assert fitting(jobs()[:1]) == 1
    assert fitting([jobs()[0]] * 1000) == 256


def test_interrupted(tmp_path):
    def stop(model):
        raise KeyboardInterrupt

    some = jobs()[:2]
    with pytest.raises(KeyboardInterrupt):
        train_many([some[0], Job(some[1].model, some[1].stream, some[1].recipe, {"stop": stop})], folder=tmp_path)


def test_what_cannot_be():
    with pytest.raises(InputError, match="at least one model, got most = 0"):
        train_many(jobs(), most=0)
    with pytest.raises(InputError, match="is trained alone, to its end"):
        train_many(jobs()[4:5], until=lambda row: True)
