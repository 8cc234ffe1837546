"""`teeter cube`: exact numbers of a function on n bits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from teeter.cli.app import JsonOption, app, print_json
from teeter.errors import UnknownName

if TYPE_CHECKING:
    from teeter.cube import Analysis

__all__ = ["cube"]


@app.command()
def cube(
    name: Annotated[str, typer.Argument(help="parity, majority, first, mean, sparse-parity, tribes, ...")],
    n: Annotated[int, typer.Option("--n", help="Number of bits.")],
    k: Annotated[
        int | None, typer.Option("--k", help="Parameter of sparse-parity, dictator, threshold, tribes.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Which random-function.")] = 0,
    rho: Annotated[float, typer.Option("--rho", min=-1, max=1, help="Correlation for noise stability.")] = 0.9,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw to this file (.svg, .png, .pdf).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Exact sensitivity and spectrum of a function on n bits."""
    from teeter import cube as room
    from teeter.report import cube_figure, drawable, save

    if plot is not None:
        drawable(plot)
    k = _parameter(name, k)
    title = name if k is None else f"{name}, k = {k}"
    result = room.analyse(room.truth_table(room.function(name, k=k, seed=seed), n))
    drawn = None if plot is None else save(lambda: cube_figure(result, f"{title}, n = {n}"), plot)
    facts = _facts(result, rho)
    if as_json:
        print_json({"function": name, "n": n, "k": k, "seed": seed, "rho": rho, **facts})
        return
    from rich.table import Table

    table = Table(title=f"{title}, on n = {n} bits", title_justify="left", title_style="bold", show_header=False)
    for label, value in facts.items():
        if value is not None:
            table.add_row(label.replace("_", " "), _words(value))
    Console().print(table)
    if drawn is not None:
        print(f"picture: {drawn}", file=sys.stderr)


def _parameter(name: str, k: int | None) -> int | None:
    """The k that is used, where the function has one; names that do not exist are answered as they are typed."""
    from teeter.cube.functions import FUNCTIONS, MADE

    plain = name.strip().lower().replace("-", "_")
    if plain not in FUNCTIONS:
        raise UnknownName("function", name, [known.replace("_", "-") for known in FUNCTIONS])
    return MADE[plain][1] if k is None and plain in MADE else k


def _facts(result: Analysis, rho: float) -> dict[str, Any]:
    return {
        "average_sensitivity": result.average_sensitivity,
        "max_sensitivity": result.max_sensitivity,
        "degree": result.degree,
        "noise_stability": result.noise_stability(rho),
        "flip_probability": result.flip_probability(rho),
        "influences": result.influences.tolist(),
        "degree_profile": result.profile.tolist(),
    }


def _words(value: float | int | list[float]) -> str:
    if not isinstance(value, list):
        return f"{value:.10g}"
    same = len({f"{v:.10g}" for v in value}) == 1 and len(value) > 1
    return f"{value[0]:.6g} for every bit" if same else "  ".join(f"{v:.4g}" for v in value)
