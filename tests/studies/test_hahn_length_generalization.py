"""Other lengths: the measure on functions that are right, wrong or off, and the claims on hand-made tables."""

from dataclasses import asdict, replace

import pandas as pd
import pytest
import torch

from teeter import cube
from teeter.measure import sharpness
from teeter.studies.hahn2024 import length_generalization as study
from teeter.studies.hahn2024.learning import FUNCTIONS, Learner, learn, zero_one
from teeter.studies.over_runs import fisher
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


def test_where_majority_is_decided():
    """Of a threshold anywhere from more than half to 3 of 4, all that is decided at 4 bits is right at 8."""
    measure = study.AtLengths("majority", (4, 8), CPU, trained=4)
    late = measure(lambda x: ((x > 0).float().mean(-1) >= 0.75).float())
    assert (late["4"], late["decided_4"], late["decided_8"]) == (1, 1, 1)
    assert late["8"] == pytest.approx(1 - 56 / 256, abs=0.04)  # 5 of 8
    never = measure(lambda x: torch.zeros(len(x)))
    assert never["decided_8"] == pytest.approx(163 / 200, abs=0.04)  # 0 to 4 of 8, of all but 5 of 8
    for function in ("parity", "mean"):
        assert study.decides(function, 4, torch.ones(3, 8)).all()
    odd = torch.tensor([[1.0, 1, -1, -1], [1.0, 1, 1, -1]])  # at 3 bits, 1/3 loses and 2/3 wins
    assert study.decides("majority", 3, odd).tolist() == [False, True]


def test_a_stack_says_what_each_model_says():
    models = [study.model_of(Learner("parity", 4, seed, dim=8)).double() for seed in (0, 1)]
    measure = study.AtLengths("majority", (3, 8), CPU, strings=64, trained=4)
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


def test_rows_have_all_that_was_measured():
    spec = Learner("majority", 4, 0, dim=8, batch=16, steps=3)
    found = study.run(spec)
    assert [row["length"] for row in found] == study.lengths_of(4)
    usual = ("mse", "norm", "unexplained", "blowup") + tuple(
        name + end for name in ("sharpness", "sharpness_released") for end in ("", "_low", "_high")
    )
    for row in found:
        assert {"fate", "converged", "right", "decided", "blowup_released", *usual} <= set(row)
        assert not {"step", "loss", "rate", "right_4"} & set(row)
        assert row["sharpness_low"] < row["sharpness"] < row["sharpness_high"]
    model = study.model_of(spec).eval()  # at step 0, on the whole cube: a rate of next to nothing
    slow = study.run(replace(spec, rate=1e-30, weight_decay=0.0))
    expected = 4 * sharpness(model, cube.points(4, dtype=torch.float32), skip=("position",)).value
    assert slow[0]["sharpness"] == pytest.approx(expected, rel=1e-4)


def test_a_run_that_diverges_has_no_measures(tmp_path):
    specs = [Learner("majority", 4, seed, dim=8, batch=16, steps=3, rate=rate) for seed, rate in ((0, 1e38), (1, 1e-4))]
    bad, good = study.TOGETHER.run(specs, tmp_path)
    assert {row["fate"] for row in good} == {"not learned"}
    assert all(row["right"] is not None for row in good)
    for row, other in zip(bad, good, strict=True):
        assert row.keys() == other.keys()
        assert {name: value for name, value in row.items() if value is not None} == {
            "length": other["length"],
            "fate": "diverged",
            "converged": False,
        }
    alone = pd.DataFrame([{**asdict(specs[0]), **row} for row in bad])
    assert {claim.judge(alone).verdict for claim in study.CLAIMS} == {"undecided"}
    study.figure(alone).savefig("/dev/null", format="png")


def test_positions_beyond_n_only_shrink():
    spec = Learner("first", 4, 0, dim=8, batch=16, steps=20, rate=1e-2)
    (made,) = learn([spec], None, model=study.model_of)
    drawn = study.model_of(spec).embedding.position.weight.detach()
    shrunk = made.model.embedding.position.weight.detach()
    assert torch.allclose(shrunk[4:], (1 - 1e-2 * 0.1) ** 20 * drawn[4:], rtol=1e-4)
    assert not torch.allclose(shrunk[:4], drawn[:4], rtol=0.1)


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
        | {"decided": 1.0 if length == 4 else value, "right": 0.1}  # which nothing is judged by
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
    assert study.beyond(made).query("function == 'parity'")["decided"].eq(0.5).all()
    assert study.foretold(("parity", "majority", "first"))(made).value < -0.8
    verdicts = [claim.judge(made).verdict for claim in study.CLAIMS]
    assert verdicts[:8] == ["reproduced"] * 8
    worse = [claim.judge(table({**AS_PREDICTED, "parity": 1.0, "mean": 0.2})).verdict for claim in study.CLAIMS]
    assert worse.count("not reproduced") >= 4


def test_sharpness_foretells_within_groups_or_only_between():
    made = table({"parity": 0.5, "majority": 0.9, "first": 0.8, "mean": 1.0})
    names = ("parity", "majority", "first")
    same = study.foretold_within(names)(made)  # all runs of a group are equally right
    assert (same.low, same.high, same.n) == (-1, 1, 0)
    between = made.assign(decided=made["decided"] + made["seed"] / 100)  # the sharper run is the better one
    assert study.foretold(names)(between).value < -0.5
    assert study.foretold_within(names)(between).value == pytest.approx(1)
    within = made.assign(decided=made["decided"] - made["seed"] / 100)
    assert study.foretold_within(names)(within).value == pytest.approx(-1)
    # Fisher's interval has a degree of freedom less for every group: 5 of 4 runs each, one of them out of place.
    swapped = within.assign(decided=within["decided"].where(within["seed"] != 3, within["decided"] + 0.05))
    r = study.foretold_within(names)(swapped)
    assert r.n == 20
    assert (r.low, r.high) == pytest.approx(fisher(r.value, 20 - 5 - 2))


def test_a_line_for_every_length_and_function_in_the_figure():
    found = table(AS_PREDICTED)
    drawing = study.figure(found)
    drawing.draw_without_rendering()
    for axes, (variant, names) in zip(drawing.axes, study.VARIANTS.items(), strict=False):
        here = found.loc[(found.variant == variant) & found["function"].isin(names)]
        drawn = [line for line in axes.lines if len(line.get_xdata()) > 2]
        assert len(drawn) == here.groupby(["function", "n"]).ngroups
        assert f"{here.groupby(['function', 'n', 'seed']).ngroups} of" in axes.get_title(loc="left")


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
