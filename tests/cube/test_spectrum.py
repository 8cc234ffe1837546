import pytest
import torch

from teeter import cube
from teeter.cube.spectrum import degree_profile_of
from teeter.errors import InputError


def sizes(n):
    return torch.tensor([s.bit_count() for s in range(1 << n)])


def naive_profile(spectrum):
    n = len(spectrum).bit_length() - 1
    return torch.stack([(spectrum[sizes(n) == k] ** 2).sum() for k in range(n + 1)])


def naive_influences(table):
    n = len(table).bit_length() - 1
    index = torch.arange(len(table))
    return [float(((table - table[index ^ (1 << i)]) ** 2).mean()) / 4 for i in range(n)]


@pytest.mark.parametrize("n", [0, 1, 4, 9, 10, 11, 14])
def test_profile_and_influences_equal_the_loops(n):
    table = torch.randn(1 << n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    torch.testing.assert_close(cube.degree_profile(table), naive_profile(cube.walsh(table)), rtol=1e-12, atol=1e-14)
    assert cube.influences(table).tolist() == pytest.approx(naive_influences(table), rel=1e-11)
    single = cube.degree_profile(table.float())
    assert single.dtype == torch.float64
    torch.testing.assert_close(single, cube.degree_profile(table), rtol=1e-4, atol=1e-6)


def test_stacked_profiles_and_influences():
    tables = torch.randn(2, 3, 1 << 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    profiles, effects = cube.degree_profile(tables), cube.influences(tables)
    assert profiles.shape == (2, 3, 13)
    assert effects.shape == (2, 3, 12)
    torch.testing.assert_close(profiles[1, 2], cube.degree_profile(tables[1, 2]))
    torch.testing.assert_close(effects[1, 2], cube.influences(tables[1, 2]))


@pytest.mark.parametrize(
    ("f", "n", "expected"),
    [
        (cube.parity, 9, 9),
        (cube.sparse_parity(4), 9, 4),
        (cube.sparse_parity(0), 5, 0),
        (cube.first, 6, 1),
        (cube.mean, 7, 1),
        (cube.majority, 7, 7),
        (cube.address, 11, 4),
        (cube.threshold(1), 8, 8),
        (cube.inner_product, 8, 8),
    ],
)
def test_degree(f, n, expected):
    assert cube.degree(cube.truth_table(f, n)) == expected


@pytest.mark.parametrize("n", [3, 5, 7, 12, 16])
def test_degree_of_float32_values(n):
    assert cube.degree(cube.truth_table(cube.mean, n, dtype=torch.float32)) == 1
    torch.manual_seed(0)
    assert cube.degree(cube.truth_table(torch.nn.Linear(n, 1), n)) == 1
    assert cube.degree(cube.truth_table(cube.majority, n, dtype=torch.float32)) == cube.degree(
        cube.truth_table(cube.majority, n)
    )


def test_degree_by_looking_at_every_coefficient():
    for seed in range(40):
        n = 1 + seed % 13
        table = cube.inverse_walsh(
            torch.randn(1 << n, generator=torch.Generator().manual_seed(seed)).double() * (sizes(n) <= seed % (n + 1))
        )
        spectrum = cube.walsh(table)
        assert cube.degree(table) == max(int(sizes(n)[i]) for i in (spectrum.abs() > 1e-9).nonzero().flatten())


def test_no_tables_at_all():
    assert cube.degree_profile(torch.zeros(0, 8)).shape == (0, 4)
    assert cube.influences(torch.zeros(0, 8)).shape == (0, 3)


def test_degree_of_zero_and_with_a_tolerance():
    assert cube.degree(torch.zeros(16)) == 0
    nearly = cube.truth_table(cube.first, 6) + 1e-6 * cube.truth_table(cube.parity, 6)
    assert cube.degree(nearly) == 6
    assert cube.degree(nearly, tolerance=1e-4) == 1


@pytest.mark.parametrize("rho", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_noise_stability_is_the_expectation_over_noisy_copies(rho):
    n = 4
    table = cube.truth_table(cube.random_function(1), n)
    index = torch.arange(1 << n)
    apart = sizes(n).double()[index.unsqueeze(0) ^ index.unsqueeze(1)]
    chance = ((1 - rho) / 2) ** apart * ((1 + rho) / 2) ** (n - apart)
    expected = float(table @ chance @ table) / 2**n
    assert cube.noise_stability(table, rho) == pytest.approx(expected, abs=1e-12)
    assert cube.flip_probability(table, rho) == pytest.approx((1 - expected) / 2, abs=1e-12)


def test_noise_stability_of_known_functions():
    assert cube.noise_stability(cube.truth_table(cube.parity, 5), 0.5) == 0.5**5
    assert cube.noise_stability(cube.truth_table(cube.first, 5), 0.5) == 0.5
    assert cube.noise_stability(cube.truth_table(cube.majority, 3), 0.5) == pytest.approx(0.75 * 0.5 + 0.25 * 0.125)


def test_bad_input():
    with pytest.raises(InputError, match="between -1 and 1, got 1.5"):
        cube.noise_stability(torch.ones(4), 1.5)
    with pytest.raises(InputError, match="use noise_stability"):
        cube.flip_probability(cube.truth_table(cube.mean, 3), 0.5)
    with pytest.raises(InputError, match="NaN"):
        degree_profile_of(torch.tensor([float("nan"), 1.0]))
