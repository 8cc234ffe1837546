"""The transform three ways: the sum that defines it, the textbook passes, the fast products."""

import pytest
import torch
from scipy.linalg import hadamard

from teeter import cube
from teeter.cube import transform
from teeter.errors import InputError


def by_definition(table):
    """f^(S) = E_x f(x) chi_S(x), every sum written out."""
    n = len(table).bit_length() - 1
    x = cube.points(n)
    chi = torch.stack([cube.sparse_parity([i for i in range(n) if s >> i & 1])(x) for s in range(1 << n)])
    return chi @ table / 2**n


def random_table(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("n", range(9))
def test_walsh_is_its_definition(n):
    table = random_table(1 << n)
    torch.testing.assert_close(cube.walsh(table), by_definition(table), rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [10, 11, 17, 19, 20, 21, 22])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fast_products_equal_textbook_passes(n, dtype):
    table = random_table(1 << n, dtype=dtype)
    simple = transform.butterflies_(table.clone(), n)
    fast = transform.kronecker_(table.clone(), n)
    scale = float(simple.abs().max())
    torch.testing.assert_close(fast, simple, rtol=0, atol=16 * torch.finfo(dtype).eps * scale)


def test_hadamard_matrix():
    for width in range(6):
        ours = transform.hadamard(width, torch.float64).int()
        assert ours.tolist() == hadamard(1 << width).tolist()


@pytest.mark.parametrize("n", [3, 5, 7, 12])
def test_stacked_tables_are_transformed_one_by_one(n):
    tables = random_table(2, 3, 1 << n)
    together = cube.walsh(tables)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(together[i, j], cube.walsh(tables[i, j]), rtol=0, atol=1e-14)


def test_in_place_overwrites_and_returns_the_same_memory():
    table = random_table(1 << 8)
    expected = cube.walsh(table)
    kept = table.clone()
    assert torch.equal(table, kept)  # walsh itself copies
    result = cube.walsh_(table)
    assert result.data_ptr() == table.data_ptr()
    assert torch.equal(table, expected)


def test_in_place_refuses_what_it_cannot_overwrite():
    for table in (torch.ones(8, dtype=torch.int64), torch.ones(8, 2).T):
        with pytest.raises(InputError, match="use walsh, which copies"):
            cube.walsh_(table)


def test_inverse():
    table = random_table(4, 1 << 10)
    torch.testing.assert_close(cube.inverse_walsh(cube.walsh(table)), table, rtol=0, atol=1e-13)
    spectrum = random_table(1 << 7)
    torch.testing.assert_close(cube.walsh(cube.inverse_walsh(spectrum)), spectrum, rtol=0, atol=1e-14)


def test_views_that_are_not_contiguous_are_copied():
    table = random_table(1 << 6, 2)
    torch.testing.assert_close(cube.walsh(table.T)[0], cube.walsh(table[:, 0].clone()))


def test_autocast_does_not_reach_the_transform():
    table = random_table(1 << 10, dtype=torch.float32)
    expected = cube.walsh(table)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(cube.walsh(table), expected)
