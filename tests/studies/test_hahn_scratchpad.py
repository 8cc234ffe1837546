"""H Figure 11 and Theorem 7: targets, the network's own steps, the sensitivity of a step, and each claim's measure."""

import pandas as pd
import pytest
import torch

from teeter import measure
from teeter.data import bit_strings
from teeter.studies.hahn2024 import scratchpad as study
from teeter.studies.hahn2024.scratchpad import Spec

QUICK = dict(dim=8, batch=16, steps=4)


def table(ns, sharpness, **more):
    rows = dict(variant="text", mse=1e-5, own_accuracy=1.0, sensitivity_last=2.0) | more
    return pd.DataFrame([rows | dict(n=n, sharpness=s) for n, s in zip(ns, sharpness, strict=True)])


def test_steps_are_prefix_parities():
    bits = bit_strings(7, 20, seed=0)
    expected = torch.stack([(1 + bits[:, : i + 1].prod(-1)) / 2 for i in range(7)], 1)
    assert torch.equal(study.steps_of(bits), expected)
    x, y = study.stream_of(Spec(7, 3, batch=5), torch.device("cpu"))(2)
    assert torch.equal(x, bit_strings(7, 5, seed=3, step=2))
    assert torch.equal(y, study.steps_of(x))


def test_a_network_of_signs_says_the_same():
    model = study.model_of(Spec(5, 0, dim=8)).eval()
    bits = bit_strings(5, 6, seed=1)
    with torch.no_grad():
        assert torch.allclose(study.in_signs(model)(bits, all_positions=True), 2 * model(bits) - 1, atol=1e-5)


class Ideal(torch.nn.Module):
    """t_i = x_i t_{i-1}."""

    def forward(self, bits, steps):
        before = steps[:, -1] if steps.shape[1] else 1
        return bits[:, steps.shape[1]] * before


class Parity(torch.nn.Module):
    """The same from the bits alone, as without a scratchpad."""

    def forward(self, bits, steps):
        return bits[:, : steps.shape[1] + 1].prod(-1)


def test_sensitivity_of_a_step():
    bits = bit_strings(9, 4, seed=0)
    assert [study.step_sensitivity(Ideal(), bits, i) for i in (1, 2, 9)] == [1, 2, 2]
    assert [study.step_sensitivity(Parity(), bits, i) for i in (1, 2, 9)] == [1, 2, 9]


def test_columns():
    spec = Spec(4, 0, **QUICK)
    device = torch.device("cpu")
    model = study.model_of(spec).eval()
    row = study.measured(spec, model, device)
    bits = bit_strings(4, study.STRINGS, seed=1_000_000)
    targets = study.steps_of(bits)
    with torch.no_grad():
        given = model(bits)
    assert row["mse"] == pytest.approx(float((given - targets).square().mean()), rel=1e-5)
    assert row["accuracy"] == pytest.approx(float(((given > 0.5) == (targets > 0.5)).float().mean()))
    expected = measure.sharpness(model, bits, skip=("position",)).value  # summed over the four steps
    assert row["sharpness"] == pytest.approx(expected, rel=1e-4)
    own = (study.in_signs(model).generate(bits) > 0) == (targets > 0.5)
    assert row["own_accuracy"] == pytest.approx(float(own.float().mean()))
    assert row["own_last"] == pytest.approx(float(own[:, -1].float().mean()))


def test_together_as_alone():
    specs = [Spec(3, seed, variant, **QUICK) for variant, seed in (("text", 0), ("text", 1), ("released", 0))]
    for spec, rows in zip(specs, study.run_together(specs, None), strict=True):
        assert rows[0] == pytest.approx(study.run(spec)[0], rel=1e-3, abs=1e-4)


def test_what_is_trained_as_one_program():
    assert study.kind_of(Spec(4, 0)) == study.kind_of(Spec(4, 1))
    assert study.kind_of(Spec(4, 0)) != study.kind_of(Spec(5, 0))
    assert study.kind_of(Spec(4, 0)) != study.kind_of(Spec(4, 0, "released"))


def test_the_paper_tier():
    text = [spec for spec in study.PAPER if spec.variant == "text"]
    assert len(text) == 3 * 11
    assert max(spec.n for spec in text) > 300
    assert len(study.PAPER) - len(text) == 3 * 5
    assert {(spec.dim, spec.batch, spec.steps, spec.rate, spec.weight_decay) for spec in study.PAPER} == {
        (32, 128, 10_000, 3e-4, 0.1)
    }


def test_a_rise():
    line = table([4, 4, 8, 8], [0.11, 0.09, 0.21, 0.19])
    found = study.rise_of("sharpness")(line)
    assert found.value == pytest.approx(0.025)
    assert found.half_width == pytest.approx(4.3027 * 0.0035355, rel=1e-3)  # Student, 2 degrees of freedom
    assert study.rise_of("sensitivity_last")(line).half_width == 0


def test_means():
    some = table([4, 4, 8, 8], [5.0, 5.0, 0.2, 0.4])
    found = study.mean_of("sharpness", longest=True)(some)
    assert (found.value, found.n) == (pytest.approx(0.3), 2)
    assert found.low == 0  # 12.7 standard errors below
    assert found.high == pytest.approx(0.3 + 12.706 * 0.1, rel=1e-3)


def test_each_variant_has_its_rule():
    assert len(study.converged(table([4, 8], [0.1, 0.1], mse=2e-3))) == 0
    assert len(study.converged(table([4, 8], [0.1, 0.1], mse=2e-3, variant="released"))) == 2
    assert len(study.converged(table([4, 8], [0.1, 0.1], own_accuracy=0.99, variant="released"))) == 0


def test_claims():
    flat = table([4, 4, 8, 8, 320, 320] * 9, [0.05, 0.051, 0.051, 0.05, 0.05, 0.051] * 9)
    verdicts = {claim.claim: claim.judge(flat).verdict for claim in study.CLAIMS}
    assert {v for name, v in verdicts.items() if "(text)" in name} == {"reproduced"}
    assert {v for name, v in verdicts.items() if "(released)" in name} == {"undecided"}
    steep = table([4, 4, 30, 30], [0.1, 0.11, 0.9, 0.91], sensitivity_last=30.0)
    assert [claim.judge(steep).verdict for claim in study.CLAIMS[1:5]] == ["not reproduced"] * 4


def test_nothing_converged_decides_nothing():
    failed = table([4, 8, 16, 16], [0.1] * 4, mse=0.25, own_accuracy=0.5)
    verdicts = [claim.judge(failed).verdict for claim in study.CLAIMS]
    assert verdicts == ["not reproduced"] + ["undecided"] * 11
