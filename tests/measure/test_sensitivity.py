"""Truth, invariance and refusals of the estimator."""

import math

import pytest
import torch
from torch import nn

import teeter
from teeter import cube, perturb
from teeter.errors import InputError, TooLarge
from teeter.measure import kl_divergence, label_flip, logit_distance, merge, quarter_square, sensitivity
from teeter.measure.schedule import Broad, Paper


def ones(x):
    return torch.ones(len(x))


class Coin:
    """Input i is a number: the chance that any nudge flips the answer."""

    def positions(self, inputs):
        return torch.ones(len(inputs), 4, dtype=torch.bool)

    def run(self, model, inputs, noise):
        return 1 - 2 * (noise.uniform() < inputs).float()


@pytest.mark.parametrize("name", cube.FUNCTIONS)
def test_bit_flips_of_every_function_contain_the_exact_value(name):
    n = 11 if name == "address" else 12 if name == "inner_product" else 10
    f = cube.function(name)
    exact = cube.average_sensitivity(cube.truth_table(f, n)) / n
    change = quarter_square if name == "mean" else label_flip
    # Eleven functions, so that all intervals hold together with 98.9 %.
    estimate = sensitivity(f, cube.points(n), perturb.BitFlip(), budget=20_000, change=change, confidence=0.999)
    assert estimate.low - 1e-12 <= exact <= estimate.high + 1e-12
    everything = sensitivity(f, cube.points(n), perturb.BitFlip(), design="paper", draws=1, change=change)
    assert everything.value == pytest.approx(exact, abs=1e-12)


def test_linear_head_under_patch_noise_matches_the_normal_law():
    """A linear two-class head flips with probability Phi(-margin / (sigma ||w_patch||)), exactly."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(20_000, 1, 8, 8, generator=generator)
    weight = torch.randn(64, generator=generator)
    truth = torch.zeros(20_000, 4)
    for token in range(4):
        down, across = token // 2 * 4, token % 2 * 4
        norm = weight.view(8, 8)[down : down + 4, across : across + 4].norm()
        truth[:, token] = torch.special.ndtr(-(images.flatten(1) @ weight).abs() / (0.7 * norm))
    head = lambda x: x.flatten(1) @ torch.stack([weight / 2, -weight / 2], 1)  # noqa: E731
    estimate = sensitivity(head, images, perturb.PatchNoise(4, sigma2=0.49), precision=0.05)
    assert estimate.stopped == "precision"
    assert estimate.half_width <= 0.05 * estimate.value
    assert estimate.low <= float(truth.mean()) <= estimate.high


@pytest.mark.parametrize("design", ["broad", "paper"])
def test_the_same_flips_whatever_the_batch(design):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    x = cube.points(9)
    answers = [
        sensitivity(model, x, perturb.BitFlip(), budget=3000, batch=batch, design=design, seed=3)
        for batch in (1, 7, 64, "auto")
    ]
    assert len({(a.value, a.low, a.high, a.forwards, a.draws) for a in answers}) == 1
    assert all(torch.equal(a.tally.sums, answers[0].tally.sums) for a in answers)
    other = sensitivity(model, x, perturb.BitFlip(), budget=3000, design=design, seed=4)
    assert not torch.equal(other.tally.sums, answers[0].tally.sums)


@pytest.mark.parametrize("design", ["broad", "paper"])
def test_three_shards_merge_to_the_whole(design):
    rates = torch.rand(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    how = dict(budget=5000, design=design, seed=1)
    whole = sensitivity(ones, rates, Coin(), **how)
    parts = [sensitivity(ones, rates, Coin(), shard=(k, 3), **how) for k in range(3)]
    together = merge(parts)
    assert (together.value, together.low, together.high, together.draws) == (
        whole.value,
        whole.low,
        whole.high,
        whole.draws,
    )
    with pytest.raises(InputError, match="at least one shard"):
        merge([])
    with pytest.raises(InputError, match=r"given once, got \(0, 3\), \(1, 3\), \(0, 3\)"):
        merge([parts[0], parts[1], parts[0]])
    with pytest.raises(InputError, match=r"given once, got \(0, 3\), \(0, 1\)"):
        merge([parts[0], whole])
    other = sensitivity(ones, rates[:150], Coin(), shard=(1, 3), **how)
    with pytest.raises(InputError, match="the same inputs, got some of 150 and of 200 inputs"):
        merge([parts[0], other])


def test_every_input_counts_once_however_long_it_is():
    """Two kinds of text: short ones always flip, long ones never; per-input averaging gives one half."""

    class Text:
        def positions(self, inputs):
            there = torch.zeros(len(inputs), 20, dtype=torch.bool)
            there[:, :2] = True
            there[inputs < 0.5] = True
            return there

        def run(self, model, inputs, noise):
            assert bool((noise.token[inputs > 0.5] < 2).all())  # padding is never perturbed
            return 1 - 2 * inputs

    inputs = torch.tensor([0.0, 1.0]).repeat(500)
    for design in ("broad", "paper"):
        estimate = sensitivity(ones, inputs, Text(), budget=30_000, design=design, draws=1)
        assert estimate.value == pytest.approx(0.5, abs=0.02)


def test_stops_where_it_is_told():
    rates = torch.full((50_000,), 0.1, dtype=torch.float64)
    assert sensitivity(ones, rates, Coin(), precision=0.2).stopped == "precision"
    fixed = sensitivity(ones, rates, Coin(), half_width=0.02)
    assert fixed.stopped == "half-width"
    assert fixed.half_width <= 0.02
    spent = sensitivity(ones, rates, Coin(), precision=0.01, budget=1001)
    assert (spent.stopped, spent.forwards) == ("budget", 1000)
    assert sensitivity(ones, rates, Coin(), budget=1e3).forwards == 1000
    default = sensitivity(ones, rates, Coin())
    assert default.half_width <= 0.05 * default.value


def test_when_only_more_inputs_would_help_it_says_so():
    certain = (torch.rand(100, generator=torch.Generator().manual_seed(0)) < 0.3).double()
    estimate = sensitivity(ones, certain, Coin(), precision=0.01)
    assert estimate.stopped == "inputs"
    assert estimate.forwards < 5000


def test_rates_of_zero_and_one_still_have_doubt():
    for rate in (0.0, 1.0):
        estimate = sensitivity(ones, torch.full((300,), rate, dtype=torch.float64), Coin(), budget=500)
        assert estimate.value == rate
        assert 0.01 < estimate.high - estimate.low < 0.03


def test_soft_changes():
    clean, nudged = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    p = math.exp(1) / (1 + math.exp(1))
    assert float(kl_divergence(clean, nudged)) == pytest.approx((2 * p - 1) * 1.0)
    assert float(kl_divergence(torch.tensor([1.0]), torch.tensor([-1.0]))) == pytest.approx((2 * p - 1) * 1.0)
    assert float(kl_divergence(clean, clean)) == 0
    assert float(logit_distance(clean, nudged)) == pytest.approx(math.sqrt(2))
    assert float(quarter_square(torch.tensor([1.0]), torch.tensor([-1.0]))) == 1
    flips = label_flip(torch.tensor([1.0, 0.0, -1.0]), torch.tensor([2.0, 1.0, -1.0]))
    assert flips.tolist() == [False, True, False]
    soft = sensitivity(cube.mean, cube.points(8), perturb.BitFlip(), change=logit_distance, budget=2000)
    assert soft.value == pytest.approx(2 / 8)


def test_an_interrupt_returns_what_there_is():
    def stop(result):
        if result.draws > 500:
            raise KeyboardInterrupt

    estimate = sensitivity(ones, torch.full((9000,), 0.2, dtype=torch.float64), Coin(), precision=0.001, progress=stop)
    assert estimate.stopped == "interrupted"
    assert 500 < estimate.draws < 2000


@pytest.mark.parametrize("design", ["broad", "adaptive", "paper"])
def test_an_interrupt_before_there_is_anything_is_one(design):
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sensitivity(stop, cube.points(9), perturb.BitFlip(), design=design)


def test_memory_that_runs_out_halves_the_batch_and_not_the_answer():
    rates = torch.rand(300, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    class Small(Coin):
        most = 20

        def run(self, model, inputs, noise):
            if len(inputs) > 2 * self.most:
                torch.empty(1 << 60, dtype=torch.uint8)  # how a CPU says it
            if len(inputs) > self.most:
                raise torch.OutOfMemoryError("too many")
            return super().run(model, inputs, noise)

    plain = sensitivity(ones, rates, Coin(), budget=1000)
    tight = sensitivity(ones, rates, Small(), budget=1000)
    assert (plain.value, plain.low, plain.high) == (tight.value, tight.low, tight.high)
    Small.most = 0
    with pytest.raises(TooLarge, match="batch of one input"):
        sensitivity(ones, rates, Small(), budget=1000)


def test_notes_when_all_answers_are_one_class():
    model = lambda x: torch.stack([x[:, 0] * 0 + 1, x[:, 0] * 0], 1)  # noqa: E731
    assert sensitivity(model, cube.points(6), perturb.BitFlip(), budget=200).notes == (
        "every clean answer is the same class",
    )
    assert sensitivity(cube.parity, cube.points(6), perturb.BitFlip(), budget=200).notes == ()


@pytest.mark.parametrize("column", [False, True])
def test_notes_when_all_scalars_have_one_sign(column):
    def notes(f, **how):
        model = (lambda x: f(x).unsqueeze(-1)) if column else f
        return sensitivity(model, cube.points(6), perturb.BitFlip(), budget=200, **how).notes

    assert "every clean output lies in [0, 1]" in notes(lambda x: x.sum(-1).sigmoid())[0]
    for f in (lambda x: x.sum(-1) + 50, lambda x: x.sum(-1) - 50, lambda x: x.sum(-1) / 100 - 0.5):
        assert notes(f)[0].startswith("every clean output has the same sign")
    assert notes(lambda x: x.sum(-1).sigmoid() - 0.6) == ()
    assert notes(lambda x: x.sum(-1).sigmoid(), change=logit_distance) == ()  # where a sign means nothing


@pytest.mark.parametrize("design", ["broad", "paper"])
def test_notes_when_inputs_have_no_token(design):
    text = torch.tensor([[1, 2], [0, 0], [3, 1], [2, 0]])
    found = sensitivity(lambda t: 2.0 * t[:, 0] - 3, text, perturb.TokenReplace(5, skip=(0,)), design=design, budget=50)
    assert (found.n, found.notes) == (3, ("1 of 4 inputs have no token to perturb and do not count",))


def test_schedules_try_what_they_say():
    positions = torch.rand(40, 6, generator=torch.Generator().manual_seed(0)) < 0.5
    positions[3] = False
    broad = Broad(positions, 0)
    first = broad.triples(0, 39)
    assert sorted(first.input.tolist()) == [i for i in range(40) if i != 3]
    many = broad.triples(0, 39 * 50)
    assert bool(positions[many.input, many.token].all())
    assert many.draw.tolist() == [r for r in range(50) for _ in range(39)]
    later = broad.triples(100, 200)
    assert torch.equal(later.input, many.input[100:200])
    assert torch.equal(later.token, many.token[100:200])
    assert (broad.limit(78), broad.limit(100), broad.limit(100, clean=False)) == (39, 61, 100)
    paper = Paper(positions, 0, subset=None, draws=2)
    every = paper.triples(0, paper.total)
    seen = {(i, t, d) for i, t, d in zip(every.input.tolist(), every.token.tolist(), every.draw.tolist(), strict=True)}
    assert seen == {(int(i), int(t), d) for i, t in positions.nonzero() for d in range(2)}
    assert len(seen) == paper.total
    fits = paper.limit(30)
    assert fits + int((paper.ends <= fits).sum()) <= 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(inputs=torch.ones(0, 5)), "at least one input"),
        (dict(inputs=cube.points(3)[:1]), "at least two inputs"),
        (dict(model=lambda x: x.unsqueeze(0)), "given \\d+ inputs returns"),
        (dict(model=lambda x: "yes"), "logits or a scalar for each input, got str"),
        (dict(model=lambda x: x[:, 0] / 0), "NaN or infinity"),
        (dict(model=nn.Sequential(nn.Linear(5, 2), nn.Dropout()).double()), "training mode and has Dropout"),
        (dict(precision=0.0), "precision is positive"),
        (dict(half_width=-1.0), "half_width is positive"),
        (dict(budget=1), "at least 4 forwards"),
        (dict(budget=float("nan")), "at least 4 forwards, .* got nan"),
        (dict(budget=10.5), "a whole number, got 10.5"),
        (dict(model=lambda x: (x[:, 0], x)), r"got tuple: wrap it, for instance in lambda x: model\(x\)\[0\]"),
        (dict(model=lambda x: {"scores": x}), r"got dict: wrap it, for instance in lambda x: model\(x\)\['scores'\]"),
        (dict(change=lambda a, b: a * torch.nan), "the change returned NaN"),
        (dict(change=lambda a, b: 1.0), "one value for each of \\d+ inputs, got float"),
        (dict(confidence=1.5), "confidence lies in"),
        (
            dict(inputs=cube.points(5)[:1], budget=None),
            "at least two inputs",
        ),  # at once, not after two million forwards
        (dict(design="deep"), "'broad', 'adaptive' or 'paper', got 'deep'"),
        (dict(design="paper", draws=0), "draws is at least 1"),
        (dict(design="paper", subset=99), "between 1 and 32 inputs, got 99"),
        (dict(design="paper", budget=5), "does not cover one input"),
        (dict(batch=0), "batch is 'auto' or a size"),
        (dict(shard=(3, 3)), "shard is \\(k, of\\)"),
        (dict(shard=(0, 3), budget=None), "a shard needs a budget"),
        (dict(model=nn.LSTM(5, 2, 2, dropout=0.5)), "training mode and has LSTM"),
        (dict(change=lambda a, b: (a - b).sum()), "one value for each of"),
    ],
)
def test_bad_input(change, message):
    given = dict(model=cube.parity, inputs=cube.points(5), perturbation=perturb.BitFlip())
    with pytest.raises(InputError, match=message):
        sensitivity(**{"budget": 100, **given, **change})


def test_no_token_to_perturb():
    text = torch.zeros(4, 3, dtype=torch.long)
    for design in ("broad", "paper"):
        with pytest.raises(InputError, match="no input has a token"):
            sensitivity(lambda t: t[:, 0], text, perturb.TokenReplace(5, skip=(0,)), budget=50, design=design)


def test_it_is_the_public_name():
    assert teeter.sensitivity is sensitivity


def test_quarter_squares_of_signs_have_the_interval_of_a_rate():
    rates = torch.full((3000,), 0.002, dtype=torch.float64)
    flips = sensitivity(ones, rates, Coin(), budget=600)
    squares = sensitivity(ones, rates, Coin(), budget=600, change=quarter_square)
    assert (squares.value, squares.low, squares.high) == (flips.value, flips.low, flips.high)
    assert squares.high > squares.value


def test_a_shard_of_the_paper_design_is_whole_inputs():
    """Only token 0 flips: a shard that took every fourth triple would see nothing but token 0, or never."""

    class First(Coin):
        def run(self, model, inputs, noise):
            return torch.where(noise.token == 0, -1.0, 1.0)

    parts = [
        sensitivity(ones, torch.ones(40), First(), design="paper", draws=1, shard=(k, 4), budget=10_000)
        for k in range(4)
    ]
    assert [part.value for part in parts] == [0.25] * 4
    assert merge(parts).value == 0.25
    short = sensitivity(ones, torch.ones(40), First(), design="paper", draws=1, budget=50)
    assert short.stopped == "budget"
    assert merge(parts).stopped == parts[0].stopped == "design"


def test_few_inputs_can_reach_a_precision_too():
    estimate = sensitivity(ones, torch.full((25,), 0.5, dtype=torch.float64), Coin(), precision=0.05)
    assert estimate.stopped in ("precision", "inputs")
    assert estimate.forwards < 100_000
