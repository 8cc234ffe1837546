"""Claims about training one vision model: CIFAR-10, batch 100, SGD, on one H200.

An epoch (500 steps) of ViT-small and of ResNet-18 takes `train`, compiled (and so recorded as one CUDA graph)
in bf16, at most a third of the time of the loop that most would write, which runs eagerly in what
torch computes in by default (float32, and tf32 within convolutions).

Both sides run here, in one process, each in steps of its own after a warm-up that compilers have for themselves; both
have all images on the GPU already, which spares the usual loop its loader. The images are the 10,000 of the test set,
five times over: what is learned is of no matter here. Other ways of ours stand beside, and the mean loss of the steps
timed, so that it can be seen that all learn alike.

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
from teeter.models import MODELS
from teeter.runs import provenance
from teeter.train import Recipe, shuffled, train

CLAIMS = {"vit_small_over_eager": 3, "resnet18_over_eager": 3}
BATCH, RATE, EPOCH, WARM = 100, 0.05, 500, 60
Way = tuple[str | None, bool | str]  # an arithmetic, and whether compiled or in which of torch.compile's modes
CHOSEN: Way = ("bf16", True)
OTHERS: list[Way] = [(None, False), ("tf32", True), ("bf16", "reduce-overhead")]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def named(way: Way) -> str:
    return (
        f"{way[0] or 'as torch is'}{', compiled' if way[1] else ''}{f' ({way[1]})' if isinstance(way[1], str) else ''}"
    )


def eager(model: nn.Module, images: Tensor, labels: Tensor, steps: int) -> tuple[float, float]:
    """Seconds a step and the mean loss of the loop most would write."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=RATE), []
    for step in range(WARM + steps):
        if step == WARM:
            torch.cuda.synchronize()
            start = time.perf_counter()
        index = torch.randint(0, len(images), (BATCH,), device=images.device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[index]), labels[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps, sum(losses[WARM:]) / steps


def ours(model: nn.Module, images: Tensor, labels: Tensor, steps: int, way: Way) -> tuple[float, float]:
    """The same of `train`."""
    marks: list[float] = []

    def watch(step: int, of: int, row: dict[str, Any]) -> None:
        if step in (WARM, of):
            torch.cuda.synchronize()
            marks.append(time.perf_counter())

    recipe = Recipe(
        steps=WARM + steps,
        batch=BATCH,
        optimizer="sgd",
        rate=RATE,
        weight_decay=0.0,
        loss="cross-entropy",
        arithmetic=way[0],
    )
    stream = shuffled(images, labels, BATCH, seed=0)
    made = train(model, stream, recipe, every=[WARM, WARM + steps], progress=watch, compile=way[1])
    return (marks[-1] - marks[0]) / steps, made.rows[-1]["loss"]


def compare(name: str, images: Tensor, labels: Tensor, steps: int, ways: list[Way]) -> tuple[float, dict[str, Any]]:
    """How much faster the chosen way is than the eager loop, and the figures of all."""

    def row(work: Callable[..., tuple[float, float]], *more: Any) -> dict[str, float]:
        torch.manual_seed(0)
        start = time.perf_counter()
        each, loss = work(MODELS[name]().cuda().train(), images, labels, steps, *more)
        return {
            "seconds_an_epoch": EPOCH * each,
            "loss": loss,
            "seconds_before": time.perf_counter() - start - each * steps,
        }

    rows: dict[str, Any] = {"eager loop": row(eager)}
    say(f"{name}\n  eager loop: {json.dumps(rows['eager loop'])}")
    for way in ways:
        rows[named(way)] = row(ours, way)
        say(f"  {named(way)}: {json.dumps(rows[named(way)])}")
    ratio = rows["eager loop"]["seconds_an_epoch"] / rows[named(CHOSEN)]["seconds_an_epoch"]
    return ratio, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 steps in place of an epoch, and one way of ours")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("these claims are about a GPU, and torch sees none")
    found = data.cifar10("test")
    mean, spread = found.moments()
    images, labels = found.to("cuda").standardised(mean, spread), found.labels.cuda()
    steps, ways = (100, [CHOSEN]) if given.quick else (EPOCH, [*OTHERS, CHOSEN])
    ratios, tables = {}, {}
    for name in ("vit-small", "resnet18"):
        key = f"{name.replace('-', '_')}_over_eager"
        ratios[key], tables[name] = compare(name, images, labels, steps, ways)
        say(f"{key} {ratios[key]:.3g} (claimed: at least {CLAIMS[key]})")
    if given.json:
        told = {"device": torch.cuda.get_device_name(), "provenance": provenance.capture()}
        print(json.dumps({**ratios, **told, "tables": tables}, indent=1))


if __name__ == "__main__":
    main()
