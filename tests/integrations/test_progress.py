"""Measuring in training: on time, within its share, and without a trace."""

import copy
import math

import pytest
import torch
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError
from teeter.integrations.progress import ProgressMeasure

BITS = torch.randint(0, 2, (300, 6), generator=torch.Generator().manual_seed(0)) * 2.0 - 1
FLIP = perturb.BitFlip()


class Clock:
    """Time passes only where it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Costly(nn.Module):
    """A network whose forward takes a fixed time for each input, in evaluation mode."""

    def __init__(self, clock, seconds):
        super().__init__()
        self.clock, self.seconds = clock, seconds
        torch.manual_seed(0)
        self.line = nn.Linear(6, 2)

    def forward(self, x):
        if not self.training:
            self.clock.now += self.seconds * len(x)
        return self.line(x)


def run(seconds, share, steps=400, every=10, step_time=0.1, **options):
    """Which steps were measured, and the share that was used, with training steps of `step_time`."""
    clock = Clock()
    model = Costly(clock, seconds)
    measure = ProgressMeasure(BITS, FLIP, every=every, share=share, budget=1000, clock=clock, **options)
    measure.begin(model)
    rows, most = {}, 0.0
    for step in range(1, steps + 1):
        clock.now += step_time
        row = measure.at(step, model)
        if row is not None:
            rows[step] = row
            most = max(most, measure.used)
    return rows, measure, most


def test_every_due_step_where_it_is_cheap():
    rows, measure, _ = run(1e-6, 0.05)  # a measurement takes 1 ms, ten steps a second
    assert list(rows) == list(range(10, 401, 10))
    assert measure.made == 40 and measure.waited == 0
    expected = teeter.sensitivity(Costly(Clock(), 0).eval(), BITS, FLIP, budget=1000)
    assert {row["sensitivity"] for row in rows.values()} == {expected.value}
    assert rows[10]["sensitivity_low"] == expected.low and rows[10]["sensitivity_high"] == expected.high


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_the_share_is_kept_at_every_moment(share):
    rows, measure, most = run(5e-4, share)  # half a second for each, 40 seconds of training in all
    assert most <= share + 1e-9
    assert measure.used > share / 2  # and made use of
    assert 1 < len(rows) < 40 and all(step % 10 == 0 for step in rows)
    assert measure.made + measure.waited == 40


def test_the_share_counts_sharpness_and_blow_up():
    clock = Clock()
    model = nn.Sequential(Costly(clock, 1e-5), nn.LayerNorm(2))
    measure = ProgressMeasure(
        BITS, FLIP, every=1, budget=100, sharpness={"draws": 4, "together": False}, blowup={}, clock=clock
    )
    measure.begin(model)
    assert measure.expected >= 1e-5 * (100 + 300 * 5 + 300) * 0.99
    clock.now += 100
    row = measure.at(1, model)
    assert measure.used <= 0.05
    assert row["sharpness"] == pytest.approx(teeter.sharpness(model.eval(), BITS, draws=4).value, rel=1e-5)
    assert row["blowup"] == teeter.blowup(model, BITS).estimate().value
    assert row["blowup_low"] < row["blowup"] < row["blowup_high"]


def test_without_a_limit_every_due_step_is_measured():
    rows, measure, _ = run(5e-3, None, steps=50)
    assert list(rows) == [10, 20, 30, 40, 50] and measure.used > 1


def test_no_time_at_all_is_said():
    rows, measure, _ = run(0.1, 0.05, steps=50)  # 100 seconds for each, 5 of training
    assert rows == {}
    with pytest.warns(UserWarning, match=r"no measurement was made: one takes about 1e\+02 s.*raise share or lower"):
        measure.end()
    run(1e-6, 0.05)[1].end()  # silent


def test_values_do_not_depend_on_which_steps_are_measured():
    often, seldom = run(1e-6, 0.05)[0], run(5e-4, 0.05)[0]
    assert set(seldom) < set(often)
    assert all(often[step] == row for step, row in seldom.items())


def trained(measure, steps=30):
    """Weights, buffers and the random numbers after training with dropout, one part frozen."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.BatchNorm1d(16), nn.Linear(16, 2))
    model.train()
    model[3].eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if measure is not None:
        measure.begin(model)
    for step in range(1, steps + 1):
        nn.functional.cross_entropy(model(BITS), (BITS[:, 0] > 0).long()).backward()
        optimizer.step()
        optimizer.zero_grad()
        if measure is not None:
            assert measure.at(step, model) is not None
        assert model[2].training and not model[3].training
    return copy.deepcopy(model.state_dict()), torch.rand(4)


def test_training_is_bit_for_bit_the_same():
    measure = ProgressMeasure(BITS, FLIP, every=1, share=None, budget=200, sharpness={"draws": 2})
    with_, without = trained(measure), trained(None)
    assert measure.made == 30
    assert torch.equal(with_[1], without[1])
    for name, value in without[0].items():
        assert torch.equal(with_[0][name], value), name


def test_a_model_is_left_as_it_was_even_by_an_error():
    class Broken(nn.Linear):
        def forward(self, input):
            if not self.training:
                torch.rand(3)  # as a network may that draws in evaluation too
                raise RuntimeError
            return super().forward(input)

    model = nn.Sequential(nn.Dropout(0.5), Broken(6, 2), nn.Dropout(0.5)).train()
    model[2].eval()
    model(BITS).sum().backward()
    before, gradient = torch.get_rng_state(), model[1].weight.grad
    with pytest.raises(RuntimeError):
        ProgressMeasure(BITS, FLIP).begin(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert model[0].training and not model[2].training
    assert model[1].weight.grad is gradient


def test_gradients_that_are_being_added_up_go_on():
    """A trainer may measure between two parts of a batch; a model may ask for gradients of its own."""

    class Curious(nn.Linear):
        def forward(self, input):
            if not self.training:
                with torch.enable_grad():
                    self.weight.square().sum().backward()
            return super().forward(input)

    model = Curious(6, 2).train()
    measure = ProgressMeasure(BITS, FLIP, every=1, share=None, budget=200)
    measure.begin(model)
    model(BITS).sum().backward()
    gradient = model.weight.grad
    kept = gradient.clone()
    assert measure.at(1, model) is not None
    assert model.weight.grad is gradient and torch.equal(gradient, kept)


def test_texts_as_mappings():
    table = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 2))

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = table

        def forward(self, inputs):
            return self.table(inputs["input_ids"])

    texts = {"input_ids": torch.randint(0, 9, (50, 5)), "attention_mask": torch.ones(50, 5, dtype=torch.long)}
    measure = ProgressMeasure(texts, perturb.TokenReplace(9), every=1, share=None, budget=100)
    measure.begin(Reader())
    assert measure.at(1, Reader())["sensitivity"] >= 0


def test_a_training_that_diverges_is_not_ended_by_its_measure():
    model = nn.Linear(6, 2)
    measure = ProgressMeasure(BITS, FLIP, every=1, share=None, budget=100)
    measure.begin(model)
    nn.init.constant_(model.weight, math.nan)
    assert math.isnan(measure.at(1, model)["sensitivity"])


def test_errors():
    with pytest.raises(InputError, match="at least 1, got 0"):
        ProgressMeasure(BITS, FLIP, every=0)
    for share in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="share is a part of the training time"):
            ProgressMeasure(BITS, FLIP, share=share)
    with pytest.raises(InputError, match="at least two inputs"):
        ProgressMeasure(BITS[:1], FLIP).begin(nn.Linear(6, 2))
    with pytest.raises(InputError, match="BitFlip takes inputs of -1 and 1"):
        ProgressMeasure(BITS * 2, FLIP).begin(nn.Linear(6, 2))
    measure = ProgressMeasure(BITS, FLIP, every=1, share=None, budget=100)
    measure.begin(nn.Linear(6, 2))
    measure.inputs = BITS * 2  # an error that is not a divergence is still one
    with pytest.raises(InputError, match="BitFlip takes inputs of -1 and 1"):
        measure.at(1, nn.Linear(6, 2))
