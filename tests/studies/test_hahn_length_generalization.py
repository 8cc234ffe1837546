"""Other lengths: the measure on functions that are right, wrong or off, and the claims on hand-made tables."""

import pandas as pd
import pytest
import torch

from teeter.studies.hahn2024 import length_generalization as study
from teeter.studies.hahn2024.learning import FUNCTIONS, Learner, learn, zero_one
from teeter.train import Stack

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_function_itself_is_right_everywhere(name):
    found = study.AtLengths(name, (3, 8), CPU)(zero_one(name))
    assert found == {"3": 1.0, "8": 1.0}
    off = study.AtLengths(name, (4,), CPU)(lambda x: zero_one(name)(x) + (0.13 if name == "mean" else 0.51))
    assert off == {"4": 0.0}


def test_a_constant_is_right_by_chance():
    found = study.AtLengths("parity", (9,), CPU)(lambda x: torch.ones(len(x)))
    assert found["9"] == pytest.approx(0.5, abs=0.04)


def test_a_stack_says_what_each_model_says():
    models = [study.model_of(Learner("parity", 4, seed, dim=8)).double() for seed in (0, 1)]
    measure = study.AtLengths("majority", (3, 8), CPU, strings=64)
    with torch.no_grad():
        assert measure.of_stack(Stack(models)) == [measure(model) for model in models]


def test_without_positions_there_are_none_and_stay_none():
    spec = Learner("majority", 4, 0, study.NONE, dim=8, batch=32, steps=20, rate=1e-2)
    (made,) = learn([spec], None, model=study.model_of)
    assert not made.model.embedding.position.weight.any()
    x = torch.tensor([[1.0, 1, -1, 1], [-1.0, 1, 1, 1]])  # before the last, the order does not matter
    with torch.no_grad():
        first, second = made.model(x)
    assert float(first) == pytest.approx(float(second), abs=1e-5)
    assert study.model_of(Learner("majority", 4, 0, dim=8)).embedding.position.weight.requires_grad


def table(right, converged=True):
    rows = [
        {
            "function": name,
            "variant": variant,
            "n": 4,
            "seed": seed,
            "length": length,
            "sharpness": 1.0 - value + seed / 99,
        }
        | {"right": 1.0 if length == 4 else value}
        for variant, names in study.VARIANTS.items()
        for name in names
        for seed in range(4)
        for length in (4, 6, 8)
        for value in [right[name]]
    ]
    return pd.DataFrame(rows).assign(converged=converged)


AS_PREDICTED = {"parity": 0.5, "majority": 0.98, "first": 0.97, "mean": 1.0}


def test_claims_on_a_table():
    made = table(AS_PREDICTED)
    assert study.twice("majority", study.NONE)(made).value == pytest.approx(0.98)
    assert len(study.beyond(made)) == 7 * 4
    assert study.beyond(made).query("function == 'parity'")["right"].eq(0.5).all()
    assert study.foretold(("parity", "majority", "first"))(made).value < -0.8
    verdicts = [claim.judge(made).verdict for claim in study.CLAIMS]
    assert verdicts[:8] == ["reproduced"] * 8
    worse = [claim.judge(table({**AS_PREDICTED, "parity": 1.0, "mean": 0.2})).verdict for claim in study.CLAIMS]
    assert worse.count("not reproduced") >= 4


def test_with_no_converged_run_all_is_undecided():
    nothing = table(AS_PREDICTED, converged=False)
    assert {claim.judge(nothing).verdict for claim in study.CLAIMS} == {"undecided"}
    study.figure(nothing).savefig("/dev/null", format="png")


def test_the_grid():
    assert len(study.PAPER) == 2 * 7 * 6
    assert len({study.TOGETHER.key(spec) for spec in study.PAPER}) == 4
    for spec in study.PAPER:
        lengths = study.lengths_of(spec.n)
        assert spec.n in lengths
        assert max(lengths) == 2 * spec.n == study.model_of(spec).embedding.length
