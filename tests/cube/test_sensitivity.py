"""Exact oracles to the digit, and the fast paths against loops written out."""

import math

import pytest
import torch

from teeter import cube
from teeter.errors import InputError


def naive_local(table):
    """H Eq. 6, one flip at a time."""
    n = len(table).bit_length() - 1
    index = torch.arange(len(table))
    return sum(((table - table[index ^ (1 << i)]) ** 2 for i in range(n)), torch.zeros_like(table)) / 4


def majority_average(n):
    """Edges between the two middle layers, each counted from both ends."""
    return n * math.comb(n - 1, (n - 1) // 2) / 2 ** (n - 1) if n % 2 else n * math.comb(n, n // 2) / 2**n


@pytest.mark.parametrize("n", range(1, 17))
def test_published_closed_forms(n):
    assert cube.average_sensitivity(cube.truth_table(cube.parity, n)) == n
    assert cube.average_sensitivity(cube.truth_table(cube.first, n)) == 1
    assert cube.average_sensitivity(cube.truth_table(cube.majority, n)) == majority_average(n)
    assert cube.average_sensitivity(cube.truth_table(cube.mean, n)) == pytest.approx(1 / n, rel=1e-13)
    for k in range(n + 1):
        assert cube.average_sensitivity(cube.truth_table(cube.sparse_parity(k), n)) == k


def test_other_closed_forms():
    table = cube.truth_table(cube.threshold(1), 8)  # OR: only the all-false input and its neighbours are sensitive
    assert cube.average_sensitivity(table) == 2 * 8 / 2**8
    assert cube.max_sensitivity(table) == 8
    tribes = cube.truth_table(cube.tribes(3), 12)
    pivotal = 2.0**-2 * (1 - 2.0**-3) ** 3  # the rest of my tribe agrees, no other tribe is unanimous
    assert cube.influences(tribes).tolist() == pytest.approx([pivotal] * 12, rel=1e-12)
    address = cube.truth_table(cube.address, 11)
    assert cube.influences(address).tolist() == pytest.approx([1 / 2] * 3 + [1 / 8] * 8, rel=1e-12)
    bent = cube.truth_table(cube.inner_product, 10)
    assert cube.walsh(bent).abs().unique().tolist() == [2.0**-5]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 9, 13, 22])
def test_flip_counts_equal_the_loop(n):
    table = cube.truth_table(cube.random_function(n), n)
    assert torch.equal(cube.flip_counts(table), naive_local(table))
    assert torch.equal(cube.local_sensitivity(table), naive_local(table))
    single = cube.local_sensitivity(table.float())
    assert single.dtype == torch.float32
    assert torch.equal(single.double(), naive_local(table))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 12, 13, 16])
def test_quarter_squares_equal_the_loop(n):
    table = torch.randn(1 << n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    torch.testing.assert_close(cube.local_sensitivity(table), naive_local(table), rtol=1e-12, atol=1e-12)


def test_quarter_squares_do_not_cancel_far_from_zero():
    table = cube.truth_table(cube.mean, 8) + 1e6
    assert cube.average_sensitivity(table) == pytest.approx(1 / 8, rel=1e-8)


@pytest.mark.parametrize("real", [True, False])
def test_stacked_tables(real):
    tables = torch.randn(3, 2, 1 << 11, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    tables = tables if real else tables.sign()
    together = cube.local_sensitivity(tables)
    for i in range(3):
        for j in range(2):
            torch.testing.assert_close(together[i, j], naive_local(tables[i, j]), rtol=1e-12, atol=1e-12)


def test_flips_are_refused_for_other_values():
    with pytest.raises(InputError, match="use local_sensitivity"):
        cube.flip_counts(cube.truth_table(cube.mean, 3))


def test_analysis_holds_the_same_numbers():
    table = cube.truth_table(cube.random_function(5), 11)
    result = cube.analyse(table)
    assert (result.n, result.signed) == (11, True)
    assert torch.equal(result.local, naive_local(table))
    assert torch.equal(result.spectrum, cube.walsh(table))
    assert torch.equal(result.profile, cube.degree_profile(table))
    assert torch.equal(result.influences, cube.influences(table))
    assert result.average_sensitivity == cube.average_sensitivity(table)
    assert result.max_sensitivity == cube.max_sensitivity(table)
    assert result.noise_stability(0.3) == cube.noise_stability(table, 0.3)
    assert result.flip_probability(0.3) == cube.flip_probability(table, 0.3)
    assert result.degree == cube.degree(table)
    assert cube.analyse(cube.truth_table(cube.mean, 5)).flip_probability(0.3) is None


@pytest.mark.slow
def test_twenty_six_bits_in_six_gibibytes():
    import resource

    table = cube.truth_table(cube.random_function(0), 26)
    result = cube.analyse(table)
    assert float(result.profile.sum()) == pytest.approx(1, abs=1e-12)
    assert float((result.profile * torch.arange(27)).sum()) == pytest.approx(result.average_sensitivity, abs=1e-9)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < 6 * 2**30
