"""Bits, sums modulo p and sparse parities: pure functions of seed, step and row."""

import pytest
import torch

from teeter import counter, cube
from teeter.data import SparseParity, bit_strings, labelled_bits, modular_addition
from teeter.errors import InputError, UnknownName


def test_bits_against_a_loop():
    strings = bit_strings(70, 5, seed=3, step=2, start=7)
    assert strings.dtype == torch.float32
    for row in range(5):
        for bit in range(70):
            word = int(counter.bits(3, 2, torch.tensor(7 + row), torch.tensor(bit // 64)))
            assert strings[row, bit] == (-1 if word >> (bit % 64) & 1 else 1)


def test_a_row_does_not_depend_on_the_batch():
    whole = bit_strings(20, 1000, seed=0, step=5)
    parts = [bit_strings(20, 250, seed=0, step=5, start=start) for start in range(0, 1000, 250)]
    assert torch.equal(torch.cat(parts), whole)
    for other in ({"seed": 1, "step": 5}, {"seed": 0, "step": 6}):
        assert not torch.equal(bit_strings(20, 1000, **other), whole)
    assert bit_strings(20, 0, seed=0).shape == (0, 20)


def test_bits_are_uniform_and_independent():
    x = bit_strings(66, 40_000, seed=0, dtype=torch.float64)
    deviation = 40_000**-0.5
    assert float(x.mean(0).abs().max()) < 4.5 * deviation
    products = (x.T @ x / len(x)).fill_diagonal_(0)  # 2,145 pairs of bits
    assert float(products.abs().max()) < 5 * deviation
    steps = (x * bit_strings(66, 40_000, seed=0, step=1, dtype=torch.float64)).mean(0)
    assert float(steps.abs().max()) < 4.5 * deviation
    points = (bit_strings(3, 8000, seed=1) < 0).long() @ torch.tensor([1, 2, 4])
    assert float((points.bincount() - 1000).abs().max()) < 4.5 * (8000 * 7 / 64) ** 0.5


@pytest.mark.parametrize("name", ["parity", "majority", "first", "mean", "sparse-parity"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8])
def test_labels_are_the_function_s(name, dtype):
    f = cube.function(name)
    x, y = labelled_bits(f, 9, 200, seed=0, step=3, start=11, dtype=dtype)
    assert x.dtype == dtype
    assert torch.equal(x, bit_strings(9, 200, seed=0, step=3, start=11, dtype=dtype))
    assert torch.equal(y, f(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bit_strings(0, 3, seed=0), "n = 0, 3"),
        (lambda: bit_strings(3, -1, seed=0), "n = 3, -1"),
        (lambda: bit_strings(3, 1, seed=0, dtype=torch.uint8), "which torch.uint8 does not hold"),
        (lambda: bit_strings(3, 1, seed=0, dtype=torch.bool), "which torch.bool does not hold"),
        (lambda: modular_addition(1), "p = 1"),
        (lambda: modular_addition(5, share=0.0), "share = 0.0"),
        (lambda: modular_addition(5, share=1.0), "share = 1.0"),
        (lambda: modular_addition(5, share=0.01), "leaves nothing to train on"),
        (lambda: SparseParity(p=0), "p = 0"),
        (lambda: SparseParity(d=3, p=4), "p = 4, d = 3"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("p", [2, 7, 113])
def test_every_pair_once(p):
    train, test = modular_addition(p)
    assert len(train) == int(0.3 * p * p)
    pairs = torch.cat([train.tokens, test.tokens])
    assert sorted(map(tuple, pairs.tolist())) == [(a, b) for a in range(p) for b in range(p)]
    for part in (train, test):
        assert part.labels.tolist() == [(a + b) % p for a, b in part.tokens.tolist()]


def test_the_split_is_random_and_the_seed_s():
    train, _ = modular_addition(seed=0)
    assert torch.equal(train.tokens, modular_addition(seed=0)[0].tokens)
    assert not torch.equal(train.tokens, modular_addition(seed=1)[0].tokens)
    first = train.tokens[:, 0].bincount(minlength=113).double()
    assert abs(float(first.mean()) - 0.3 * 113) < 0.1
    assert float(first.std()) == pytest.approx((113 * 0.3 * 0.7) ** 0.5, rel=0.3)  # as if each were drawn by itself
    with_sign, _ = modular_addition(seed=0, equals=True)
    assert torch.equal(with_sign.tokens[:, :2], train.tokens)
    assert with_sign.tokens[:, 2].unique().tolist() == [113]
    assert len(modular_addition(10, share=0.29)[0]) == 29


def test_sparse_parity_as_in_the_appendix():
    task = SparseParity()
    assert (task.d, len(task.support)) == (40, 4)
    x, y = task.examples(5000)
    assert torch.equal(y, x[:, list(task.support)].prod(1))
    assert abs(float(y.mean())) < 5 / 5000**0.5
    for i in range(40):  # V's sensitivity: p / d of all flips change the label
        flipped = x[:50].clone()
        flipped[:, i] *= -1
        assert bool((cube.sparse_parity(task.support)(flipped) != y[:50]).all()) == (i in task.support)


def test_parts_of_sparse_parity():
    task = SparseParity(seed=1)
    train, test = (task.examples(1000, part)[0] for part in ("train", "test"))
    assert not {tuple(row) for row in train.tolist()} & {tuple(row) for row in test.tolist()}
    assert torch.equal(task.examples(200, start=300)[0], train[300:500])
    supports = {SparseParity(seed=seed).support for seed in range(20)}
    assert len(supports) > 15
    assert task.support == tuple(sorted(set(task.support)))
    with pytest.raises(UnknownName, match="no part named 'val'"):
        task.examples(3, "val")
