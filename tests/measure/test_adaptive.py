"""The design that learns: its mathematics against brute force, and what it must keep of the plain designs."""

import numpy as np
import pytest
import torch
from torch import nn

from teeter import cube, perturb
from teeter.errors import InputError
from teeter.measure import kl_divergence, label_flip, merge, sensitivity
from teeter.measure.adaptive import Strata, allocation, edges_between, strata, variances
from tests.measure.test_sensitivity import Coin, ones


def margin(x):
    """A clean answer that is the surer the smaller the chance to flip."""
    return 1.5 - x


def rare(inputs, seed=0):
    """One input in ten flips now and then, the rest never: a rate of 0.02."""
    uniform = torch.rand(inputs, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.where(uniform[:, 0] < 0.1, 0.4 * uniform[:, 1], 0.0)


@pytest.mark.parametrize("draws", [0.25, 1.0, 4.0])
def test_the_variance_of_an_inputs_estimate_is_what_simulation_gives(draws):
    """Two strata; within each, chances are beta distributed so that two draws correlate as `alike` says."""
    alike, share, chance = 0.2, np.array([0.3, 0.7]), np.array([0.4, 0.05])
    generator = np.random.default_rng(0)
    stratum = generator.choice(2, 400_000, p=share)
    p = chance[stratum]
    own = generator.beta(p * (1 / alike - 1), (1 - p) * (1 / alike - 1))
    if draws < 1:
        y = (generator.random(len(own)) < draws) * (generator.random(len(own)) < own) / draws
    else:
        y = generator.binomial(int(draws), own) / draws
    known = Strata(share, chance, alike)
    assert float(variances(known, np.full(2, draws))) == pytest.approx(y.var(), rel=0.02)


def test_the_allocation_is_the_best_on_a_grid_and_one_draw_each_where_that_is_best():
    known = Strata(np.array([0.1, 0.9]), np.array([0.2, 0.001]), 0.1)
    chosen = allocation(known, clean=1.0)
    price = lambda d: (1 + (known.share * d).sum()) * variances(known, d)  # noqa: E731
    grid = [np.array([a, b]) for a in np.linspace(1, 8, 40) for b in np.linspace(0.1, 1, 40)]
    assert price(chosen) <= 1.02 * min(price(d) for d in grid)
    alike = Strata(np.array([1.0]), np.array([0.1]), 0.99)  # draws on one input are all the same
    assert allocation(alike, clean=1.0) == pytest.approx([1.0], abs=0.02)
    assert allocation(known, clean=1.0, fewest=1.0).min() == 1.0


def test_strata_find_the_chances_and_how_alike_draws_are():
    generator = torch.Generator().manual_seed(0)
    own = rare(20_000)
    tries = torch.full((20_000,), 4.0, dtype=torch.float64)
    flips = torch.binomial(tries, own, generator=generator)
    edges = edges_between(margin(own))
    where = torch.bucketize(margin(own), edges, right=True)
    known = strata(where, flips, tries, len(edges) + 1)
    for h in range(len(edges) + 1):
        here = where == h
        assert known.share[h] == pytest.approx(float(here.double().mean()))
        if int(here.sum()) > 50:
            assert known.chance[h] == pytest.approx(float(own[here].mean()), abs=0.06)
    one = strata(torch.zeros_like(where), flips, tries, 1)  # a single stratum: likeness is between the inputs
    p = float(own.mean())
    assert one.alike == pytest.approx(float(own.var()) / (p * (1 - p)), rel=0.1)


@pytest.mark.parametrize("given", [False, True])
def test_it_finds_the_truth_for_fewer_forwards(given):
    own = rare(40_000)
    how = dict(precision=0.1, clean=margin(own) if given else None, seed=1)
    broad, adaptive = (sensitivity(margin, own, Coin(), design=design, **how) for design in ("broad", "adaptive"))
    assert adaptive.stopped == "precision"
    assert adaptive.low <= float(own.mean()) <= adaptive.high
    assert adaptive.design == "adaptive"
    assert broad.forwards > 2 * adaptive.forwards
    assert adaptive.half_width <= 0.1 * adaptive.value


def test_the_same_flips_whatever_the_batch():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    answers = [
        sensitivity(model, cube.points(9), perturb.BitFlip(), budget=3000, batch=batch, design="adaptive", seed=3)
        for batch in (1, 7, 64, "auto")
    ]
    assert len({(a.value, a.low, a.high, a.forwards, a.draws) for a in answers}) == 1
    assert all(torch.equal(a.tally.sums, answers[0].tally.sums) for a in answers)
    assert 0.95 * 3000 < answers[0].forwards <= 3000


@pytest.mark.parametrize("name", [name for name in cube.FUNCTIONS if name != "mean"])  # not true or false
def test_every_function_of_the_cube(name):
    n = 11 if name == "address" else 12 if name == "inner_product" else 10
    f = cube.function(name)
    exact = cube.average_sensitivity(cube.truth_table(f, n)) / n
    estimate = sensitivity(f, cube.points(n), perturb.BitFlip(), budget=20_000, design="adaptive", confidence=0.999)
    assert estimate.low - 1e-12 <= exact <= estimate.high + 1e-12
    assert estimate.forwards <= 20_000


def test_an_interrupt_drops_the_block_that_was_not_finished():
    own, calls = rare(20_000), []

    class Stops(Coin):
        def run(self, model, inputs, noise):
            calls.append(len(inputs))
            if len(calls) == 9:
                raise KeyboardInterrupt
            return super().run(model, inputs, noise)

    estimate = sensitivity(margin, own, Stops(), design="adaptive", precision=0.01, batch=256)
    assert estimate.stopped == "interrupted"
    assert estimate.draws < sum(calls[:-1])  # the ninth call struck inside a block
    assert estimate.n == int((estimate.tally.counts > 0).sum())
    assert estimate.value == pytest.approx(0.02, abs=0.02)


def test_refusals():
    own = rare(3000)
    with pytest.raises(InputError, match="changes that are true or false"):
        sensitivity(
            lambda x: torch.stack([x, -x], 1), own, Soft(), design="adaptive", change=kl_divergence, budget=2000
        )
    with pytest.raises(InputError, match="a shard needs a budget and a fixed design"):
        sensitivity(ones, own, Coin(), design="adaptive", budget=2000, shard=(0, 2))
    with pytest.raises(InputError, match="do not merge"):
        merge([sensitivity(ones, own, Coin(), design="adaptive", budget=2000)] * 2)


class Soft(Coin):
    def run(self, model, inputs, noise):
        return model(inputs + noise.uniform())


def test_clean_outputs_at_hand_are_not_paid_for():
    own = rare(5000)
    for design in ("broad", "paper", "adaptive"):
        paid = sensitivity(margin, own, Coin(), design=design, budget=4000, draws=1)
        given = sensitivity(margin, own, Coin(), design=design, budget=4000, draws=1, clean=margin(own))
        assert given.forwards <= 4000
        assert given.draws > paid.draws
    logits = lambda x: torch.stack([x, 1 - x], 1)  # noqa: E731
    for change in (kl_divergence, label_flip):
        paid, given = (
            sensitivity(logits, own, Soft(), change=change, clean=clean, budget=2000, batch=7)
            for clean in (None, logits(own))
        )
        both = (paid.tally.counts > 0) & (given.tally.counts > 0)
        assert int(both.sum()) == 1000
        assert torch.equal(paid.tally.sums[both], given.tally.sums[both])


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("budget", [300, 900, 1200, 5000])
def test_a_budget_is_kept_and_its_end_adds_no_wild_weights(budget, given):
    values = []
    for seed in range(25):
        own = rare(2000, seed)
        clean = margin(own) if given else None
        estimate = sensitivity(margin, own, Coin(), design="adaptive", budget=budget, seed=seed, clean=clean)
        assert 0.8 * budget < estimate.forwards <= budget
        assert float(estimate.tally.sums.max()) <= 10 * float(estimate.tally.counts.max())  # 1 / the fewest draws
        values.append(estimate.value)
    broad = sensitivity(margin, own, Coin(), budget=budget, seed=1, clean=clean)
    assert torch.tensor(values).std() < 1.3 * (0.02 / broad.draws) ** 0.5
    assert torch.tensor(values).mean() == pytest.approx(0.02, abs=4 * (0.02 / broad.draws / 25) ** 0.5)


@pytest.mark.parametrize("inputs", [2, 20, 255])
def test_few_inputs_are_measured_broadly(inputs):
    half = torch.full((inputs,), 0.5, dtype=torch.float64)
    estimate = sensitivity(ones, half, Coin(), design="adaptive", half_width=0.2, seed=2)
    assert estimate.design == "broad"
    assert "too few inputs" in estimate.notes[0]


def test_all_inputs_alike_are_not_taken_for_exhausted():
    half = torch.full((300,), 0.5, dtype=torch.float64)
    runs = [sensitivity(ones, half, Coin(), design="adaptive", precision=0.05, seed=seed) for seed in range(20)]
    assert [run.stopped for run in runs].count("precision") == 20


@pytest.mark.parametrize(
    "clean", [torch.zeros(5000, 3), -1.0 * torch.ones(5000), torch.ones(4999)], ids=["shape", "other", "count"]
)
def test_clean_outputs_of_another_model_are_refused(clean):
    with pytest.raises(InputError, match="not what the model answers|given 5000 inputs"):
        sensitivity(margin, rare(5000), Coin(), budget=1000, clean=clean)
