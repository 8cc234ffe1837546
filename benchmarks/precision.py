"""Is the same learned in fewer bits? H's encoder (dimension 128, batch 1024, 10,000 steps) in float32, tf32 and bf16.

PARITY and MAJORITY at three lengths, ten seeds each (PARITY at the longest, where not all runs converge, 32): how many
runs converge (H 7.1: an evaluation MSE of at most 1e-3, on targets 0 and 1) and how sharp those are that do. A seed has
the same initial weights and batches in every arithmetic, and what is measured is measured in float32. Claims:
- no difference is seen in the share of runs that converge: the 95 % interval of the difference from float32's
  (Newcombe's hybrid of Wilson's, each for itself) holds 0. How wide it is says what could have been seen,
- mean sharpness differs from float32's by less than the standard deviation between float32's seeds, where at least two
  runs converge in both,
- in the arithmetic of the paper tier (tf32), PARITY at n = 20 is learned by at least 8 of 10 seeds, and MAJORITY, FIRST
  and MEAN by all.

Measured 2026-11-15 on one H200, torch 2.11 (benchmarks/results/): the first two hold throughout; PARITY at n = 20 is
learned by 23 of 32 seeds in tf32 (0.72, 95 % interval 0.53 to 0.86), the other functions by 10 of 10.

A cell (a length in an arithmetic) is one stack; it is kept in the folder once it is done, and the next call goes on.

    python benchmarks/precision.py [FOLDER] [--quick] [--json] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from scipy.stats import binomtest

from teeter.data import bit_strings
from teeter.runs import provenance
from teeter.studies.hahn2024.learning import CONVERGED, FUNCTIONS, Learner, model_of, zero_one
from teeter.train import Recipe, bar, bit_streams, measures, train_stack

COMPARED, PAPER_TIER = ("parity", "majority"), "tf32"
ARITHMETICS = (PAPER_TIER, "float32", "bf16")
Run = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def trained(n: int, arithmetic: str, given: argparse.Namespace) -> list[Run]:
    """One stack: every function with every seed."""
    longest = n == max(given.lengths)
    names = FUNCTIONS if longest and arithmetic == PAPER_TIER else COMPARED
    seeds = {name: given.more if longest and name == "parity" else given.seeds for name in names}
    todo = [(name, seed) for name in names for seed in range(seeds[name])]
    models = [model_of(Learner(name, n, seed, dim=given.dim)).to(given.device) for name, seed in todo]
    recipe = Recipe(given.steps, arithmetic=arithmetic if given.device == "cuda" or arithmetic != "tf32" else None)
    strings = bit_strings(n, 4096, seed=10**6, device=given.device)  # no seed of training
    sharp = measures.sharpness(strings[:1024])
    off = {name: measures.loss(strings, zero_one(name)(strings)) for name in names}
    each = [{"mse": off[name], "sharpness": sharp} for name, _ in todo]
    stream = bit_streams([zero_one(name) for name, _ in todo], n, 1024, [seed for _, seed in todo], given.device)
    start = time.perf_counter()
    with bar() as progress:
        made = train_stack(
            models,
            stream,
            recipe,
            measures=each,
            every=given.steps // 5,
            folder=given.folder / f"under-way-{n}-{arithmetic}",
            keep=2500,
            progress=progress,
            compile=given.device == "cuda",
        )
    if any(each.stopped == "interrupted" for each in made):
        raise KeyboardInterrupt
    say(f"n = {n} in {arithmetic}: {len(todo)} models in {time.perf_counter() - start:.0f} s")
    return [
        {"function": name, "n": n, "arithmetic": arithmetic, "seed": seed, "stopped": each.stopped, "rows": each.rows}
        for (name, seed), each in zip(todo, made, strict=True)
    ]


def cells(given: argparse.Namespace) -> list[Run]:
    """All runs; those of cells that are kept are read."""
    found: list[Run] = []
    for n in sorted(given.lengths, reverse=True):
        for arithmetic in ARITHMETICS:
            place = given.folder / f"{n}-{arithmetic}.json"
            if not place.exists():
                runs = trained(n, arithmetic, given)
                part = place.with_suffix(".part")
                part.write_text(json.dumps(runs))
                part.replace(place)
                shutil.rmtree(given.folder / f"under-way-{n}-{arithmetic}")
            found += json.loads(place.read_text())
    return found


def table(runs: list[Run]) -> list[dict[str, Any]]:
    """A row for each function, length and arithmetic."""
    rows = []
    for key in dict.fromkeys((run["function"], run["n"], run["arithmetic"]) for run in runs):
        own = [run for run in runs if (run["function"], run["n"], run["arithmetic"]) == key]
        ends = [run["rows"][-1] for run in own]
        good = [end for end, run in zip(ends, own, strict=True) if run["stopped"] == "done" and end["mse"] <= CONVERGED]
        sharp = 4 * torch.tensor([end["sharpness"] for end in good], dtype=torch.float64)
        low, high = binomtest(len(sharp), len(ends)).proportion_ci(method="exact")
        rows.append(
            {
                **dict(zip(("function", "n", "arithmetic"), key, strict=True)),
                "runs": len(ends),
                "converged": len(sharp),
                "rate_low": low,
                "rate_high": high,
                "sharpness": float(sharp.mean()) if len(sharp) else None,
                "sharpness_sd": float(sharp.std()) if len(sharp) > 1 else None,
                "mse": sorted(end["mse"] for end in ends),
            }
        )
    return rows


def difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """An interval of the difference of two rates (Newcombe 1998, method 10)."""
    rates, lows, highs = [], [], []
    for row in (one, other):
        ends = binomtest(row["converged"], row["runs"]).proportion_ci(method="wilson")
        rates.append(row["converged"] / row["runs"])
        lows.append(ends.low)
        highs.append(ends.high)
    apart = rates[0] - rates[1]
    below = math.hypot(rates[0] - lows[0], highs[1] - rates[1])
    above = math.hypot(highs[0] - rates[0], rates[1] - lows[1])
    return apart - below, apart + above


def verdicts(rows: list[dict[str, Any]]) -> dict[str, bool | None]:
    """Whether each claim holds; None where there is nothing to compare."""
    found: dict[str, bool | None] = {}
    by = {(row["function"], row["n"], row["arithmetic"]): row for row in rows}
    compared = [(key, row) for key, row in by.items() if key[2] != "float32" and (*key[:2], "float32") in by]
    for (name, n, arithmetic), row in compared:
        exact = by[name, n, "float32"]
        here = f"{name} n={n} {arithmetic}"
        row["rate_apart"] = difference(row, exact)
        found[f"{here}: no difference in how many converge"] = row["rate_apart"][0] <= 0 <= row["rate_apart"][1]
        enough = min(row["converged"], exact["converged"]) > 1
        apart = abs(row["sharpness"] - exact["sharpness"]) / exact["sharpness_sd"] if enough else None
        row["sharpness_apart"] = apart  # in standard deviations between seeds
        found[f"{here} is as sharp"] = None if apart is None else apart < 1
    for (name, n, arithmetic), row in by.items():
        if arithmetic == PAPER_TIER and n == max(key[1] for key in by):
            wanted = 0.8 if name == "parity" else 1.0
            found[f"{name} n={n} is learned"] = row["converged"] >= wanted * row["runs"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where what is done is kept; by default nowhere")
    parser.add_argument("--quick", action="store_true", help="small models and few steps: to see that it runs")
    parser.add_argument("--json", action="store_true", help="the rows and verdicts on stdout")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    given = parser.parse_args()
    if given.device == "cpu" and not given.quick:
        say("this takes a GPU ten minutes and a CPU days: small models and few steps in its place")
        given.quick = True
    sizes = ([3, 4], 2, 3, 50, 8) if given.quick else ([5, 10, 20], 10, 32, 10_000, 128)
    given.lengths, given.seeds, given.more, given.steps, given.dim = sizes
    with tempfile.TemporaryDirectory() as passing:
        given.folder = given.folder or Path(passing)
        rows = table(cells(given))
    told = verdicts(rows)
    for row in rows:
        line = {key: row[key] for key in ("converged", "runs", "sharpness", "sharpness_sd")}
        say(f"{row['function']} n={row['n']} {row['arithmetic']}: {json.dumps(line)}")
    for claim, holds in told.items():
        say(f"{claim}: {holds}")
    if given.json:
        print(json.dumps({"verdicts": told, "rows": rows, "provenance": provenance.capture()}, indent=1))


if __name__ == "__main__":
    main()
