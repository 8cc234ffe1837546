"""Every named function against its definition written out input by input."""

import itertools
import math

import pytest
import torch

from teeter import cube
from teeter.errors import InputError, UnknownName


def inputs(n):
    return [tuple(row) for row in cube.points(n, dtype=torch.int64).tolist()]


def table_of(definition, n):
    return torch.tensor([float(definition(x)) for x in inputs(n)], dtype=torch.float64)


DEFINITIONS = {
    "parity": (6, cube.parity, math.prod),
    "sparse_parity": (6, cube.sparse_parity([1, 4]), lambda x: x[1] * x[4]),
    "majority_odd": (5, cube.majority, lambda x: 1 if sum(v == 1 for v in x) > 2.5 else -1),
    "majority_even": (6, cube.majority, lambda x: 1 if sum(v == 1 for v in x) > 3 else -1),
    "first": (4, cube.first, lambda x: x[0]),
    "mean": (5, cube.mean, lambda x: sum(x) / 5),
    "dictator": (4, cube.dictator(2), lambda x: x[2]),
    "threshold": (5, cube.threshold(2), lambda x: -1 if x.count(-1) >= 2 else 1),
    "tribes": (
        6,
        cube.tribes(3),
        lambda x: -1 if set(x[:3]) == {-1} or set(x[3:]) == {-1} else 1,
    ),
    "address": (6, cube.address, lambda x: x[2 + (x[0] == -1) + 2 * (x[1] == -1)]),
    "inner_product": (
        6,
        cube.inner_product,
        lambda x: (-1) ** sum(x[i] == -1 and x[i + 3] == -1 for i in range(3)),
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_function_follows_its_definition(name):
    n, f, definition = DEFINITIONS[name]
    assert torch.equal(cube.truth_table(f, n), table_of(definition, n))


def test_points_count_in_binary_with_minus_one_for_a_set_bit():
    for index, x in enumerate(inputs(4)):
        assert index == sum(2**i for i, v in enumerate(x) if v == -1)
    assert sorted(inputs(3)) == sorted(itertools.product([-1, 1], repeat=3))


def test_functions_keep_leading_axes_and_type():
    x = cube.points(6, dtype=torch.float32).view(4, 16, 6)
    for name in cube.FUNCTIONS:
        value = cube.function(name)(x)
        assert value.shape == (4, 16), name
        assert value.dtype == torch.float32, name


def test_random_function_depends_on_seed_and_length_and_nothing_else():
    f = cube.random_function(3)
    table = cube.truth_table(f, 12)
    order = torch.randperm(4096, generator=torch.Generator().manual_seed(0))
    assert torch.equal(f(cube.points(12)[order]), table[order])
    assert torch.equal(cube.truth_table(f, 12, chunk=7), table)
    assert not torch.equal(cube.truth_table(cube.random_function(4), 12), table)
    # A fair coin: 4096 tosses stay within five standard deviations, as do neighbouring seeds' agreements.
    assert abs(float(table.sum())) < 5 * 64
    assert abs(float((table * cube.truth_table(cube.random_function(4), 12)).sum())) < 5 * 64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cube.truth_table(cube.address, 5), "k \\+ 2\\^k bits, got n = 5"),
        (lambda: cube.truth_table(cube.inner_product, 5), "even number of bits, got n = 5"),
        (lambda: cube.truth_table(cube.tribes(2), 5), "do not divide n = 5"),
        (lambda: cube.truth_table(cube.dictator(5), 5), "bit 5 does not exist among n = 5"),
        (lambda: cube.truth_table(cube.first, 0), "bit 0 does not exist among n = 0"),
        (lambda: cube.tribes(0), "width of at least 1"),
        (lambda: cube.sparse_parity(-1), "k >= 0"),
        (lambda: cube.sparse_parity([1, 1]), "each bit once"),
        (lambda: cube.random_function(0)(torch.ones(1, 53)), "at most 52 bits"),
    ],
)
def test_bad_parameters_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_unknown_function_suggests_the_nearest():
    for name in ("majorty", "MAJORTY"):
        with pytest.raises(UnknownName, match="did you mean 'majority'"):
            cube.function(name)
    with pytest.raises(InputError, match="majority takes no k; sparse_parity"):
        cube.function("majority", k=3)
    assert cube.function("Sparse-Parity", k=2)(torch.tensor([-1.0, -1.0, -1.0])) == 1
