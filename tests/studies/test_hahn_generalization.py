"""H Figures 4 and 15: training sets, both stages, and each claim's measure on tables made by hand."""

import copy
import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from teeter import cube, measure
from teeter.studies.hahn2024 import generalization as study
from teeter.studies.hahn2024.generalization import Spec
from teeter.train import Stack

QUICK = dict(n=4, dim=8, batch=16, steps=4, rate=3e-3)


def table(sharpness, sensitivity=None, functions=4, **more):
    """Rows for each size: sharpness (of all functions alike, but for a small wobble) and T_1's sensitivity."""
    rows = []
    for size, sharp in sharpness.items():
        for f in range(functions):
            wobble = 0.001 * f
            row = dict(function=f, size=size, sample=0, variant="text", n=4, mse=1e-5, first_mse=1e-5, first_accuracy=1)
            row |= {f"sharpness_on_{each}_0": sharp + 0.5 if size == 16 else math.nan for each in (4, 8)}
            row |= dict(true_sensitivity=2.0, sensitivity=(sensitivity or {}).get(size, 2.0) + wobble)
            row |= dict(sharpness=sharp + wobble, train_sharpness=1.02 * (sharp + wobble))
            row |= {name.replace("sharpness", "sharpness_released"): row[name] for name in list(row) if "sharp" in name}
            rows.append(row | more)
    return pd.DataFrame(rows)


def test_training_sets_are_nested_and_each_spec_has_its_own_seeds():
    small, large = (set(study.training_set(Spec(3, size, 1)).tolist()) for size in (128, 512))
    assert len(small) == 128
    assert small < large
    assert small != set(study.training_set(Spec(3, 128, 2)).tolist())
    text = [spec for spec in study.PAPER if spec.variant == "text"]
    seeds = [study.seed_of(spec, model) for spec in text for model in range(1 + spec.refits)]
    assert sum(spec.models for spec in text) == 300 * 6 + 20 * 5
    assert len(set(seeds)) == len(seeds)


def test_the_paper_tier():
    text = [spec for spec in study.PAPER if spec.variant == "text"]
    learned = [spec for spec in text if spec.size < 1024]
    assert len(learned) == 10 * 10 * 3
    assert sum(spec.refits for spec in learned) == 1500
    assert sum(spec.refits for spec in text) - 1500 == 100  # of f itself
    assert {spec.size for spec in text} == {128, 256, 512, 1024}
    assert sum((spec.size < 1024) + spec.refits for spec in study.PAPER if spec.variant == "released") == 110
    assert (text[0].dim, text[0].batch, text[0].steps, text[0].rate) == (128, 1024, 10_000, 3e-4)


def test_nudged_answers_give_the_sharpness_of_the_library():
    x = cube.points(4, dtype=torch.float32)
    spec = Spec(0, 16, 0, **QUICK)
    models = [study.job_of(spec, x, torch.ones(16), k).model.eval() for k in (1, 2)]
    clean, nudged = study.answers(Stack(models), x)
    some = torch.tensor([1, 5, 6])
    for k, model in enumerate(models):
        assert torch.allclose(clean[k].float(), model(x), atol=1e-5)
        change = (nudged[:, k] - clean[k]).square().mean(0)
        for places in (slice(None), some):
            expected = measure.sharpness(model, x[places], skip=("position",)).value
            assert float(change[places].mean()) == pytest.approx(expected, rel=1e-3)


def test_rows_of_both_stages_and_of_f_alone():
    specs = [Spec(f, 8, 0, refits=2, variant="released", **QUICK) for f in (0, 1)]
    found = study.run_together(specs, None)
    assert [len(rows) for rows in found] == [2, 2]
    for spec, rows in zip(specs, found, strict=True):
        alone = study.run(spec)
        for row, same in zip(rows, alone, strict=True):
            assert row == pytest.approx(same, rel=1e-3, abs=1e-5)
            assert 0 <= row["sensitivity"] <= 4
            assert row["true_sensitivity"] == cube.average_sensitivity(
                cube.truth_table(cube.random_function(spec.function), 4)
            )
            assert row["first_mse"] > 0
            assert 0 <= row["first_accuracy"] <= 1
    (row,) = study.run(Spec(0, 16, 0, refits=1, **QUICK))
    assert row["sensitivity"] == row["true_sensitivity"]
    assert (row["agreement"], row["first_mse"], row["first_accuracy"]) == (1, 0, 1)
    assert row["sharpness"] == pytest.approx(row["train_sharpness"])


def test_what_is_kept_of_t_1_and_of_f_on_training_sets(monkeypatch):
    spec, stacks, made = Spec(1, 8, 0, refits=1, **QUICK), [], study.trained
    monkeypatch.setattr(study, "trained", lambda *given: stacks.append(made(*given)) or stacks[-1])
    (row,), (true,) = study.run(spec), study.run(replace(spec, size=16))
    x = cube.points(4, dtype=torch.float32)
    first, _, third = (stack.put(0, copy.deepcopy(stack.shape)).eval() for stack in stacks)
    own = study.training_set(spec)

    def sharp(model, places):
        return pytest.approx(4 * measure.sharpness(model, x[places], skip=("position",)).value, rel=1e-3)

    assert (row["first_sharpness"], row["first_train_sharpness"]) == (sharp(first, slice(None)), sharp(first, own))
    right = (first(x[own]) > 0.5) == (cube.random_function(1)(x[own]) > 0)
    assert row["first_accuracy"] == float(right.float().mean())
    for size in (2, 4, 8):
        for k in (0, 9):
            places = study.training_set(replace(spec, size=size, sample=k))
            assert true[f"sharpness_on_{size}_{k}"] == sharp(third, places)
            assert f"sharpness_released_on_{size}_{k}" in true
    assert "sharpness_on_8_0" not in row


def test_f_is_measured_on_every_training_set():
    for tier in (study.SMOKE, study.SMALL, study.PAPER):
        for spec in tier:
            assert spec.size * (1 if spec.size == 2**spec.n else 2) in [2**spec.n // part for part in (4, 2, 1)]
            assert spec.sample < study.SAMPLES


def test_a_fit_is_flat_on_what_it_fits():
    """With enough steps T_1 gets its own strings right, and the new transformers what it said."""
    (row,) = study.run(Spec(0, 4, 0, refits=1, **(QUICK | dict(steps=150, dim=16, rate=1e-2))))
    assert row["first_mse"] < 1e-3
    assert row["first_accuracy"] == 1
    assert row["mse"] < 1e-2
    assert row["agreement"] >= 4 / 16


def test_orders():
    right = table({4: 0.1, 8: 0.2, 16: 0.3}, {4: 0.5, 8: 1.0})
    assert study.less_sensitive(right).low == 1
    assert study.in_order(right).low == 1
    assert study.flatter(right, "sharpness").low == 1
    assert study.flatter(right, "sharpness", "train_").low == 1
    wrong = table({4: 0.5, 8: 0.2, 16: 0.3}, {4: 2.5, 8: 1.0})
    assert study.less_sensitive(wrong).value == 0.5
    assert study.less_sensitive(wrong).high == 0.5
    assert study.in_order(wrong).high == 0
    assert study.flatter(wrong, "sharpness").high == 0.5
    assert study.flatter(wrong, "sharpness", "train_").low == 1  # f is sharper there by a half
    near = table({4: 0.3, 16: 0.3})  # equal on average: neither
    near.loc[near["size"] == 4, "sharpness"] += [0.1, -0.1, 0.1, -0.1]
    doubtful = study.flatter(near, "sharpness")
    assert (doubtful.low, doubtful.high) == (0, 1)


@pytest.mark.parametrize("column", ["mse", "first_mse"])
def test_a_size_at_which_nothing_converged_may_be_either(column):
    some = table({2: 0.1, 4: 0.1, 8: 0.2, 16: 0.3}, {2: 0.3, 4: 0.5, 8: 1.0})
    some.loc[some["size"] == 2, column] = 0.5
    assert (study.flatter(some, "sharpness").low, study.flatter(some, "sharpness").high) == pytest.approx((2 / 3, 1))
    less, order = study.less_sensitive(some), study.in_order(some)
    assert (less.low, less.high) == pytest.approx((1 if column == "mse" else 2 / 3, 1))
    assert (order.low, order.high) == (1 if column == "mse" else 0.5, 1)


def test_each_variant_has_its_rule_and_its_measure():
    some = table({4: 0.1, 8: 0.2, 16: 0.3}, {4: 0.5, 8: 1.0}, first_mse=2e-3)
    some["sharpness_released"] = 0.5 - some["sharpness"]  # the other way round
    some["train_sharpness_released"] = some["sharpness_released"]
    assert len(study.converged(some)) == 0
    released = some.assign(variant="released")
    assert len(study.converged(released)) == len(some)
    assert len(study.converged(released.assign(first_accuracy=0.99))) == 0
    assert len(study.converged(some.assign(first_mse=1e-3, first_accuracy=0.99))) == len(some)
    (claim,) = (each for each in study.CLAIMS if each.claim == "T_1 is less sharp than f (released)")
    assert claim.judge(released).verdict == "not reproduced"


def test_ratio():
    found = study.alike(table({4: 0.1, 8: 0.2, 16: 0.3}), "sharpness")
    assert found.value == pytest.approx(1.02)
    assert found.half_width == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("column", ["mse", "first_mse"])
def test_nothing_converged_decides_nothing(column):
    judged = [claim.judge(table({4: 0.1, 8: 0.2, 16: 0.3}, **{column: 0.1})) for claim in study.CLAIMS]
    text = len(study.CLAIMS) // 2
    assert {j.verdict for j in judged[2:text]} == {"undecided"}
    one = [claim.judge(table({4: 0.1, 16: 0.3}, functions=1)) for claim in study.CLAIMS]
    assert {j.verdict for j in one[:text]} == {"undecided"}
    assert {j.verdict for j in judged[text:] + one[text:]} == {"not run at this tier"}


def test_claims_are_of_their_variant():
    half = pd.concat([table({4: 0.1, 8: 0.2, 16: 0.3}, {4: 0.5, 8: 1.0})])
    verdicts = {claim.claim: claim.judge(half).verdict for claim in study.CLAIMS}
    assert {v for name, v in verdicts.items() if "(text)" in name} == {"reproduced"}
    assert {v for name, v in verdicts.items() if "(released)" in name} == {"not run at this tier"}


def test_a_figure_says_where_nothing_converged():
    found = table({4: 1.0, 8: 2.0, 16: 3.0})
    found.loc[found["size"] == 8, "mse"] = 1.0
    drawing = study.figure(found)
    drawing.draw_without_rendering()
    words = [text.get_text() for text in drawing.axes[0].get_legend().get_texts()]
    assert set(words) == {"$T_1$ from 4", "$T_1$ from 8: none", "$f$ itself"}
    (centre,) = (each for each in drawing.axes[0].containers if each.get_label() == "$T_1$ from 4")
    assert centre[0].get_xydata().tolist() == [pytest.approx([2.0015, 1.0015])]
    # every model is a dot
    assert len(drawing.axes[0].lines[0].get_xdata()) == 4
