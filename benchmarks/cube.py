"""Claim: the full exact analysis of a Boolean function (sensitivity at every input, spectrum, degree profile)

- is at least 500x faster than boofun at n = 18 (with numba, its fast path),
- is at least 100x faster than sympy's fwht at n = 16, which gives the spectrum alone,
- at n = 24 takes at most 4x the time torch takes to stream the table's bytes n times.

Both sides run here, in one process, on the same random function, and must agree before their times count.
Ours is the median of `trials` runs after one warm-up; theirs is one run (a minute), after a smaller warm-up.
Streaming and analysis alternate, so that a slow spell of the machine strikes both.
Measured 2026-11-15 on 2 cores of an Intel Xeon Processor @ 2.80GHz, torch 2.13.0, boofun 1.3.0 with numba 0.68.1,
sympy 1.14.0, 21 trials: 6,517x, 476x and 2.0x; benchmarks/results/ has the records.

    python benchmarks/cube.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch

from teeter import cube
from teeter.runs import provenance

LIMITS = {"over_boofun": 500, "over_sympy": 100, "stream_multiple": 4}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def median_time(work: Callable[[], Any], trials: int) -> float:
    work()
    return statistics.median(timed(work)[0] for _ in range(trials))


def table(n: int) -> torch.Tensor:
    return cube.truth_table(cube.random_function(0), n)


def boofun_analysis(values: torch.Tensor) -> tuple[Any, Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import boofun  # pyright: ignore[reportMissingImports]
        from boofun.analysis.sensitivity import sensitivity_profile  # pyright: ignore[reportMissingImports]

        f = boofun.create((values < 0).numpy())
        return sensitivity_profile(f), f.fourier(), f.spectral_weight_by_degree()


def over_boofun(n: int, trials: int) -> dict[str, float]:
    values = table(n)
    boofun_analysis(table(n - 5))  # imports and compiled paths are not its fault
    theirs, (local, spectrum, weights) = timed(lambda: boofun_analysis(values))
    ours = cube.analyse(values)
    assert torch.equal(torch.as_tensor(local).double(), ours.local)
    assert torch.allclose(torch.as_tensor(spectrum).double().abs().sort()[0], ours.spectrum.abs().sort()[0])
    assert torch.allclose(torch.tensor([weights.get(k, 0.0) for k in range(n + 1)]).double(), ours.profile)
    mine = median_time(lambda: cube.analyse(values), trials)
    return {"n": n, "boofun_s": theirs, "teeter_s": mine, "ratio": theirs / mine}


def over_sympy(n: int, trials: int) -> dict[str, float]:
    from sympy.discrete.transforms import fwht  # pyright: ignore[reportMissingImports]

    values = table(n)
    theirs, spectrum = timed(lambda: fwht([int(v) for v in values]))
    ours = cube.walsh(values) * 2**n
    assert [int(v) for v in spectrum] == ours.long().tolist()
    mine = median_time(lambda: cube.analyse(values), trials)
    return {"n": n, "sympy_s": theirs, "teeter_s": mine, "ratio": theirs / mine}


def stream_multiple(n: int, trials: int) -> dict[str, float]:
    values = table(n)
    scratch = values.clone()

    def stream() -> None:
        for _ in range(n):
            scratch.mul_(1.0)  # reads and writes the table in place: less traffic than a copy

    stream()
    cube.analyse(values)
    pairs = [(timed(stream)[0], timed(lambda: cube.analyse(values))[0]) for _ in range(trials)]
    streaming, mine = (statistics.median(times) for times in zip(*pairs, strict=True))
    return {"n": n, "stream_s": streaming, "teeter_s": mine, "ratio": mine / streaming}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller n, under a minute on two cores")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    given = parser.parse_args()
    trials = 9 if given.quick else 21
    sizes = (13, 14, 24) if given.quick else (18, 16, 24)
    parts = {
        "over_boofun": over_boofun(sizes[0], trials),
        "over_sympy": over_sympy(sizes[1], trials),
        "stream_multiple": stream_multiple(sizes[2], trials),
    }
    report = {name: part["ratio"] for name, part in parts.items()}
    rivals = {name: version(name) for name in ("boofun", "numba", "sympy")}
    report |= {"quick": given.quick, "trials": trials, "parts": parts, "rivals": rivals}
    report["provenance"] = provenance.capture()
    if given.json:
        print(json.dumps(report, indent=1))
        return
    for name, part in parts.items():
        claim = f"at {'most' if name == 'stream_multiple' else 'least'} {LIMITS[name]}"
        seconds = ", ".join(f"{key} {value:.4f}" for key, value in part.items() if key.endswith("_s"))
        print(f"{name} at n = {part['n']}: {part['ratio']:.2f} (claim: {claim}; {seconds})")
    print(f"{report['provenance']}", file=sys.stderr)


if __name__ == "__main__":
    main()
