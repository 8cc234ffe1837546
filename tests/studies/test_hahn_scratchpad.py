"""H Figure 11 and Theorem 7: targets, the network's own steps, the sensitivity of a step, and each claim's measure."""

import pandas as pd
import pytest
import torch
from torch import nn

from teeter import measure
from teeter.data import bit_strings
from teeter.perturb import BitFlip
from teeter.runs import Store, execute
from teeter.studies.hahn2024 import scratchpad as study
from teeter.studies.hahn2024.scratchpad import Spec
from teeter.studies.over_runs import fisher
from teeter.train import Trained

QUICK = dict(dim=8, batch=16, steps=4)


def table(ns, sharpness, **more):
    rows = dict(variant="text", fate="converged", own_accuracy=1.0, sensitivity_last=2.0) | more
    return pd.DataFrame(
        [dict(n=n, sharpness=s, sharpness_released=s) | rows for n, s in zip(ns, sharpness, strict=True)]
    )


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


class Ideal(nn.Module):
    """t_i = x_i t_{i-1}."""

    def forward(self, bits, steps, all_positions):
        return bits * torch.cat([torch.ones(len(bits), 1), steps], 1)


class Parity(nn.Module):
    """The same from the bits alone, as without a scratchpad."""

    def forward(self, bits, steps, all_positions):
        return bits.cumprod(-1)


def test_sensitivity_of_steps():
    bits = bit_strings(9, 4, seed=0)
    assert study.step_sensitivity(Ideal(), bits).tolist() == [1] + [2] * 8
    assert study.step_sensitivity(Parity(), bits).tolist() == list(range(1, 10))


def one_step_sensitivity(model, bits, step):
    """The naive twin: flips of the tokens that are there before this step, and no others."""
    n = bits.shape[1]
    tokens = torch.cat([bits, bits.cumprod(-1)[:, : step - 1]], 1)
    flips = measure.token_map(lambda x: model(x[:, :n], x[:, n:]), tokens, BitFlip(), draws=1)
    return float(flips.mean.sum(1).mean())


@torch.no_grad()
def test_one_pass_of_flips_is_that_of_every_step():
    model, bits = study.in_signs(study.model_of(Spec(6, 3, dim=8)).eval()), bit_strings(6, 16, seed=2)
    given = model(bits, all_positions=True)
    model.head.bias -= given.median()  # so that signs differ
    model.head.weight *= 1 / given.std()
    found = study.step_sensitivity(model, bits).tolist()
    assert found == pytest.approx([one_step_sensitivity(model, bits, i) for i in range(1, 7)])
    assert len(set(found)) > 2


class OneStep(nn.Module):
    def __init__(self, model, step):
        super().__init__()
        self.model, self.step = model, step

    def forward(self, bits):
        return self.model(bits)[:, self.step]


def test_columns():
    spec = Spec(4, 0, **QUICK)
    device = torch.device("cpu")
    model = study.model_of(spec).eval()
    row = study.measured(spec, model, device)
    assert set(row) == set(study.COLUMNS)
    bits = bit_strings(4, study.STRINGS, seed=1_000_000)
    targets = study.steps_of(bits)
    with torch.no_grad():
        given = model(bits)
    assert row["mse"] == pytest.approx(float((given - targets).square().mean()), rel=1e-5)
    assert row["accuracy"] == pytest.approx(float(((given > 0.5) == (targets > 0.5)).float().mean()))
    whole = measure.sharpness(model, bits, skip=("position",))  # summed over the four steps: 4 for ±1, over n = 4
    assert (row["sharpness"], row["sharpness_low"], row["sharpness_high"]) == pytest.approx(
        (whole.value, whole.low, whole.high), rel=1e-3
    )
    rise = measure.sharpness(model, bits, "rise", targets=targets, skip=("position",)).value
    assert row["sharpness_released"] == pytest.approx(rise, rel=1e-3)
    each = [4 * measure.sharpness(OneStep(model, i), bits, skip=("position",)).value for i in range(4)]
    assert row["sharpness_last"] == pytest.approx(each[-1], rel=1e-3)
    assert row["sharpness_most"] == pytest.approx(max(each), rel=1e-3)
    own = (study.in_signs(model).generate(bits) > 0) == (targets > 0.5)
    assert row["own_accuracy"] == pytest.approx(float(own.float().mean()))
    assert row["own_last"] == pytest.approx(float(own[:, -1].float().mean()))
    logs = measure.blowup(model, bits).product.log().mean()
    assert row["blowup_encoder"] + row["blowup_decoder"] == pytest.approx(float(logs))


def test_a_run_that_diverges_blocks_nothing(tmp_path):
    specs = [Spec(3, seed, rate=rate, **QUICK) for seed, rate in ((0, 1e38), (1, 3e-4))]
    first, again = (study.run_together(specs, tmp_path) for _ in range(2))  # the second from what the first left
    assert first == again
    (bad,), (good,) = first
    assert bad == {"fate": "diverged", **dict.fromkeys(study.COLUMNS)}
    assert good["fate"] == "not learned"
    assert good.keys() == bad.keys()
    for these in (specs, specs[:1]):  # some, and nothing but
        store = Store(tmp_path / str(len(these)))
        execute(store, study.STUDY.name, 1, study.run, these, together=study.STUDY.together)
        made = store.table(study.STUDY.name)
        assert [claim.judge(made).estimate is None for claim in study.CLAIMS] == [False] * 6 + [True] * 6
        study.figure(made).savefig("/dev/null", format="png")


def test_answers_that_are_no_numbers_are_a_divergence():
    spec = Spec(3, 0, **QUICK)
    model = study.model_of(spec).eval()
    ended = Trained(model, [], 2, "diverged", 0.0, 0.0)  # a loss that was none, and weights that still are numbers
    assert study.row_of(spec, ended, torch.device("cpu"))["mse"] is None
    with torch.no_grad():
        model.model.head.weight.fill_(3e38)
    row = study.row_of(spec, Trained(model, [], 4, "done", 0.0, 0.0), torch.device("cpu"))
    assert row["fate"] == "diverged"


def test_together_as_alone():
    specs = [Spec(3, seed, variant, **QUICK) for variant, seed in (("text", 0), ("text", 1), ("released", 0))]
    for spec, rows in zip(specs, study.run_together(specs, None), strict=True):
        (row,), (alone,) = rows, study.run(spec)
        assert row.pop("fate") == alone.pop("fate")
        assert row == pytest.approx(alone, rel=1e-3, abs=1e-4)


def test_what_is_trained_as_one_program():
    assert study.kind_of(Spec(4, 0)) == study.kind_of(Spec(4, 1))
    assert study.kind_of(Spec(4, 0)) != study.kind_of(Spec(5, 0))
    assert study.kind_of(Spec(4, 0)) != study.kind_of(Spec(4, 0, "released"))


def test_the_paper_tier():
    text = [spec for spec in study.PAPER if spec.variant == "text"]
    assert len(text) == 3 * 10
    assert max(spec.n for spec in text) > 300
    assert len(study.PAPER) - len(text) == 4 * 6
    for runs in (len(text), 24):
        assert max(map(abs, fisher(0.0, runs - 3))) < 0.5  # no correlation at all can be told from one of 1/2
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


def test_the_longest_are_those_of_all_runs():
    some = table([4, 4, 8, 8], [0.1, 0.1, 0.2, 0.2])
    some.loc[some.n == 8, "fate"] = "not exact"
    found = study.mean_of("sharpness", longest=True)(some)
    assert (found.low, found.high, found.n) == (0, 1e6, 0)


def test_each_variant_has_its_rule():
    inexact, wrong = dict(mse=2e-3, own_accuracy=1.0), dict(mse=1e-4, own_accuracy=0.99)
    assert [study.fate_of(v, inexact) for v in ("text", "released")] == ["not exact", "converged"]
    assert [study.fate_of(v, wrong) for v in ("text", "released")] == ["converged", "not exact"]
    assert study.fate_of("text", dict(mse=0.2, own_accuracy=0.5)) == "not learned"


def test_each_variant_has_its_measure():
    """Sharp by Eq. 15, flat by the rise of the error: for the released variant, that is flat."""
    for variant, expected in (("text", "not reproduced"), ("released", "reproduced")):
        some = table([4, 4, 320, 320], [0.5, 0.51, 0.5, 0.51], variant=variant, sharpness_released=0.01)
        (claim,) = (c for c in study.CLAIMS if c.claim.startswith(f"sharpness at the longest n ({variant};"))
        assert claim.judge(some).verdict == expected


def test_steps_of_a_run_that_diverged_are_not_right():
    some = table([4, 4, 8, 8], [0.1] * 4, own_accuracy=1.0)
    some.loc[0, "own_accuracy"] = None
    assert study.right_steps(some).value == 0.75


def test_claims():
    flat = table([4, 4, 8, 8, 320, 320] * 9, [0.05, 0.051, 0.051, 0.05, 0.05, 0.051] * 9)
    verdicts = {claim.claim: claim.judge(flat).verdict for claim in study.CLAIMS}
    assert [v for name, v in verdicts.items() if "(text" in name] == ["reproduced"] * 6
    assert [v for name, v in verdicts.items() if "(released" in name] == ["not run at this tier"] * 6
    steep = table([4, 4, 30, 30], [0.1, 0.11, 0.9, 0.91], sensitivity_last=30.0)
    assert [claim.judge(steep).verdict for claim in study.CLAIMS[1:5]] == ["not reproduced"] * 4


def test_what_may_be_there_is_not_absent():
    """A slope whose interval meets 0 ± 5e-4 but reaches beyond."""
    some = table([4, 4, 14, 14], [0.1, 0.102, 0.108, 0.106])
    (claim,) = (c for c in study.CLAIMS if c.claim.startswith("slope of sharpness in n (text;"))
    found = claim.measure(some)
    assert found.low < 5e-4 < found.value < found.high
    assert claim.judge(some).verdict == "undecided"


def test_nothing_converged_decides_nothing():
    failed = table([4, 8, 16, 16], [0.1] * 4, fate="not learned", own_accuracy=0.5)
    verdicts = [claim.judge(failed).verdict for claim in study.CLAIMS]
    assert verdicts == ["not reproduced"] + ["undecided"] * 5 + ["not run at this tier"] * 6
