"""Where the time of a training step goes, kernel by kernel: no claim, but where to look before one is made.

Stacks are those of the studies at the paper tier, vision models those of V on random images; each is trained as there,
compiled and recorded on a GPU. A step is timed first (the mean of some, without a profiler) and then looked into: the
microseconds of each kind of kernel a step and how often it runs, the longest first. What is between the sum of these
and the time of a step is waiting. On a CPU the same settings are tiny, and operators stand in for kernels.

    python benchmarks/profiles/kernels.py [--json] [--only NAME]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from teeter import cube
from teeter.models import MODELS
from teeter.runs import provenance
from teeter.studies.devices import ARITHMETIC, device_here
from teeter.studies.hahn2024 import generalization, learning, scratchpad
from teeter.train import Job, Recipe, shuffled, train
from teeter.train.stack_run import StackRun
from teeter.train.stack_streams import together

DEVICE = device_here()
GPU = DEVICE.type == "cuda"
WARM, TIMED, SEEN = 8, 40 if GPU else 2, 4 if GPU else 1  # steps
MOST = 16  # kinds of kernels that are named


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def learners(n: int, count: int, **sizes: Any) -> list[Job]:
    """Encoders as `scaling`, `tradeoff` and `long` have them."""
    small: dict[str, Any] = {} if GPU else {"dim": 8, "batch": 8}
    specs = [learning.Learner("majority", n, seed, **{**sizes, **small}) for seed in range(count)]
    recipe = Recipe(10_000, specs[0].batch, rate=3e-4, weight_decay=0.1, arithmetic=ARITHMETIC[DEVICE.type])
    return [Job(learning.model_of(each).to(DEVICE), learning.stream_of(each, DEVICE), recipe) for each in specs]


def cubes(count: int) -> list[Job]:
    """New transformers on the whole cube, as `generalization` has them."""
    spec = generalization.Spec(0, 2**10, 0) if GPU else generalization.SMOKE[0]
    x = cube.points(spec.n, dtype=torch.float32, device=DEVICE)
    return [
        generalization.job_of(replace(spec, sample=k), x, cube.random_function(k)(x).to(DEVICE), 1)
        for k in range(count)
    ]


def scratchpads(n: int, count: int) -> list[Job]:
    specs = [replace(scratchpad.PAPER[0] if GPU else scratchpad.SMOKE[0], n=n, seed=seed) for seed in range(count)]
    recipe = Recipe(10_000, specs[0].batch, arithmetic=ARITHMETIC[DEVICE.type])
    return [Job(scratchpad.model_of(each).to(DEVICE), scratchpad.stream_of(each, DEVICE), recipe) for each in specs]


def stacked(jobs: list[Job]) -> dict[str, Any]:
    run = StackRun(
        [job.model for job in jobs], [job.recipe for job in jobs], [{} for _ in jobs], WARM + TIMED + SEEN, None, GPU
    )
    stream = together([job.stream for job in jobs])
    for _ in range(WARM):
        run.advance(*stream(run.step))
    start = now()
    for _ in range(TIMED):
        run.advance(*stream(run.step))
    each = (now() - start) / TIMED
    with profile(activities=activities()) as seen:
        for _ in range(SEEN):
            run.advance(*stream(run.step))
        now()
    return told(each, seen)


def vision(name: str, pixels: int, channels: int) -> dict[str, Any]:
    """A model on batches of 100 random images, as V's are trained."""
    batch = 100 if GPU else 2
    images, labels = torch.randn(10 * batch, channels, pixels, pixels), torch.arange(10 * batch) % 10
    recipe = Recipe(
        steps=WARM + TIMED + SEEN,
        batch=batch,
        optimizer="sgd",
        rate=0.01,
        weight_decay=0.0,
        loss="cross-entropy",
        arithmetic="bf16" if GPU else None,
    )
    marks: list[float] = []
    seen = profile(activities=activities())

    def watch(step: int, of: int, row: dict[str, Any]) -> None:
        if step in (WARM, WARM + TIMED):
            marks.append(now())
        if step == WARM + TIMED:
            seen.start()
        if step == of:
            now()
            seen.stop()

    stream = shuffled(images.to(DEVICE), labels.to(DEVICE), batch, seed=0)
    train(MODELS[name]().to(DEVICE), stream, recipe, every=recipe.steps, progress=watch, compile=GPU)
    return told((marks[1] - marks[0]) / TIMED, seen)


def activities() -> list[ProfilerActivity]:
    return [ProfilerActivity.CUDA] if GPU else [ProfilerActivity.CPU]


def now() -> float:
    if GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def told(each: float, seen: Any) -> dict[str, Any]:
    """A step's milliseconds, those its kernels add up to, and the longest of these: microseconds, times."""
    column = "self_device_time_total" if GPU else "self_cpu_time_total"
    kinds = [(getattr(kind, column) / SEEN, kind.count / SEEN, kind.key) for kind in seen.key_averages()]
    longest = sorted((kind for kind in kinds if kind[0] > 0), reverse=True)[:MOST]
    return {
        "ms": 1e3 * each,
        "kernels_ms": sum(took for took, _, _ in kinds) / 1e3,
        "longest": [[name, round(took, 1), count] for took, count, name in longest],
    }


SETTINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "encoders of 6 bits": lambda: stacked(learners(6, 20 if GPU else 2)),
    "encoders of 20 bits": lambda: stacked(learners(20, 64 if GPU else 2)),
    "encoders of 512 bits": lambda: stacked(learners(512 if GPU else 40, 15 if GPU else 2, dim=4, batch=128)),
    "encoders on the cube, 50": lambda: stacked(cubes(50 if GPU else 2)),
    "encoders on the cube, 250": lambda: stacked(cubes(250 if GPU else 3)),
    "scratchpads": lambda: stacked(scratchpads(320 if GPU else 6, 3)),
    "vit-small": lambda: vision("vit-small", 32, 3),
    "vit-simple": lambda: vision("vit-simple", 32, 3),
    "convmixer": lambda: vision("convmixer", 32, 3),
    "densenet121": lambda: vision("densenet121", 32, 3),
    "resnet18": lambda: vision("resnet18", 32, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="all of it on stdout")
    parser.add_argument("--only", action="append", choices=list(SETTINGS), help="this setting; may be given repeatedly")
    given = parser.parse_args()
    tables = {}
    for name in given.only or SETTINGS:
        tables[name] = SETTINGS[name]()
        say(f"{name}: {tables[name]['ms']:.3f} ms a step, of which kernels {tables[name]['kernels_ms']:.3f}")
        for kernel, took, count in tables[name]["longest"]:
            say(f"  {took:9.1f} us in {count:5.1f}  {kernel[:100]}")
    if given.json:
        device = torch.cuda.get_device_name() if GPU else "cpu"
        print(json.dumps({"device": device, "provenance": provenance.capture(), "tables": tables}, indent=1))


if __name__ == "__main__":
    main()
