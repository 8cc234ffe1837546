"""Claims about what an error bar costs, on V's CNN and ViT trained on Fashion-MNIST: 60,000 images, patches of 4.

To a 10 % relative half-width at 95 %:
- the broad design takes at least 30x fewer forwards than the paper's (every patch of an image, 5 draws each),
- the adaptive design takes at most 1/0.9 of the broad one's, and at most half where the rate is below 0.03.
On one H200:
- at least 300x faster by the clock than the plain loop (batch 100, eager, paper's design),
- at least 80 % of the forwards a second that the bare compiled model reaches.

A forward is a forward: clean ones count, one for every input met. Both sides run here, in one process, after a warm-up.
The paper's design runs to the same half-width on a GPU; on a CPU it runs on `--subset` images and its cost is scaled by
the square of the half-width, which falls like one over the root of the images. Measured numbers: benchmarks/results/.

    python benchmarks/sensitivity.py [--quick] [--json] [--trials N] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from fashion import images, trained
from torch import Tensor, nn

from teeter import perturb
from teeter.measure import Sensitivity, sensitivity
from teeter.measure.arithmetic import computing_in
from teeter.runs import provenance

PRECISION, DRAWS, PATCH = 0.1, 5, 4
SETTINGS = [(name, sigma2) for name in ("cnn", "vit") for sigma2 in (0.1, 1.0, 5.0)]  # V has 5
QUICK = [("cnn", 0.1), ("vit", 5.0)]
LIMITS = {
    "forwards_paper_over_broad": 30,
    "forwards_broad_over_adaptive": 0.9,
    "forwards_broad_over_adaptive_rare": 2,
    "loop_over_ours_seconds": 300,
    "share_of_compiled": 0.8,
}


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def forwards(model: nn.Module, x: Tensor, sigma2: float, trials: int, subset: int) -> dict[str, Any]:
    """Forwards to the half-width: broad and adaptive over several seeds, the paper's design once."""
    nudge = perturb.PatchNoise(PATCH, sigma2)
    broad, adaptive = (
        [sensitivity(model, x, nudge, design=design, precision=PRECISION, seed=seed) for seed in range(trials)]
        for design in ("broad", "adaptive")
    )
    paper: Sensitivity = sensitivity(
        model,
        x,
        nudge,
        design="paper",
        draws=DRAWS,
        precision=PRECISION,
        subset=None if x.is_cuda else subset,
    )
    scale = max((paper.half_width / (PRECISION * paper.value)) ** 2, 1.0)
    mean = {name: statistics.mean(e.forwards for e in runs) for name, runs in (("b", broad), ("a", adaptive))}
    return {
        "rate": statistics.mean(e.value for e in broad),
        "interval": [broad[0].low, broad[0].high],
        "adaptive_interval": [adaptive[0].low, adaptive[0].high],
        "paper_interval": [paper.low, paper.high],
        "broad": mean["b"],
        "adaptive": mean["a"],
        "paper": paper.forwards * scale,
        "paper_scaled": paper.stopped != "precision",
        "paper_over_broad": paper.forwards * scale / mean["b"],
        "paper_over_adaptive": paper.forwards * scale / mean["a"],
        "paper_over_broad_draws": paper.draws * scale / statistics.mean(e.draws for e in broad),
        "broad_over_adaptive": mean["b"] / mean["a"],
    }


def plain_loop(model: nn.Module, x: Tensor, sigma2: float, pictures: int) -> float:
    """What a user would write: batches of 100 images, every patch, five draws; seconds for so many pictures."""

    @torch.no_grad()
    def loop() -> float:
        flips = total = 0
        for batch in x[:pictures].split(100):
            clean = model(batch).argmax(-1)
            for row in range(0, 28, PATCH):
                for column in range(0, 28, PATCH):
                    for _ in range(DRAWS):
                        noisy = batch.clone()
                        spot = noisy[:, :, row : row + PATCH, column : column + PATCH]
                        spot += torch.randn_like(spot) * sigma2**0.5
                        flips += (model(noisy).argmax(-1) != clean).sum().item()
                        total += len(batch)
        return flips / total

    return timed(loop, x.device.type)[0]


def speed(name: str, sigma2: float, device: str, needed: float, trials: int) -> dict[str, Any]:
    """Seconds to the half-width, ours against the loop, and forwards a second against the bare model."""
    model, (x, _) = trained(name, device), images("train", device)
    nudge = perturb.PatchNoise(PATCH, sigma2)
    answer: dict[str, Any] = {}
    pictures = 1000
    plain_loop(model, x, sigma2, 200)
    loop = plain_loop(model, x, sigma2, pictures) / (pictures * (49 * DRAWS + 1)) * needed
    answer["loop_seconds"] = loop
    for label, how in (
        ("broad", dict(design="broad")),
        ("adaptive", dict(design="adaptive")),
        ("adaptive_tf32", dict(design="adaptive", arithmetic="tf32")),
    ):
        work = lambda how=how: sensitivity(model, x, nudge, precision=PRECISION, **how)  # noqa: E731
        work()
        answer[f"{label}_seconds"] = statistics.median(timed(work, device)[0] for _ in range(trials))
    answer["loop_over_ours"] = loop / min(answer["broad_seconds"], answer["adaptive_seconds"])
    return answer


def shares(name: str, device: str, trials: int) -> dict[str, Any]:
    """Forwards a second of a long measurement, compiled, against the bare compiled model on full batches."""
    model, (x, _) = trained(name, device), images("train", device)
    nudge, where = perturb.PatchNoise(PATCH, 5.0), torch.device(device)
    answer, rows = {}, 8192
    for kind in ("float32", "tf32", "bf16"):
        fast = torch.compile(model, dynamic=False)
        batch = x[:rows].contiguous()

        @torch.no_grad()
        def bare(fast: Any = fast, batch: Tensor = batch, kind: str = kind) -> None:
            with computing_in(kind, where):
                for _ in range(100):
                    fast(batch)

        def ours(kind: str = kind) -> Sensitivity:
            return sensitivity(model, x, nudge, budget=50 * rows, batch=rows, arithmetic=kind, compile=True)

        bare()
        ours()
        pace, mine = [], []
        for _ in range(trials):
            pace.append(100 * rows / timed(bare, "cuda")[0])
            seconds, result = timed(ours, "cuda")
            spent = result.forwards + (4 * 2048 if kind != "float32" else 0)  # the comparison with float32 too
            mine.append(spent / seconds)
        answer[kind] = {"bare": statistics.median(pace), "ours": statistics.median(mine)}
        answer[kind]["share"] = answer[kind]["ours"] / answer[kind]["bare"]
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two settings, one trial: under a minute on 2 cores")
    parser.add_argument("--json", action="store_true", help="the ratios by name on stdout")
    parser.add_argument("--trials", type=int, default=None, help="seeds to average over")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="*", default=None, help="cnn, vit (V's), vit8 (depth 8)")
    given = parser.parse_args()
    trials = given.trials or (1 if given.quick else 5)
    settings = QUICK if given.quick else SETTINGS
    if given.models is not None:
        settings = [(name, sigma2) for name in given.models for sigma2 in (0.1, 1.0, 5.0)]
    rows, speeds, paces = {}, {}, {}
    x, _ = images("train", given.device)
    for name, sigma2 in settings:
        row = forwards(trained(name, given.device), x, sigma2, trials, subset=100 if given.quick else 400)
        rows[f"{name} sigma2={sigma2:g}"] = row
        say(
            f"{name} sigma2={sigma2:g}: rate {row['rate']:.4f}; forwards: paper {row['paper']:,.0f}, "
            f"broad {row['broad']:,.0f} ({row['paper_over_broad']:.1f}x), adaptive {row['adaptive']:,.0f} "
            f"({row['broad_over_adaptive']:.2f}x)"
        )
        if given.device == "cuda":
            speeds[f"{name} sigma2={sigma2:g}"] = speed(name, sigma2, given.device, row["paper"], trials)
            say(json.dumps(speeds[f"{name} sigma2={sigma2:g}"]))
    ratios = {
        "forwards_paper_over_broad": min(row["paper_over_broad"] for row in rows.values()),
        "forwards_broad_over_adaptive": min(row["broad_over_adaptive"] for row in rows.values()),
    }
    rare = [row["broad_over_adaptive"] for row in rows.values() if row["rate"] < 0.03]
    if rare:
        ratios["forwards_broad_over_adaptive_rare"] = min(rare)
    if speeds:
        ratios["loop_over_ours_seconds"] = min(row["loop_over_ours"] for row in speeds.values())
        paces = {name: shares(name, given.device, trials) for name in dict.fromkeys(name for name, _ in settings)}
        say(json.dumps(paces))
        ratios["share_of_compiled"] = min(kind["share"] for kinds in paces.values() for kind in kinds.values())
    for name, value in ratios.items():
        say(f"{name} {value:.3g} (claimed: {LIMITS[name]})")
    if given.json:
        told = {"device": torch.cuda.get_device_name() if given.device == "cuda" else "cpu"}
        told |= {"trials": trials, "quick": given.quick, "settings": rows, "seconds": speeds, "paces": paces}
        print(json.dumps({**ratios, **told, "provenance": provenance.capture()}, indent=1))


if __name__ == "__main__":
    main()
