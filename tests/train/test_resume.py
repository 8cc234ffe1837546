"""Killed at any step and started again, a run gives the rows and weights of one that was not, bit for bit."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from teeter.errors import InputError
from teeter.train import Diverged, Recipe, read_checkpoint, train, whole
from teeter.train.state import weights_of

from .killed import KINDS, STEPS, Counting, batch_norm, run


class Killed(Exception):
    """Stands for a kill: nothing in the loop catches it."""


def at(*steps):
    """A progress that fails at each of these steps once."""
    left = set(steps)

    def progress(step, steps, row):
        if step in left:
            left.remove(step)
            raise Killed

    return progress


def same(one, other):
    assert one.rows == other.rows
    assert (one.steps, one.stopped) == (other.steps, other.stopped)
    ours, theirs = weights_of(one.model), weights_of(other.model)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.fixture(scope="module")
def undisturbed():
    return {kind: run(kind) for kind in KINDS}


def test_what_is_compared_is_worth_comparing(undisturbed):
    """Rows differ from each other, dropout draws, averages move."""
    for made in undisturbed.values():
        assert [row["step"] for row in made.rows] == [0, 10, 20, 30, 40, 48]
        assert len({row["test_loss"] for row in made.rows}) == 6
        assert made.rows[0]["loss"] is None
    assert len({row["noise"] for row in undisturbed["dropout"].rows}) > 1
    other = run("dropout", seed=3)
    assert other.rows[1]["loss"] != undisturbed["dropout"].rows[1]["loss"]
    assert int(undisturbed["batch-norm"].model[1].num_batches_tracked) == STEPS
    assert undisturbed["encoder"].rows[-1]["penalty"] > undisturbed["encoder"].rows[1]["penalty"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_ten_random_steps(kind, undisturbed, tmp_path):
    steps = random.Random(kind).sample(range(STEPS + 1), 10)
    for step in steps[:5]:  # each in a run of its own
        with pytest.raises(Killed):
            run(kind, tmp_path / str(step), at(step))
        assert read_checkpoint(tmp_path / str(step)).facts["step"] <= step
        same(run(kind, tmp_path / str(step)), undisturbed[kind])
    progress, kills = at(*steps), 0  # all of them in one
    while True:
        try:
            made = run(kind, tmp_path / "one", progress)
            break
        except Killed:
            kills += 1
    assert kills == 10
    same(made, undisturbed[kind])


@pytest.mark.parametrize(("kind", "when"), [("dropout", "29"), ("encoder", "flushing"), ("batch-norm", "renaming")])
def test_a_real_kill(kind, when, undisturbed, tmp_path):
    program = [sys.executable, "-m", "tests.train.killed", kind, str(tmp_path), when]
    root = Path(__file__).parents[2]
    ended = subprocess.run(program, cwd=root, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert 0 < read_checkpoint(tmp_path).facts["step"] < STEPS or when != "29"
    assert len(list(tmp_path.glob(".*.part"))) == (when != "29")
    same(run(kind, tmp_path), undisturbed[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_killed_in_the_middle_of_a_step(kind, undisturbed, tmp_path, monkeypatch):
    """After the gradients and before the weights have moved."""
    backward, calls = torch.Tensor.backward, []

    def fails(self):
        calls.append(backward(self))
        if len(calls) == 18:
            raise Killed

    monkeypatch.setattr(torch.Tensor, "backward", fails)
    with pytest.raises(Killed):
        run(kind, tmp_path)
    same(run(kind, tmp_path), undisturbed[kind])


def written(place):
    """Which file it is and when it was written; reading may move the time of the last access."""
    return place.stat().st_ino, place.stat().st_mtime_ns


def test_a_finished_run_is_only_read(undisturbed, tmp_path):
    made = run("dropout", tmp_path)
    before = written(tmp_path / "checkpoint.safetensors")
    told = []
    again = run("dropout", tmp_path, lambda step, steps, row: told.append(step))
    same(again, undisturbed["dropout"])
    assert told == [STEPS]
    assert written(tmp_path / "checkpoint.safetensors") == before
    assert (again.seconds, again.measuring) == (made.seconds, made.measuring)


def test_checkpoints_change_nothing(undisturbed, tmp_path):
    for kind in KINDS:
        same(run(kind, tmp_path / kind, keep=1), undisturbed[kind])


def test_the_model_that_was_stopped_may_go_on(tmp_path):
    torch.manual_seed(0)
    x, model = torch.randn(20, 5), batch_norm()
    recipe = Recipe(steps=20, batch=None, rate=0.01)
    stream = whole(x, x.sum(-1))

    def stop(step, steps, row):
        if step == 11:
            raise KeyboardInterrupt

    first = train(model, stream, recipe, folder=tmp_path, progress=stop)
    assert (first.stopped, first.steps) == ("interrupted", 11)
    done = train(model, stream, recipe, folder=tmp_path)
    assert (done.stopped, done.steps) == ("done", 20)
    torch.manual_seed(0)
    same(done, train((torch.randn(20, 5), batch_norm())[1], stream, recipe))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (dict(seed=5), "seed is 2 there and 5 here"),
        (dict(measures={}), "measures is"),
        (dict(every=11), "rows is"),
        (dict(penalty=Counting()), "penalty is None there and Counting here"),
        (dict(penalty=lambda model, inputs, outputs: outputs.mean()), "penalty is None there and .*lambda"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(more, what, tmp_path):
    with pytest.raises(Killed):
        run("dropout", tmp_path, at(20))
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(InputError, match=f"is of another run: {what}"):
        run("dropout", tmp_path, **more)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


def test_other_recipes_models_and_data_are_refused(tmp_path):
    def go(rate=0.1, weight=0.0, kind=nn.Linear, target=0.0):
        model = kind(2, 1)
        with torch.no_grad():
            model.weight.fill_(weight)
            model.bias.zero_()
        x, y = torch.ones(4, 2), torch.full((4,), target)
        return train(model, whole(x, y), Recipe(steps=2, batch=None, rate=rate), folder=tmp_path)

    class Other(nn.Linear):
        pass

    go()
    for given, what in [
        (dict(rate=0.2), "recipe.rate is 0.1 there and 0.2 here"),
        (dict(weight=1.0), "initial weights is"),
        (dict(kind=Other), "model is Linear there and Other here"),
        (dict(target=1.0), "first batch is"),
    ]:
        with pytest.raises(InputError, match=what):
            go(**given)


def test_what_is_not_a_number_is_not_kept(tmp_path):
    x, y = torch.ones(4, 2), torch.ones(4)
    stream = lambda step: (x, y * (float("nan") if step == 13 else 1.0))  # noqa: E731
    with pytest.raises(Diverged, match="loss of step 13 is nan") as found:
        train(nn.Linear(2, 1), stream, Recipe(steps=30, batch=4), every=10, keep=6, folder=tmp_path)
    assert [row["step"] for row in found.value.rows] == [0, 10]
    assert read_checkpoint(tmp_path).facts["step"] == 12
