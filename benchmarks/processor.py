"""Claims about V's models on a processor: ViT-small and, of tables, its model of a + b mod 113; float32, two cores.

    attention   heads that ask the input itself (`wide_attention`) against keys, values and torch's own attention:
                at least 1.1 times faster forward (256 images), 1.3 times with the way back (100 images)
    memory      what is freed is kept (`keep_freed_memory`, as `teeter` and its workers do) against what the C library
                does by itself: at least 1.5 times faster, either way
    products    of float32 by oneDNN (`quick_products`, for whoever asks: TEETER_ONEDNN=1) against torch's choice, on a
                processor of AMD with AVX-512: at least 1.2 times faster forward, 1.3 times with the way back (ViT-small
                above; a + b mod 113: 1.1 and 1.3 times)
    tables      keys, values and scores picked from tables of all that there can be (`ModularAddition`) against those of
                every pair: at least 1.3 times faster forward, 1.4 times with the way back (3,830 pairs)

Each way is a process of its own, since what a C library was asked cannot be taken back; every time is the median of
five. Ways with and without are one function up to rounding, which is checked.

Measured 2026-11-19 on two cores of an AMD EPYC, torch 2.13 (benchmarks/results/): 1.5x and 1.7x, 2.0x and 2.2x, 2.0x
and 1.8x (a + b mod 113: 1.4x and 1.5x), 2.0x and 1.9x. A day before, on another machine of the kind, memory was 2.1x
and 2.6x.

    python benchmarks/processor.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from teeter.data import modular_addition
from teeter.memory import keep_freed_memory
from teeter.models import MODELS, ModularAddition, vit_small
from teeter.products import able_to_ask, onednn_computes_float32, quick_products
from teeter.runs import provenance

CLAIMS = {"attention_forward": 1.1, "attention_step": 1.3, "memory_forward": 1.5, "memory_step": 1.5}
CLAIMS |= {"tables_forward": 1.3, "tables_step": 1.4}
CLAIMS |= {"products_forward": 1.2, "products_step": 1.3, "modular_products_forward": 1.1, "modular_products_step": 1.3}
WAYS = [("vit-small", "usual"), ("vit-small", "wide"), ("modular", "usual"), ("modular", "tables")]
MEMORIES, QUICK = ("given back", "kept"), "kept, oneDNN"
TIMES = 5


def median(work: Callable[[], object], times: int) -> float:
    work()  # once to warm up
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def network(model: str, way: str) -> nn.Module:
    """V's model; "usual" is what it does where heads are narrow, or pairs few."""
    if way == "usual":
        vit_small.is_wide = lambda qkv, out, heads, tokens: False
        ModularAddition._has_tables = lambda self, tokens: False
    torch.manual_seed(0)
    return MODELS[model]()


def inputs_of(model: str, quick: bool) -> tuple[Tensor, Tensor]:
    """What is asked, and labels for the first of them, which are trained on."""
    if model == "modular":
        train, _ = modular_addition(113, share=0.02 if quick else 0.3, seed=0, equals=True)
        return train.tokens, train.labels
    images, batch = (16, 8) if quick else (256, 100)
    return torch.randn(images, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.arange(batch) % 10


def one(name: str, way: str, memory: str, quick: bool) -> dict[str, Any]:
    """Seconds of one way, in this process."""
    if memory != MEMORIES[0]:
        keep_freed_memory()
    model, (x, labels), times = network(name, way), inputs_of(name, quick), 1 if quick else TIMES

    def forward() -> Tensor:
        with torch.no_grad():
            return model(x)

    def step() -> None:
        model.zero_grad()
        nn.functional.cross_entropy(model(x[: len(labels)]), labels).backward()

    os.environ["TEETER_ONEDNN"] = "1" if memory == QUICK else "0"
    with quick_products():
        outputs = model.eval()(x)[:4].detach().flatten().tolist()
        return {"forward": median(forward, times), "step": median(step, times), "outputs": outputs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few inputs, once")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, way, memory = given.one
        print(json.dumps(one(name, way, memory, given.quick)))
        return
    memories = MEMORIES if keep_freed_memory() else MEMORIES[:1]  # not every C library can be asked
    asked = able_to_ask() and onednn_computes_float32()
    quick = [QUICK] if asked and len(memories) > 1 else []
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for name, way in WAYS:
        for memory in [*(memories if name == "vit-small" else memories[-1:]), *(quick if way != "usual" else [])]:
            words = [sys.executable, __file__, "--one", name, way, memory, *(["--quick"] if given.quick else [])]
            told = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[name, way, memory] = json.loads(told)
            print(f"{name}, {way}, {memory} {told[:60]}", file=sys.stderr, flush=True)
    for name in {name for name, _ in WAYS}:
        outputs = [torch.tensor(each.pop("outputs")) for key, each in found.items() if key[0] == name]
        assert all(torch.allclose(each, outputs[0], atol=1e-4) for each in outputs), f"two ways of {name} differ"
    best, ratios = memories[-1], {}
    for what in ("forward", "step"):
        for words, (name, usual), (_, other) in (("attention", *WAYS[:2]), ("tables", *WAYS[2:])):
            ratios[f"{words}_{what}"] = found[name, usual, best][what] / found[name, other, best][what]
        if len(memories) > 1:
            first, second = (found["vit-small", "wide", memory] for memory in MEMORIES)
            ratios[f"memory_{what}"] = first[what] / second[what]
        for kind in quick:
            for words, key in (("products", WAYS[1]), ("modular_products", WAYS[3])):
                ratios[f"{words}_{what}"] = found[*key, best][what] / found[*key, kind][what]
    for name, ratio in ratios.items():
        print(f"{name} {ratio:.3g} (claimed: at least {CLAIMS[name]})", file=sys.stderr)
    if given.json:
        seconds = {", ".join(key): each for key, each in found.items()}
        told = {"threads": torch.get_num_threads(), "provenance": provenance.capture(), "seconds": seconds}
        print(json.dumps({**ratios, **told}, indent=1))


if __name__ == "__main__":
    main()
