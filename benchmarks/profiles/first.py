"""Why are some networks that learn FIRST on long inputs sharp, and others that are as accurate flat?

Networks of `hahn2024/long` are trained as there and looked into: the sharpness of noise on one part of the weights at a
time, and the smallest standard deviation by which a LayerNorm before the last layer divides at the first position, the
one that counts, beside the median at all positions; and how far apart the vectors of the two tokens begin, which a seed
has in common at all lengths. Five of 164 bits take two cores 25 minutes; with a folder, what was interrupted goes on.

    python benchmarks/profiles/first.py [--bits N] [--seeds K] [--begin S] [--folder F] [--json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from teeter import measure
from teeter.runs import provenance
from teeter.studies.devices import device_here
from teeter.studies.hahn2024.learning import Learner, few_strings, learn, model_of

ROWS = 2_500  # steps from one row to the next


def parts(model: nn.Module) -> list[str]:
    """The modules that hold weights, but for position vectors, which are not nudged."""
    names = dict.fromkeys(name.rpartition(".")[0] for name, _ in model.named_parameters())
    return [name for name in names if not name.endswith("position")]


def sharpness_of(model: nn.Module, x: Tensor, part: str) -> float:
    """In the units of ±1, where only this part is nudged."""
    skip = tuple(name for name, _ in model.named_parameters() if name.rpartition(".")[0] != part)
    return 4 * measure.sharpness(model, x, skip=skip).value


def divisors(model: nn.Module, x: Tensor) -> dict[str, tuple[float, float]]:
    """Of every LayerNorm before the last layer: the smallest standard deviation at the first position over all inputs,
    and the median over all positions."""
    last = f"layers.{len(model.layers) - 1}."  # type: ignore[arg-type]
    met: dict[str, Tensor] = {}
    norms = {name: part for name, part in model.named_modules() if isinstance(part, nn.LayerNorm) and last not in name}

    def seen(name: str) -> Any:
        return lambda norm, given: met.__setitem__(name, given[0].std(-1, correction=0))

    hooks = [norm.register_forward_pre_hook(seen(name)) for name, norm in norms.items()]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return {name: (float(each[:, 0].min()), float(each.median())) for name, each in met.items()}


def apart(spec: Learner) -> float:
    """The distance of the two tokens' vectors before training."""
    vectors = model_of(spec).get_parameter("embedding.token.weight").detach()
    return float((vectors[0] - vectors[1]).norm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=164)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--begin", type=int, default=0, help="the first seed")
    parser.add_argument("--folder", type=Path, help="where what is under way is kept")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    given = parser.parse_args()
    specs = [
        Learner("first", given.bits, seed, dim=4, batch=128) for seed in range(given.begin, given.begin + given.seeds)
    ]
    x, rows = few_strings(given.bits, device_here()), []
    for spec, made in zip(specs, learn(specs, given.folder, every=ROWS), strict=True):
        end = made.rows[-1]
        row = {"seed": spec.seed, "mse": end["mse"], "sharpness": end["sharpness"], "apart": apart(spec)}
        row["divisors"] = divisors(made.model, x)
        row["smallest"] = min(first for first, _ in row["divisors"].values())
        row["parts"] = {part: sharpness_of(made.model, x, part) for part in parts(made.model)}
        rows.append(row)
    if given.json:
        print(json.dumps({"bits": given.bits, "rows": rows, "provenance": provenance.capture()}, indent=1))
        return
    for row in rows:
        most = sorted(row["parts"], key=row["parts"].get, reverse=True)[:3]
        said = ", ".join(f"{part} {row['parts'][part]:.3f}" for part in most)
        print(
            f"seed {row['seed']}: sharpness {row['sharpness']:.3f}, smallest divisor {row['smallest']:.3f}, "
            f"apart {row['apart']:.1f}; {said}"
        )


if __name__ == "__main__":
    main()
