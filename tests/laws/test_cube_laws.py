"""Theorems that hold for every function, tried on many."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from teeter import cube

quick = settings(max_examples=60, deadline=None)
sizes = st.integers(0, 12)
seeds = st.integers(0, 2**63 - 1)


def real_table(n, seed):
    return torch.randn(1 << n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def signed_table(n, seed):
    return cube.truth_table(cube.random_function(seed), n)


kinds = st.sampled_from([real_table, signed_table])


@quick
@given(kinds, sizes, seeds)
def test_parseval(kind, n, seed):
    table = kind(n, seed)
    power = float(table.square().mean())
    assert float(cube.walsh(table).square().sum()) == pytest.approx(power, abs=1e-9)
    assert float(cube.degree_profile(table).sum()) == pytest.approx(power, abs=1e-9)


@quick
@given(kinds, sizes, seeds)
def test_total_influence_three_ways(kind, n, seed):
    table = kind(n, seed)
    by_flips = cube.average_sensitivity(table)
    by_influences = float(cube.influences(table).sum())
    by_degrees = float((cube.degree_profile(table) * torch.arange(n + 1)).sum())
    assert by_influences == pytest.approx(by_flips, abs=1e-9)
    assert by_degrees == pytest.approx(by_flips, abs=1e-9)


@quick
@given(kinds, st.integers(1, 10), seeds, st.data())
def test_permuting_inputs_changes_nothing_but_the_order_of_influences(kind, n, seed, data):
    table = kind(n, seed)
    order = data.draw(st.permutations(range(n)))
    index = torch.arange(1 << n)
    moved = sum(((index >> i) & 1) << order[i] for i in range(n))  # old bit i becomes bit order[i]
    permuted = torch.empty_like(table)
    permuted[moved] = table
    assert cube.average_sensitivity(permuted) == pytest.approx(cube.average_sensitivity(table), abs=1e-9)
    assert cube.max_sensitivity(permuted) == pytest.approx(cube.max_sensitivity(table), abs=1e-9)
    torch.testing.assert_close(cube.degree_profile(permuted), cube.degree_profile(table), rtol=0, atol=1e-9)
    torch.testing.assert_close(
        cube.influences(permuted)[torch.tensor(order)], cube.influences(table), rtol=0, atol=1e-9
    )


@quick
@given(kinds, st.integers(1, 10), seeds, st.data())
def test_negating_inputs_changes_only_signs_of_coefficients(kind, n, seed, data):
    table = kind(n, seed)
    mask = data.draw(st.integers(0, 2**n - 1))
    negated = table[torch.arange(1 << n) ^ mask]
    torch.testing.assert_close(cube.walsh(negated).abs(), cube.walsh(table).abs(), rtol=0, atol=1e-9)
    assert cube.average_sensitivity(negated) == pytest.approx(cube.average_sensitivity(table), abs=1e-9)
    torch.testing.assert_close(cube.influences(negated), cube.influences(table), rtol=0, atol=1e-9)


def sparse_functions(n, count, seed):
    """Random tables of every bias, where low sensitivity is not rare: threshold a random low-degree polynomial."""
    generator = torch.Generator().manual_seed(seed)
    spectra = torch.randn(count, 1 << n, generator=generator, dtype=torch.float64)
    weight = torch.tensor([s.bit_count() for s in range(1 << n)])
    cut = torch.randint(0, n + 1, (count, 1), generator=generator)
    tables = cube.inverse_walsh(spectra * (weight <= cut))
    return torch.where(tables > torch.randn(count, 1, generator=generator, dtype=torch.float64), 1.0, -1.0).double()


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_huang_degree_is_at_most_sensitivity_squared(n):
    """Huang (2019): deg(f) <= s(f)^2 for every Boolean function, on 4,000 of them."""
    uniform = torch.randint(0, 2, (500, 1 << n), generator=torch.Generator().manual_seed(n)).double() * 2 - 1
    tables = torch.cat([uniform, sparse_functions(n, 500, n)])
    sensitivities = cube.flip_counts(tables).amax(-1)
    degrees = torch.tensor([cube.degree(table) for table in tables])
    assert bool((degrees <= sensitivities**2).all())
    assert len(degrees.unique()) > 1  # the law was tried on more than one degree


def test_huang_is_tight_for_and_of_ors():
    """OR of ANDs on k^2 bits: degree k^2, sensitivity k."""
    for k in (1, 2, 3):
        table = cube.truth_table(cube.tribes(k), k * k)
        assert cube.degree(table) == k * k
        assert cube.max_sensitivity(table) == k
