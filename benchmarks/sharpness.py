"""How often does the 95 % interval of `teeter.sharpness` hold the truth, at ten, 40 and 160 draws of the weights?

The networks are small and of tanh, as torch initialises them; every repetition has inputs and draws of its own. The
truth is the mean over 40,000 draws of our own making, on fresh inputs.

    python benchmarks/sharpness.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, vmap

from teeter.measure import sharpness
from teeter.runs import provenance

CASES = (("2-3-1", 0.1), ("3-4-1", 0.1), ("6-16-1", 0.1), ("2-3-1", 0.02))
DRAWS, INPUTS = (10, 40, 160), 1000


def network(name: str) -> tuple[int, nn.Module]:
    inputs, width, _ = map(int, name.split("-"))
    torch.manual_seed(0)
    return inputs, nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, 1)).double()


@torch.no_grad()
def truth(model: nn.Module, inputs: int, rho: float, times: int = 200) -> float:
    dice, found = torch.Generator().manual_seed(10**6), []
    for _ in range(times):
        x = torch.randn(500, inputs, generator=dice).double()
        weights = {
            name: each + rho * torch.randn(200, *each.shape, generator=dice, dtype=each.dtype)
            for name, each in model.named_parameters()
        }
        nudged = vmap(lambda own, x=x: functional_call(model, own, (x,)))(weights)
        found.append(float((nudged - model(x)).square().mean()))
    return sum(found) / times


def covered(name: str, rho: float, draws: int, repetitions: int) -> dict[str, Any]:
    inputs, model = network(name)
    true, dice = truth(model, inputs, rho), torch.Generator().manual_seed(5)
    found = [
        sharpness(model, torch.randn(INPUTS, inputs, generator=dice).double(), rho=rho, draws=draws, seed=k)
        for k in range(repetitions)
    ]
    held = sum(each.low <= true <= each.high for each in found) / repetitions
    return {"network": name, "rho": rho, "draws": draws, "held": held, "low": sum(e.high < true for e in found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 repetitions in place of 400")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    given = parser.parse_args()
    repetitions = 40 if given.quick else 400
    rows = [covered(*case, draws, repetitions) for case in CASES for draws in DRAWS]
    if given.json:
        print(json.dumps({"repetitions": repetitions, "rows": rows, "provenance": provenance.capture()}, indent=1))
        return
    for row in rows:
        print(f"{row['network']}, rho {row['rho']}, {row['draws']} draws: {100 * row['held']:.1f} %")


if __name__ == "__main__":
    main()
