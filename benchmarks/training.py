"""Claims about training many small models: H's encoder (2 layers, 2 heads, AdamW, batch 1024) on PARITY.

On one H200 (n = 20, dimension 128), in model-steps a second:
- a stack of 32 is at least 20x faster than the plain loop most would write (nn.TransformerEncoder, an .item() a step),
- a stack of one at least 1.5x.
On 2 CPU cores (n = 10, dimension 32, a stack of 16): at least 2x.

Both sides run here, in one process, after a warm-up. What the arithmetic is called, it is called for both; the plain
loop is timed in float32 as torch is by default. "limits" are the shares of the step that its multiplications and its
bytes would take if nothing else took any time (67 and 495 dense TFLOP/s in float32 and tf32, 4.8 TB/s, the maker's
figures for an H200).

    python benchmarks/training.py [--quick] [--json] [--trials N] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from teeter import cube
from teeter.models import Encoder
from teeter.runs import provenance
from teeter.train import Recipe, Stack, bit_streams
from teeter.train.stack_step import StackStep, facts_of

LIMITS = {
    "stacked_over_loop": 20,
    "stacked_over_loop_tf32": 20,
    "stacked_over_loop_alone": 1.5,
    "stacked_over_loop_cpu": 2,
}
FLOPS, BYTES = {"float32": 67e12, "tf32": 495e12, "bf16": 990e12}, 4.8e12


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Usual(nn.Module):
    """The encoder as most would write it."""

    def __init__(self, n: int, dim: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(2, dim), nn.Embedding(n, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, dim, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        return self.head(self.layers(self.token(bits) + self.position.weight)[:, -1]).squeeze(-1)


def seconds_a_call(work: Callable[[], Any], calls: int, trials: int, device: str) -> float:
    """The median over trials of the mean over calls."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = []
    for _ in range(trials):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        wait()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


def plain_loop(n: int, dim: int, batch: int, device: str) -> Callable[[], Any]:
    model = Usual(n, dim).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)

    def step() -> float:
        bits = torch.randint(0, 2, (batch, n), device=device)
        loss = nn.functional.mse_loss(model(bits), 1.0 - 2.0 * (bits.sum(1) % 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def stacked(
    models: int, n: int, dim: int, batch: int, device: str, arithmetic: str, compile: bool
) -> Callable[[], Any]:
    recipe = replace(Recipe(), batch=batch, arithmetic=arithmetic)
    stack = Stack([Encoder(length=n, dim=dim).to(device) for _ in range(models)])
    advance = StackStep(stack, recipe, compile)
    stream = bit_streams(cube.parity, n, batch, range(models), device)
    facts = facts_of([recipe] * models, 0, 1, stack.flat)[0]
    number = iter(range(10**9))

    def step() -> None:
        advance(*stream(next(number)), facts)

    return step


def limits(n: int, dim: int, batch: int, arithmetic: str, seconds: float) -> dict[str, float]:
    """Shares of a model-step: its multiplications, and reading and writing what must be kept for the backward pass."""
    tokens = batch * n
    flops = 2 * 3 * tokens * (2 * dim**2 + 2 * n * 2 * dim)
    # Four activations of (tokens, dim), written, read in the forward pass, read in the backward pass, gradients alike.
    traffic = 4 * tokens * dim * (4 * 3 + 4 * 2)
    return {"arithmetic": flops / FLOPS[arithmetic] / seconds, "bytes": traffic / BYTES / seconds}


def compare(
    models: int, n: int, dim: int, batch: int, device: str, ways: list[tuple[str, bool]], calls: int, trials: int
):
    usual = plain_loop(n, dim, batch, device)
    seconds_a_call(usual, 3, 1, device)
    loop = seconds_a_call(usual, calls, trials, device)
    say(f"n {n}, dimension {dim}: plain loop {1e3 * loop:.3f} ms a step")
    rows: dict[str, Any] = {"loop_ms": 1e3 * loop}
    for arithmetic, compile in ways:
        step = stacked(models, n, dim, batch, device, arithmetic, compile)
        first = seconds_a_call(step, 1, 1, device)
        seconds_a_call(step, 2, 1, device)
        each = seconds_a_call(step, calls, trials, device) / models
        row = {"ms": 1e3 * each, "over_loop": loop / each, "first_seconds": first}
        if device == "cuda":
            row |= {"limits": limits(n, dim, batch, arithmetic, each)}
        rows[f"{arithmetic}{' compiled' if compile else ''}"] = row
        say(f"  stack of {models}, {arithmetic}{', compiled' if compile else ''}: {json.dumps(row)}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps: under a minute on 2 cores")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    parser.add_argument("--trials", type=int, default=None, help="times each side is timed")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    trials = given.trials or (1 if given.quick else 3)
    ratios: dict[str, float] = {}
    tables: dict[str, Any] = {}
    if given.device == "cuda":
        ways = [("float32", False), ("float32", True), ("tf32", True), ("bf16", True)]
        calls = 10 if given.quick else 50
        tables["n 20, stack of 32"] = rows = compare(32, 20, 128, 1024, "cuda", ways, calls, trials)
        ratios["stacked_over_loop"] = rows["float32 compiled"]["over_loop"]
        ratios["stacked_over_loop_tf32"] = rows["tf32 compiled"]["over_loop"]
        tables["n 20, alone"] = rows = compare(1, 20, 128, 1024, "cuda", ways[:2], calls, trials)
        ratios["stacked_over_loop_alone"] = rows["float32"]["over_loop"]
    else:
        calls = 3 if given.quick else 10
        tables["n 10, stack of 16"] = rows = compare(16, 10, 32, 1024, "cpu", [("float32", False)], calls, trials)
        ratios["stacked_over_loop_cpu"] = rows["float32"]["over_loop"]
    for name, value in ratios.items():
        say(f"{name} {value:.3g} (claimed: at least {LIMITS[name]})")
    if given.json:
        told = {
            "device": torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
            "threads": torch.get_num_threads(),
        }
        print(
            json.dumps(
                {**ratios, **told, "trials": trials, "tables": tables, "provenance": provenance.capture()}, indent=1
            )
        )


if __name__ == "__main__":
    main()
