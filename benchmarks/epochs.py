"""Claims about training one vision model: CIFAR-10, batch 100, SGD, on one H200.

An epoch (500 steps) of ViT-small and of ResNet-18 takes `train`, compiled (and so recorded as one CUDA graph)
in bf16, at most a third of the time of the loop that most would write, which runs eagerly in what
torch computes in by default (float32, and tf32 within convolutions).

Both sides run here, in one process, each in steps of its own after a warm-up that compilers have for themselves; both
have all images on the GPU already, which spares the usual loop its loader. The images are the 10,000 of the test set,
five times over: what is learned is of no matter here. Other ways of ours stand beside, and the mean loss of the steps
timed, so that it can be seen that all learn alike.

Measured 2026-11-15 on one H200, torch 2.11 (benchmarks/results/): ViT-small 3.9x, ResNet-18 3.7x.
On a CPU there is no claim: some steps of small batches, not compiled, show that it runs.

    python benchmarks/epochs.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from teeter import data
from teeter.models import MODELS, wide_attention
from teeter.runs import provenance
from teeter.train import Recipe, shuffled, train

CLAIMS = {"vit_small_over_eager": 3, "resnet18_over_eager": 3}
RATE, EPOCH = 0.05, 500
Way = tuple[str | None, bool | str]  # an arithmetic, and whether compiled or in which of torch.compile's modes
CHOSEN: Way = ("bf16", True)
OTHERS: list[Way] = [(None, False), ("tf32", True), ("bf16", "reduce-overhead")]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def named(way: Way) -> str:
    return (
        f"{way[0] or 'as torch is'}{', compiled' if way[1] else ''}{f' ({way[1]})' if isinstance(way[1], str) else ''}"
    )


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def eager(model: nn.Module, images: Tensor, labels: Tensor, batch: int, warm: int, steps: int) -> tuple[float, float]:
    """Seconds a step and the mean loss of the loop most would write."""
    optimizer, losses, start = torch.optim.SGD(model.parameters(), lr=RATE), [], 0.0
    for step in range(warm + steps):
        if step == warm:
            start = now(images.device)
        index = torch.randint(0, len(images), (batch,), device=images.device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[index]), labels[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return (now(images.device) - start) / steps, sum(losses[warm:]) / steps


def ours(
    model: nn.Module, images: Tensor, labels: Tensor, batch: int, warm: int, steps: int, way: Way
) -> tuple[float, float]:
    """The same of `train`."""
    marks: list[float] = []

    def watch(step: int, of: int, row: dict[str, Any]) -> None:
        if step in (warm, of):
            marks.append(now(images.device))

    recipe = Recipe(
        steps=warm + steps,
        batch=batch,
        optimizer="sgd",
        rate=RATE,
        weight_decay=0.0,
        loss="cross-entropy",
        arithmetic=way[0],
    )
    stream = shuffled(images, labels, batch, seed=0)
    made = train(model, stream, recipe, every=[warm, warm + steps], progress=watch, compile=way[1])
    return (marks[-1] - marks[0]) / steps, made.rows[-1]["loss"]


def compare(name: str, images: Tensor, labels: Tensor, sizes: tuple[int, int, int], ways: list[Way]) -> dict[str, Any]:
    """The figures of the loop and of all our ways, of which the last is compared with it. Sizes are the batch, the
    steps to warm up and those that are timed."""

    def row(work: Callable[..., tuple[float, float]], *more: Any) -> dict[str, float]:
        torch.manual_seed(0)
        start = time.perf_counter()
        each, loss = work(MODELS[name]().to(images.device).train(), images, labels, *sizes, *more)
        before = time.perf_counter() - start - each * sizes[2]
        return {"seconds_an_epoch": EPOCH * each, "loss": loss, "seconds_before": before}

    rows: dict[str, Any] = {"eager loop": row(eager)}
    say(f"{name}\n  eager loop: {json.dumps(rows['eager loop'])}")
    for way in ways:
        rows[named(way)] = row(ours, way)
        say(f"  {named(way)}: {json.dumps(rows[named(way)])}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 steps in place of an epoch, and one way of ours")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = data.cifar10("test")
    images, labels = found.to(device).standardised(*found.moments()), found.labels.to(device)
    sizes, ways, end = (100, 60, EPOCH), [*OTHERS, CHOSEN], ""
    if given.quick:
        sizes, ways = (100, 60, 100), [CHOSEN]
    if device.type == "cpu":
        sizes, ways, end = (10, 1, 3), OTHERS[:1], "_cpu"
    ratios, tables = {}, {}
    for name in ("vit-small", "resnet18"):
        key = f"{name.replace('-', '_')}_over_eager{end}"
        tables[name] = compare(name, images, labels, sizes, ways)
        ratios[key] = tables[name]["eager loop"]["seconds_an_epoch"] / tables[name][named(ways[-1])]["seconds_an_epoch"]
        if device.type == "cuda" and name == "vit-small":  # what is left out on a GPU until it is known to pay
            wide_attention.ON_GPU = True
            tables["vit-small, wide"] = compare(name, images, labels, sizes, [CHOSEN])
            wide_attention.ON_GPU = False
        say(f"{key} {ratios[key]:.3g}" + (f" (claimed: at least {CLAIMS[key]})" if key in CLAIMS else ""))
    if given.json:
        told = {
            "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
            "steps": sizes[2],
            "provenance": provenance.capture(),
        }
        print(json.dumps({**ratios, **told, "tables": tables}, indent=1))


if __name__ == "__main__":
    main()
