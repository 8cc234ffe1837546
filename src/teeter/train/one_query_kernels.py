"""`one_query` on a GPU: an operator that torch differentiates and compiles around, by two Triton kernels.

Imported only where Triton is. A program takes one input: its vectors (n, dim), padded to powers of two, and its queries
one after the other.
"""

# Triton's language has only the looks of Python, and torch comes with Triton on some machines alone.
# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["fused_one_query"]


@triton.jit
def _chances(source, query, is_row):  # type: ignore[no-untyped-def]
    scores = tl.where(is_row, tl.sum(source * query[None, :], 1), -float("inf"))
    weights = tl.exp(scores - tl.max(scores, 0))
    return weights / tl.sum(weights, 0)


@triton.jit
def _forward(asked, sources, seen, n, dim, HEADS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64)
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    is_row, is_column = row < n, column < dim
    at = place * n * dim + row[:, None] * dim + column[None, :]
    source = tl.load(sources + at, mask=is_row[:, None] & is_column[None, :], other=0.0)
    for head in tl.static_range(HEADS):
        here = (place * HEADS + head) * dim + column
        query = tl.load(asked + here, mask=is_column, other=0.0)
        chances = _chances(source, query, is_row)
        tl.store(seen + here, tl.sum(chances[:, None] * source, 0), mask=is_column)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    asked, sources, onward, to_asked, to_sources, n, dim, HEADS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    place = tl.program_id(0).to(tl.int64)
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    is_row, is_column = row < n, column < dim
    is_there = is_row[:, None] & is_column[None, :]
    at = place * n * dim + row[:, None] * dim + column[None, :]
    source = tl.load(sources + at, mask=is_there, other=0.0)
    total = tl.zeros_like(source)
    for head in tl.static_range(HEADS):
        here = (place * HEADS + head) * dim + column
        query = tl.load(asked + here, mask=is_column, other=0.0)
        gradient = tl.load(onward + here, mask=is_column, other=0.0)
        chances = _chances(source, query, is_row)
        to_chances = tl.sum(source * gradient[None, :], 1)
        to_scores = chances * (to_chances - tl.sum(chances * to_chances, 0))
        total += chances[:, None] * gradient[None, :] + to_scores[:, None] * query[None, :]
        tl.store(to_asked + here, tl.sum(to_scores[:, None] * source, 0), mask=is_column)
    tl.store(to_sources + at, total, mask=is_there)


def _sizes(asked: Tensor, source: Tensor) -> dict[str, int]:
    n, dim = source.shape[1:]
    rows, columns = triton.next_power_of_2(n), triton.next_power_of_2(dim)
    warps = min(max(rows * columns // 1024, 1), 8)
    return {"n": n, "dim": dim, "HEADS": asked.shape[1], "ROWS": rows, "COLUMNS": columns, "num_warps": warps}


@torch.library.custom_op("teeter::one_query", mutates_args=())
def fused_one_query(asked: Tensor, source: Tensor) -> Tensor:
    """`one_query` of (inputs, heads, dim) and (inputs, n, dim)."""
    asked, source = asked.contiguous(), source.contiguous()
    seen = torch.empty_like(asked)
    _forward[(len(source),)](asked, source, seen, **_sizes(asked, source))
    return seen


@torch.library.custom_op("teeter::one_query_gradients", mutates_args=())
def _gradients(asked: Tensor, source: Tensor, onward: Tensor) -> tuple[Tensor, Tensor]:
    asked, source, onward = asked.contiguous(), source.contiguous(), onward.contiguous()
    to_asked, to_source = torch.empty_like(asked), torch.empty_like(source)
    _backward[(len(source),)](asked, source, onward, to_asked, to_source, **_sizes(asked, source))
    return to_asked, to_source


@fused_one_query.register_fake
def _(asked: Tensor, source: Tensor) -> Tensor:
    return asked.new_empty(asked.shape)


@_gradients.register_fake
def _(asked: Tensor, source: Tensor, onward: Tensor) -> tuple[Tensor, Tensor]:
    return asked.new_empty(asked.shape), source.new_empty(source.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _back(ctx: Any, onward: Tensor) -> tuple[Tensor, Tensor]:
    return _gradients(*ctx.saved_tensors, onward)


fused_one_query.register_autograd(_back, setup_context=_keep)
