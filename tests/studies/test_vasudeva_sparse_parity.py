"""Sparse parities: the settings of the paper, what is read off a run, and the claims on made-up runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from teeter import cube
from teeter.data import SparseParity
from teeter.errors import UnknownName
from teeter.measure import Estimate
from teeter.studies.vasudeva2025 import sparse_parity as study
from teeter.studies.vasudeva2025.sparse_parity import Spec
from teeter.train import Trained

ROWS = 101


def test_the_papers_settings():
    keys = ("samples", "batch", "dim", "rate", "seed")
    settings = [tuple(getattr(spec, key) for key in keys) for spec in study.STUDY.specs("paper")]
    assert settings[:6] == settings[6:12] == settings[12:]
    assert [spec.variant for spec in study.PAPER] == ["last"] * 6 + ["mean"] * 6 + ["small"] * 6
    assert settings[:6] == [
        (50_000, 250, 32, 0.001, 123),
        (50_000, 250, 32, 0.001, 42),
        (50_000, 250, 32, 0.001, 0),
        (10_000, 100, 64, 0.001, 42),
        (5_000, 25, 32, 0.0001, 42),
        (5_000, 50, 32, 0.0001, 42),
    ]
    assert {(spec.d, spec.p, spec.epochs, spec.strings) for spec in study.PAPER} == {(40, 4, 1_000, 100_000)}
    assert [study.marks(spec)[-1] for spec in study.PAPER[:6]] == [200_000] * 3 + [100_000, 200_000, 100_000]
    assert {len(study.marks(spec)) for spec in study.PAPER} == {101}
    # Seeds and first weights alone differ within a stack.
    assert len({study.kind_of(spec) for spec in study.PAPER}) == 2 * 4
    assert study.kind_of(study.PAPER[3]) == study.kind_of(study.PAPER[15]) != study.kind_of(study.PAPER[9])


def test_the_model_of_the_paper():
    model = study.model_of(study.PAPER[3])
    assert len(model.layers) == 2
    assert {layer.attention.heads for layer in model.layers} == {4}
    assert model(torch.ones(2, 40)).shape == (2,)
    assert model.head.in_features == 64
    bits = 1 - 2 * torch.randint(0, 2, (5, 40), generator=torch.Generator().manual_seed(0))
    other = study.model_of(study.PAPER[9])  # the same weights, read elsewhere
    assert torch.equal(other.head.weight, model.head.weight)
    every = model(bits, all_positions=True)
    assert torch.allclose(model(bits), every[:, -1], atol=1e-6)
    assert torch.allclose(other(bits), every.mean(1), atol=1e-6)
    small = study.model_of(study.PAPER[15])
    for (name, one), part in zip(model.named_parameters(), small.parameters(), strict=True):
        assert torch.equal(part, 0.1 * one if name.startswith("embedding") else one)
    with pytest.raises(UnknownName, match="no variant named 'first'"):
        study.model_of(Spec(8, 4, 8, 1e-3, 0, variant="first"))


def test_the_target_is_exact():
    assert study.target(study.PAPER[0]) == 0.1
    table = cube.truth_table(cube.sparse_parity((0, 2, 5)), 8)
    assert study.target(Spec(8, 4, 8, 1e-3, 0, d=8, p=3)) == cube.average_sensitivity(table) / 8 == 3 / 8


def test_a_model_that_knows_the_parity_has_its_sensitivity_exactly():
    spec = Spec(20, 10, 8, 1e-3, 0, d=8, p=3, epochs=1, strings=64)
    support, asked = SparseParity(8, 3, 0).support, {}

    class Knows(torch.nn.Module):
        def forward(self, x):
            return x[:, list(support)].prod(-1)

    class Caught(Exception):
        pass

    def caught(*args, measures, **more):
        asked.update(measures[0])
        raise Caught

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Caught):
        patch.setattr(study, "train_stack", caught)
        study.run(spec)
    found = asked["sensitivity"](Knows().eval())
    assert (found.value, found.n) == (3 / 8, 8)
    for part in ("test", "train"):
        said = asked[part](Knows())
        assert (said["accuracy"], said["loss"]) == (1, 0)


def test_a_run_has_its_rows():
    spec = study.SMOKE[0]
    found = study.run(spec)
    assert [row["step"] for row in found] == study.marks(spec) == [0, 2, 3, 6]
    assert found[-1]["epoch"] == 3.0
    assert all(row["sensitivity_low"] <= row["sensitivity"] <= row["sensitivity_high"] for row in found)
    assert all(row["target"] == pytest.approx(2 / 6) for row in found)
    together = study.run_all(study.SMOKE[:2], None)
    assert {row.pop("stopped") for rows in (found, together[0]) for row in rows} == {"done"}
    assert together[0][-1] == pytest.approx(found[-1], rel=1e-3, abs=1e-3)


def test_models_that_differ_in_their_first_weights_share_a_stack():
    last, small = (next(each for each in study.SMOKE if each.variant == name) for name in ("last", "small"))
    assert study.kind_of(last) == study.kind_of(small)
    for alone, together in zip((last, small), study.run_all([last, small], None), strict=True):
        whole = study.run(alone)[-1]
        assert {row.pop("stopped") for row in (together[-1], whole)} == {"done"}
        assert together[-1] == pytest.approx(whole, rel=1e-3, abs=1e-3)


def test_a_run_ends_once_it_is_the_parity():
    ends = study.knows_all(study.PAPER[0])
    knows = {"train_accuracy": 1.0, "test_accuracy": 1.0, "sensitivity": 0.1}
    assert ends(knows)
    for name, value in (("train_accuracy", 0.9999), ("test_accuracy", 0.9999), ("sensitivity", 0.1001)):
        assert not ends({**knows, name: value})
    found = study.run(Spec(64, 16, 8, 1e-2, 0, d=4, p=1, epochs=200, strings=64))
    assert {row["stopped"] for row in found} == {"until"}
    assert 0 < found[-1]["step"] < 800 and found[-1]["sensitivity"] == 0.25


def test_an_interrupted_run_is_not_taken_for_a_whole_one(monkeypatch):
    half = [Trained(None, [], 2, "interrupted", 0, 0)]
    monkeypatch.setattr(study, "train_stack", lambda *given, **more: half)
    with pytest.raises(KeyboardInterrupt):
        study.run(study.SMOKE[0])


def run(seed=0, knows=60, near=60, rises=1, end=0.1, **other):
    """Both accuracies jump from one half to 1 at row `knows`; sensitivity is at its end from row `near` on."""
    k = np.arange(ROWS)
    before = 0.05 + 0.03 * k / ROWS * rises
    value = np.where(k >= near, end, before)
    columns = {
        "step": 100 * k,
        "epoch": k / 1.0,
        "train_accuracy": np.where(k >= knows, 1.0, 0.5),
        "test_accuracy": np.where(k >= knows, 1.0, 0.5),
        "sensitivity": value,
        "sensitivity_low": value - 0.004,
        "sensitivity_high": value + 0.004,
    }
    fixed = {"samples": 50_000, "batch": 250, "dim": 32, "rate": 1e-3, "seed": seed, "d": 40, "p": 4, "target": 0.1}
    fixed["variant"] = "last"
    return pd.DataFrame({**columns, **fixed, **other})


def six(**other):
    return pd.concat([run(seed, **other) for seed in range(6)])


def verdicts(table):
    return [claim.judge(table).verdict for claim in study.CLAIMS]


def test_what_is_read_off_a_run():
    found = study.learned(run())
    assert (found.learned, found.lag) == (True, 0)
    assert study.learned(run(near=70)).lag == 10
    assert study.learned(run(end=0.12)).lag is None  # never near
    assert study.learned(run(knows=200)) == study.Learned(False, None)
    away = run()
    away.loc[90, "sensitivity"] = 0.2
    assert study.learned(away).lag == 31  # from the row after it on for good


def test_the_trend_while_guessing():
    assert study.trend(run()) == pytest.approx(1)
    assert study.trend(run(knows=4)) is None  # four rows are no trend
    assert study.trend(run(knows=5)) == pytest.approx(1)
    assert study.trend(run(rises=0)) is None  # nor is what stays the same
    restless = run().assign(sensitivity=lambda rows: 0.02 + 0.05 * (rows.step % 200 == 0))
    assert abs(study.trend(restless)) < 0.1
    falling = run().assign(sensitivity=lambda rows: 1 - rows.step / 1e5)
    assert study.trend(falling) == pytest.approx(-1)


def test_train_accuracy_ends_guessing_too():
    late = np.arange(ROWS) >= 30
    memorised = run(rises=0).assign(sensitivity=lambda rows: np.where(late, rows.step / 1e5, 0.02))
    assert study.trend(memorised) > 0.5
    assert study.trend(memorised.assign(train_accuracy=np.where(late, 0.9, 0.5))) is None


def test_what_the_paper_says_is_reproduced_where_it_is_true():
    none = ["not run at this tier"] * 3
    assert verdicts(six()) == ["reproduced"] * 3 + none * 2
    assert verdicts(six(variant="mean")) == none + ["reproduced"] * 3 + none
    both = pd.concat([six(), six(variant="mean", knows=200)])
    assert verdicts(both)[:4] == ["reproduced"] * 3 + ["not reproduced"]  # each by its own runs


@pytest.mark.parametrize(
    ("other", "missed"),
    [
        ({"knows": 200}, [0]),
        ({"end": 0.12}, [2]),
        ({"rises": -1}, [1]),
        ({"near": 80}, [2]),
    ],
)
def test_and_not_where_it_is_not(other, missed):
    found = verdicts(six(**other))
    assert [i for i, verdict in enumerate(found) if verdict == "not reproduced"] == missed


def test_one_setting_that_is_not_learned_is_one_too_many():
    table = pd.concat([*(run(seed) for seed in range(5)), run(9, knows=200, end=0.5)])
    first, _, last = (claim.judge(table) for claim in study.CLAIMS[:3])
    assert (first.verdict, first.estimate) == ("not reproduced", Estimate(5 / 6, 5 / 6, 5 / 6, 6))
    assert (last.verdict, last.estimate.value, last.estimate.n) == ("reproduced", 1, 5)  # of those learned
    assert verdicts(six(knows=200))[2] == "undecided"


def test_a_trend_is_all_of_its_interval():
    restless = [run(seed).assign(sensitivity=lambda rows: rows.step % 700 / 1e4) for seed in (0, 1)]
    mixed = pd.concat([*restless, *(run(seed) for seed in range(2, 6))])
    found = study.CLAIMS[1].judge(mixed)
    assert found.estimate.low < 0.5 < found.estimate.value
    assert found.verdict == "undecided"
    near = replace(study.CLAIMS[1], measure=lambda table: Estimate(0.5, 0.45, 0.55, 6))
    assert near.judge(six()).verdict == "undecided"
    clear = replace(study.CLAIMS[1], measure=lambda table: Estimate(0.6, 0.55, 0.65, 6))
    assert clear.judge(six()).verdict == "reproduced"


def test_the_figure():
    drawing = study.figure(pd.concat([six(), six(variant="mean")]))
    assert isinstance(drawing, Figure)
    assert [len(axes.get_lines()) for axes in drawing.axes] == [6, 6, 6, 6, 7, 7]  # the target's among the last
    assert [axes.get_title(loc="left") for axes in drawing.axes[:2]] == list(study.VARIANTS.values())[:2]
    assert len(drawing.legends[0].get_texts()) == 6
    first, second = ([line.get_color() for line in axes.get_lines()] for axes in drawing.axes[:2])
    assert first == second and len(set(first)) == 6
    assert len(study.figure(six(variant="mean")).axes) == 3
