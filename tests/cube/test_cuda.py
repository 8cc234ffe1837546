"""The same numbers on a GPU."""

import pytest
import torch

from teeter import counter, cube
from teeter.cube import memory
from teeter.errors import TooLarge

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [0, 1, 7, 18])
def test_same_as_on_the_cpu(n, dtype):
    for table in (cube.truth_table(cube.random_function(n), n, dtype=dtype), torch.randn(1 << n, dtype=dtype)):
        there = table.cuda()
        close = dict(rtol=0, atol=64 * torch.finfo(dtype).eps)
        torch.testing.assert_close(cube.walsh(there).cpu(), cube.walsh(table), **close)
        torch.testing.assert_close(cube.degree_profile(there).cpu(), cube.degree_profile(table), **close)
        torch.testing.assert_close(cube.influences(there).cpu(), cube.influences(table), **close)
        torch.testing.assert_close(
            cube.local_sensitivity(there).cpu(), cube.local_sensitivity(table), rtol=1e-4, atol=1e-5
        )
        assert cube.degree(there) == cube.degree(table)


def test_reduced_precision_products_do_not_reach_the_answer():
    table = cube.truth_table(cube.random_function(0), 18, dtype=torch.float32, device="cuda")
    spectrum, flips = cube.walsh(table), cube.flip_counts(table)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert torch.equal(cube.walsh(table), spectrum)
        assert torch.equal(cube.flip_counts(table), flips)
    finally:
        torch.set_float32_matmul_precision(before)
    assert torch.equal(flips.cpu(), cube.flip_counts(table.cpu()))


def test_a_module_is_evaluated_where_it_lives():
    torch.manual_seed(0)
    net = torch.nn.Linear(6, 1).cuda()
    table = cube.truth_table(net, 6)
    assert table.device.type == "cuda"
    torch.testing.assert_close(table.cpu(), cube.truth_table(net.cpu(), 6), rtol=1e-5, atol=1e-6)


def test_counters_give_the_same_bits():
    index = torch.arange(1000)
    assert torch.equal(counter.bits(3, index.cuda(), index.cuda()).cpu(), counter.bits(3, index, index))


def test_too_large_names_the_device():
    with pytest.raises(TooLarge, match="available on cuda"):
        cube.truth_table(cube.parity, 40, device="cuda")
    assert memory.available("cuda") > 0


def test_twenty_six_bits_in_six_gibibytes():
    torch.cuda.reset_peak_memory_stats()
    result = cube.analyse(cube.truth_table(cube.random_function(0), 26, device="cuda"))
    assert float(result.profile.sum()) == pytest.approx(1, abs=1e-12)
    weighted = float((result.profile.cpu() * torch.arange(27)).sum())
    assert weighted == pytest.approx(result.average_sensitivity, abs=1e-9)
    assert torch.cuda.max_memory_allocated() < 6 * 2**30
