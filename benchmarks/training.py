"""Claims about training many small models: H's encoder (2 layers, 2 heads, AdamW, batch 1024) on PARITY.

On one H200 (n = 20, dimension 128), in model-steps a second, against the loop most would write (nn.TransformerEncoder,
an .item() a step):
- a stack of 64, compiled, is at least 20x faster in float32 than that loop in float32, and in tf32 than it in float32,
- a stack of one, not compiled, is at least 1.5x faster in float32.
- loss, sharpness (10 draws), blow-up and norm on 256 inputs every 100 steps take a stack of 64, compiled, in float32 at
  most 0.10 of the time it trains (measuring_share; on 1,000 inputs, and on the CPU, with a stack of 16, without claim).
On 2 CPU cores (n = 10, dimension 32), not compiled: a stack of 16 is at least 2x faster in float32.

Both sides run here, in one process, after a warm-up; ours draws its batches as well, as the loop does, and takes them
through what `train_stack` does at every step. The loop runs in the arithmetic of each stack, as it is and compiled
(torch.compile of its model; with --quick in float32 and on a GPU alone). stacked_tf32_over_loop_tf32 has tf32 on both
sides, stacked_tf32_over_loop_float32 the loop in float32, as torch is by default; a name that ends in _compiled has the
loop compiled, one without an arithmetic has float32 on both sides. In a name that has _one_by_one the models of a stack
are measured one after the other, as by any function of a model.
"limits" are the shares of a step that its multiplications and its bytes would take if nothing else took any time, by
the maker's figures for an H200 (67, 495 and 990 dense TFLOP/s in float32, tf32 and bf16; 4.8 TB/s).
Measured 2026-11-15 on 2 CPU cores, torch 2.13, three trials (benchmarks/results/): 3.2x the eager loop, 3.6x the
compiled one. The same day on one H200, torch 2.11, three trials: 23x in float32, 39x in tf32, 49x in bf16 (against the
compiled loop 19x, 32x and 40x); a stack of one 4.6x; measuring_share 0.06. The loop waits for its host's processor: it
took 6.6 ms here, 5.8 ms on another host, where the ratios were 20x, 33x and 43x, and 7.6 ms on a third.

    python benchmarks/training.py [--quick] [--json] [--trials N] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from teeter import cube
from teeter.measure.arithmetic import computing_in
from teeter.models import Encoder
from teeter.runs import provenance
from teeter.train import Measure, Recipe, bit_streams, measures
from teeter.train.interrupts import Interrupts
from teeter.train.stack_run import StackRun

CLAIMS = {  # at least
    "stacked_over_loop": 20,
    "stacked_tf32_over_loop_float32": 20,
    "stacked_over_loop_alone": 1.5,
    "stacked_over_loop_cpu": 2,
}
AT_MOST = {"measuring_share": 0.10}
FLOPS, BYTES = {"float32": 67e12, "tf32": 495e12, "bf16": 990e12}, 4.8e12
SIZE = {"float32": 4, "tf32": 4, "bf16": 2}  # bytes that a number is kept in
Way = tuple[str, bool]  # an arithmetic, and whether compiled


@dataclass(frozen=True)
class Setting:
    """What is trained, and how often it is timed."""

    n: int
    dim: int
    device: torch.device
    calls: int
    trials: int
    batch: int = 1024
    heads: int = 2


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def named(way: Way) -> str:
    return f"{way[0]}{' compiled' if way[1] else ''}"


class Usual(nn.Module):
    """The encoder as most would write it."""

    def __init__(self, n: int, dim: int, heads: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(2, dim), nn.Embedding(n, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, dim, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        return self.head(self.layers(self.token(bits) + self.position.weight)[:, -1]).squeeze(-1)


def seconds_a_call(work: Callable[[], Any], calls: int, trials: int, device: torch.device) -> float:
    """The median over trials of the mean over calls."""
    times = []
    for _ in range(trials):
        _wait(device)
        start = time.perf_counter()
        for _ in range(calls):
            work()
        _wait(device)
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def plain_loop(setting: Setting, way: Way) -> Callable[[], Any]:
    arithmetic, compile = way
    device = setting.device
    model = Usual(setting.n, setting.dim, setting.heads).to(device)
    forward = torch.compile(model, dynamic=False) if compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)

    def step() -> float:
        bits = torch.randint(0, 2, (setting.batch, setting.n), device=device)
        optimizer.zero_grad()
        with computing_in(arithmetic, device):
            loss = nn.functional.mse_loss(forward(bits), 1.0 - 2.0 * (bits.sum(1) % 2))
            with torch.autocast(device.type, enabled=False):
                loss.backward()
        optimizer.step()
        return loss.item()

    return step


def stacked(models: int, setting: Setting, way: Way) -> Callable[[], Any]:
    arithmetic, compile = way
    # The steps of a run are those that are timed and some before them, all without a row.
    recipe = Recipe(steps=setting.calls * setting.trials + 10, batch=setting.batch, arithmetic=arithmetic)
    encoders = [Encoder(length=setting.n, dim=setting.dim, heads=setting.heads) for _ in range(models)]
    run = StackRun(
        models=[encoder.to(setting.device) for encoder in encoders],
        recipes=[recipe] * models,
        measures=[{}] * models,
        every=recipe.steps,
        until=None,
        compile=compile,
    )
    stream = bit_streams(cube.parity, setting.n, setting.batch, range(models), setting.device)
    return lambda: run.advance(*stream(run.step))


def timed(step: Callable[[], Any], setting: Setting) -> tuple[float, float]:
    """Seconds of the first call, in which compilers work, and of one later."""
    first = seconds_a_call(step, 1, 1, setting.device)
    seconds_a_call(step, 2, 1, setting.device)
    return first, seconds_a_call(step, setting.calls, setting.trials, setting.device)


def limits(setting: Setting, arithmetic: str, seconds: float) -> dict[str, float]:
    """Shares of a model-step: its multiplications, and reading and writing what must be kept for the backward pass."""
    n, dim, heads, tokens = setting.n, setting.dim, setting.heads, setting.batch * setting.n
    # 2 d^2 + 2 n d heads multiplications a token (see stacked_encoder), each with an addition, and twice that backward.
    flops = 2 * 3 * tokens * (2 * dim**2 + 2 * n * dim * heads)
    # Four activations of (tokens, dim) and the attention's weights: written, read by the next part, read by the
    # backward pass, their gradients written and read.
    traffic = SIZE[arithmetic] * 5 * tokens * (4 * dim + 2 * n * heads)
    return {"arithmetic": flops / FLOPS[arithmetic] / seconds, "bytes": traffic / BYTES / seconds}


def compare(models: int, setting: Setting, stacks: list[Way], loops: list[Way]) -> dict[str, Any]:
    """Milliseconds a model-step of every way, and how much faster each stack is than each loop."""
    say(f"n {setting.n}, dimension {setting.dim}, a stack of {models}, ms a model-step:")
    rows: dict[str, Any] = {}
    seconds: dict[Way, float] = {}
    for way in loops:
        first, seconds[way] = timed(plain_loop(setting, way), setting)
        row: dict[str, Any] = {"ms": 1e3 * seconds[way], "first_seconds": first}
        rows[f"loop {named(way)}"] = row
        say(f"  loop {named(way)}: {json.dumps(row)}")
    for way in stacks:
        first, together = timed(stacked(models, setting, way), setting)
        each = together / models
        row = {"ms": 1e3 * each, "first_seconds": first}
        row["over_loop"] = {named(loop): seconds[loop] / each for loop in loops}
        if setting.device.type == "cuda":
            row["limits"] = limits(setting, way[0], each)
        rows[f"stack {named(way)}"] = row
        say(f"  stack {named(way)}: {json.dumps(row)}")
    return rows


def cost_of_measuring(models: int, setting: Setting, way: Way) -> dict[str, float]:
    """The time that a row takes over that of 100 steps, measured at once and one by one: the same stack in the same
    run, which has rows of either kind in turn; the median over trials. Fewer steps are timed, and counted as 100."""

    def measured_on(inputs: int) -> dict[str, Measure]:
        x = 1.0 - 2.0 * torch.randint(0, 2, (inputs, setting.n), device=setting.device)
        return {
            "fit": measures.loss(x, cube.parity(x)),
            "sharpness": measures.sharpness(x, draws=10),
            "blowup": measures.blowup(x),
            "norm": measures.parameter_norm(),
        }

    at_once = measured_on(256)
    kinds: dict[str, Mapping[str, Measure]] = {
        "measuring_share": at_once,
        "measuring_share_1000_inputs": measured_on(1000),
        "measuring_share_one_by_one": {name: lambda model, own=own: own(model) for name, own in at_once.items()},
    }
    recipe = Recipe(steps=100 * len(kinds) * (setting.trials + 1), batch=setting.batch, arithmetic=way[0])
    encoders = [Encoder(length=setting.n, dim=setting.dim, heads=setting.heads) for _ in range(models)]
    run = StackRun(
        models=[encoder.to(setting.device) for encoder in encoders],
        recipes=[recipe] * models,
        measures=[at_once] * models,
        every=100,
        until=None,
        compile=way[1],
    )
    stream = bit_streams(cube.parity, setting.n, setting.batch, range(models), setting.device)

    def row(name: str, steps: int) -> float:
        before, run.measures = (run.seconds, run.measuring), [kinds[name]] * models
        for _ in range(steps):
            run.advance(*stream(run.step))
        run.measure(Interrupts())
        training, measuring = 100 / steps * (run.seconds - before[0]), run.measuring - before[1]
        say(f"  {name}: {training:.3g} s a hundred steps, {measuring:.3g} s a row")
        return measuring / training

    say(f"n {setting.n}, dimension {setting.dim}, a stack of {models}, {named(way)}, first to warm up:")
    for name in kinds:
        row(name, 1)
    shares: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(setting.trials):
        for name in kinds:
            shares[name].append(row(name, setting.calls))
    return {name: statistics.median(each) for name, each in shares.items()}


def on_gpu(device: torch.device, quick: bool, trials: int) -> tuple[dict[str, float], dict[str, Any]]:
    setting = Setting(20, 128, device, 10 if quick else 50, trials)
    plain, compiled = ("float32", False), ("float32", True)
    loops = [plain, compiled, ("tf32", False), ("bf16", False)]
    if not quick:
        loops += [("tf32", True), ("bf16", True)]
    many = compare(64, setting, [plain, compiled, ("tf32", True), ("bf16", True)], loops)
    alone = compare(1, setting, [plain, compiled], [plain, compiled])
    over = many["stack float32 compiled"]["over_loop"]
    ratios = {"stacked_over_loop": over["float32"], "stacked_over_loop_compiled": over["float32 compiled"]}
    for fewer in ("tf32", "bf16"):
        for loop, ratio in many[f"stack {fewer} compiled"]["over_loop"].items():
            if loop.split()[0] in (fewer, "float32"):
                ratios[f"stacked_{fewer}_over_loop_{loop.replace(' ', '_')}"] = ratio
    over = alone["stack float32"]["over_loop"]
    ratios |= {"stacked_over_loop_alone": over["float32"], "stacked_over_loop_alone_compiled": over["float32 compiled"]}
    ratios |= cost_of_measuring(64, setting, compiled)
    return ratios, {"n 20, stack of 64": many, "n 20, alone": alone}


def on_cpu(device: torch.device, quick: bool, trials: int) -> tuple[dict[str, float], dict[str, Any]]:
    setting = Setting(10, 32, device, 3 if quick else 10, trials)
    plain, compiled = ("float32", False), ("float32", True)
    loops = [plain] if quick else [plain, compiled]  # to compile takes most of a minute
    rows = compare(16, setting, [plain], loops)
    ratios = {
        f"stacked_over_loop_cpu{loop.removeprefix('float32').replace(' ', '_')}": ratio
        for loop, ratio in rows["stack float32"]["over_loop"].items()
    }
    ratios |= {name + "_cpu": share for name, share in cost_of_measuring(16, setting, plain).items()}
    return ratios, {"n 10, stack of 16": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps: under a minute on 2 cores")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    parser.add_argument("--trials", type=int, default=None, help="times each side is timed")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu, cuda, cuda:1")
    given = parser.parse_args()
    trials = given.trials or (1 if given.quick else 3)
    try:
        device = torch.device(given.device)
    except RuntimeError:
        parser.error(f"no device is named '{given.device}': cpu, or cuda with a number or without")
    if device.type not in ("cpu", "cuda"):
        parser.error(f"there are claims for cpu and cuda, got '{given.device}'")
    if device.type == "cuda":
        if (device.index or 0) >= torch.cuda.device_count():
            parser.error(f"'{given.device}' is not there: torch sees {torch.cuda.device_count()} CUDA devices")
        torch.cuda.set_device(device.index or 0)
    ratios, tables = (on_gpu if device.type == "cuda" else on_cpu)(device, given.quick, trials)
    for name, value in ratios.items():
        bounds = {"at least": CLAIMS, "at most": AT_MOST}
        claim = [f" (claimed: {words} {bound[name]})" for words, bound in bounds.items() if name in bound]
        say(f"{name} {value:.3g}" + "".join(claim))
    if given.json:
        told = {
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            "threads": torch.get_num_threads(),
            "trials": trials,
        }
        print(json.dumps({**ratios, **told, "tables": tables, "provenance": provenance.capture()}, indent=1))


if __name__ == "__main__":
    main()
