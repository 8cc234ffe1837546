"""Ten scalars and the rate of every step."""

import dataclasses
import math

import pytest

from teeter.errors import InputError, UnknownName
from teeter.train import Recipe, rate_at


def test_defaults_are_table_1_of_h():
    recipe = Recipe()
    assert (recipe.optimizer, recipe.rate, recipe.weight_decay) == ("adamw", 3e-4, 0.1)
    assert (recipe.batch, recipe.steps, recipe.loss, recipe.schedule) == (1024, 10_000, "mse", "constant")
    assert len(dataclasses.fields(recipe)) <= 10
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.rate = 1.0


def test_schedules_at_known_points():
    def at(schedule, *steps):
        recipe = Recipe(steps=1020, rate=0.2, schedule=schedule, warmup=20)
        return pytest.approx([rate_at(recipe, step) for step in steps], rel=1e-15)

    for schedule in ("constant", "linear", "cosine", "step:100"):
        assert at(schedule, 0, 9, 19, 20) == [0.01, 0.1, 0.2, 0.2]
    assert at("constant", 500, 1019) == [0.2, 0.2]
    assert at("linear", 520, 770, 1019) == [0.1, 0.05, 0.2 * (1 - 999 / 1000)]
    assert at("cosine", 520, 270, 770) == [0.1, 0.1 * (1 + math.sqrt(0.5)), 0.1 * (1 - math.sqrt(0.5))]
    assert at("step:100", 119, 120, 219, 220, 320) == [0.2, 0.1, 0.1, 0.05, 0.025]


def test_without_warmup_the_first_step_has_the_whole_rate():
    for schedule in ("constant", "linear", "cosine", "step:7"):
        assert rate_at(Recipe(steps=50, rate=0.3, schedule=schedule), 0) == 0.3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(steps=0), "at least one step"),
        (dict(batch=0), "one input a batch"),
        (dict(rate=0.0), "rate is a positive number, got 0.0"),
        (dict(rate=math.nan), "rate is a positive number, got nan"),
        (dict(rate=math.inf), "rate is a positive number"),
        (dict(weight_decay=-0.1), "weight decay is 0 or more"),
        (dict(weight_decay=math.inf), "weight decay is 0 or more"),
        (dict(warmup=-1), "warmup ends before"),
        (dict(steps=10, warmup=10), "warmup ends before the 10 steps"),
        (dict(clip=0.0), "positive norm"),
        (dict(clip=math.nan), "positive norm"),
        (dict(arithmetic="int4"), "float32, tf32, bf16 or None, got 'int4'"),
    ],
)
def test_recipes_that_mean_nothing(given, message):
    with pytest.raises(InputError, match=message):
        Recipe(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(optimizer="adamv"), "no optimizer named 'adamv': did you mean 'adam'"),
        (dict(loss="cross_entropy"), "did you mean 'cross-entropy'"),
        (dict(schedule="cosin"), "did you mean 'cosine'"),
        (dict(schedule="step:0"), "no schedule named 'step:0'"),
        (dict(schedule="step:"), "no schedule named 'step:'"),
    ],
)
def test_names_that_nobody_has(given, message):
    with pytest.raises(UnknownName, match=message):
        Recipe(**given)
