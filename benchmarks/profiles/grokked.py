"""Why sensitivity rises again once a + b mod 113 is grokked: is it the rounding of the loss?

V calls it noise reduction (7.3, A.5). In the runs of `vasudeva2025/grokking` it comes when the training loss has fallen
to about 2e-7 and jumps, by a factor of a thousand and more. From 1 to the next number of float32, in which the loss is
computed, it is 1.2e-7. Here the same models are trained with the loss, and nothing else, in float64.

Written to stdout for every model: the epoch of grokking; from there on the least training loss and its epoch, the
largest training loss after that, and by how many times sensitivity rises most.

    python benchmarks/profiles/grokked.py --variant text --seed 0 [--float32] [--epochs N] > record.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

import pandas as pd
from torch import Tensor
from torch.nn.functional import cross_entropy

from teeter.memory import keep_freed_memory
from teeter.products import quick_products
from teeter.runs import provenance
from teeter.studies.vasudeva2025 import adding, grokking
from teeter.studies.vasudeva2025.curves import largest_rise
from teeter.train import LOSSES


def in_float64(outputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(outputs.double(), targets)


def after(rows: pd.DataFrame) -> dict[str, Any]:
    """What becomes of a run that has grokked."""
    rows = rows.sort_values("epoch").set_index("epoch")
    course = grokking.course_of(rows.reset_index())
    if course is None:
        return {"grokked": None}
    rows = rows.loc[course.grokked :]
    least = int(rows.train_loss.idxmin())
    sensitivity = grokking.least(rows.sensitivity)
    low, high = largest_rise(sensitivity)
    return {
        "grokked": course.grokked,
        "least_loss": float(rows.train_loss[least]),
        "at": least,
        "largest_loss_from_there": float(rows.train_loss.loc[least:].max()),
        "rise": round(float(sensitivity[high] / sensitivity[low]), 2),
        "rise_from": int(rows.index[low]),
        "rise_to": int(rows.index[high]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=adding.VARIANTS, default="text")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=grokking.PAPER[0].epochs)
    parser.add_argument("--float32", action="store_true", help="the loss as the study has it")
    given = parser.parse_args()
    origin = provenance.capture()
    keep_freed_memory()
    if not given.float32:
        LOSSES["cross-entropy"] = in_float64
    spec = replace(grokking.PAPER[0], variant=given.variant, epochs=given.epochs)
    with quick_products():
        runs = adding.run_all([replace(spec, seed=seed) for seed in given.seed], None)
    found = [{"seed": seed, **after(pd.DataFrame(rows))} for seed, rows in zip(given.seed, runs, strict=True)]
    loss = "float32" if given.float32 else "float64"
    print(json.dumps({"variant": given.variant, "loss": loss, "runs": found, "provenance": origin}, indent=1))


if __name__ == "__main__":
    main()
