"""Claims about vision transformers on a processor: V's ViT-small, float32, two cores.

    attention   heads that ask the input itself (`wide_attention`) against keys, values and torch's own attention:
                at least 1.1 times faster forward (256 images), 1.3 times with the way back (100 images)
    memory      what is freed is kept (`keep_freed_memory`, as `teeter` and its workers do) against what the C library
                does by itself: at least 1.5 times faster, either way

Each of the four is a process of its own, since what a C library was asked cannot be taken back; every time is the
median of five. Both attentions are one function up to rounding, which is checked.

Measured 2026-11-18 on two cores of an AMD EPYC, torch 2.13 (benchmarks/results/): 1.5x and 1.6x, 2.1x and 2.6x.

    python benchmarks/processor.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from teeter.memory import keep_freed_memory
from teeter.models import MODELS, vit_small
from teeter.runs import provenance

CLAIMS = {"attention_forward": 1.1, "attention_step": 1.3, "memory_forward": 1.5, "memory_step": 1.5}
ATTENTIONS, MEMORIES = ("usual", "wide"), ("given back", "kept")
IMAGES, BATCH, TIMES = 256, 100, 5


def median(work: Callable[[], object], times: int) -> float:
    work()  # once to warm up
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def network(attention: str) -> nn.Module:
    """ViT-small; "usual" is what its attention does where heads are narrow."""
    if attention == "usual":
        vit_small.is_wide = lambda qkv, out, heads: False
    torch.manual_seed(0)
    return MODELS["vit-small"]()


def one(attention: str, memory: str, images: int, batch: int, times: int) -> dict[str, Any]:
    """Seconds of one way, in this process."""
    if memory == "kept":
        keep_freed_memory()
    model, dice = network(attention), torch.Generator().manual_seed(0)
    x, labels = torch.randn(images, 3, 32, 32, generator=dice), torch.arange(batch) % 10

    def forward() -> Tensor:
        with torch.no_grad():
            return model(x)

    def step() -> None:
        model.zero_grad()
        nn.functional.cross_entropy(model(x[:batch]), labels).backward()

    outputs = model.eval()(x[:4]).detach().flatten().tolist()
    return {"forward": median(forward, times), "step": median(step, times), "outputs": outputs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few images, once")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = (16, 8, 1) if given.quick else (IMAGES, BATCH, TIMES)
    if given.one:
        attention, memory = given.one
        print(json.dumps(one(attention, memory, *sizes)))
        return
    memories = MEMORIES if keep_freed_memory() else MEMORIES[:1]  # not every C library can be asked
    found: dict[str, dict[str, Any]] = {}
    for attention in ATTENTIONS:
        for memory in memories:
            words = [sys.executable, __file__, "--one", attention, memory, *(["--quick"] if given.quick else [])]
            told = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[f"{attention}, {memory}"] = json.loads(told)
            print(attention, memory, told[:60], file=sys.stderr, flush=True)
    outputs = [torch.tensor(each.pop("outputs")) for each in found.values()]
    assert all(torch.allclose(each, outputs[0], atol=1e-4) for each in outputs), "the two attentions differ"
    ratios = {}
    for what in ("forward", "step"):
        best = memories[-1]
        ratios[f"attention_{what}"] = found[f"usual, {best}"][what] / found[f"wide, {best}"][what]
        if len(memories) > 1:
            ratios[f"memory_{what}"] = found["wide, given back"][what] / found["wide, kept"][what]
    for name, ratio in ratios.items():
        print(f"{name} {ratio:.3g} (claimed: at least {CLAIMS[name]})", file=sys.stderr)
    if given.json:
        told = {"threads": torch.get_num_threads(), "provenance": provenance.capture()}
        print(json.dumps({**ratios, **told, "seconds": found}, indent=1))


if __name__ == "__main__":
    main()
