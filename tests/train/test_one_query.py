"""Attention of one query an input: against the definition, one input at a time; the kernels against the plain way."""

import pytest
import torch

from teeter.train.one_query import one_query, plain_one_query

SIZES = [(2, 3, 2, 20, 128), (5, 4, 1, 7, 4), (3, 2, 4, 33, 12), (1, 3, 2, 1, 8), (2, 2, 2, 512, 4)]


def drawn(models, batch, heads, n, dim, device="cpu", dtype=torch.float64):
    torch.manual_seed(0)
    asked, source = torch.randn(models, batch, heads, dim), torch.randn(models, batch, n, dim)
    return asked.to(device, dtype).requires_grad_(), source.to(device, dtype).requires_grad_()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_mean_of_rows_for_every_query(sizes):
    asked, source = drawn(*sizes)
    found = one_query(asked, source)
    assert found.shape == asked.shape
    for k, b, h in ((0, 0, 0), (-1, -1, -1)):
        chances = torch.softmax(source[k, b] @ asked[k, b, h], 0)
        torch.testing.assert_close(found[k, b, h], chances @ source[k, b], rtol=0, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-11), (torch.float32, 3e-4)])
def test_the_kernels_compute_it_and_its_gradients(sizes, dtype, atol):
    from teeter.train.one_query_kernels import fused_one_query

    asked, source = drawn(*sizes, "cuda", dtype)
    onward = torch.randn_like(asked)
    exact = [part.detach().double().requires_grad_() for part in (asked, source)]
    truth = plain_one_query(*exact)
    truths = torch.autograd.grad((truth * onward).sum(), exact)
    with_kernels = one_query(asked, source)
    assert torch.equal(with_kernels, fused_one_query(asked.flatten(0, 1), source.flatten(0, 1)).view_as(asked))
    found = torch.autograd.grad((with_kernels * onward).sum(), (asked, source))
    for mine, true in zip((with_kernels, *found), (truth, *truths), strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=0, atol=atol)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_what_is_too_large_for_a_kernel_takes_the_plain_way():
    asked, source = drawn(1, 2, 2, 300, 128, "cuda")
    torch.testing.assert_close(one_query(asked, source), plain_one_query(asked, source), rtol=0, atol=1e-12)
