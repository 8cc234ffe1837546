"""How sensitive are PARITY, MAJORITY, FIRST and MEAN?

Section 3 of Hahn & Rofin defines average sensitivity and states it for four functions; section 4 uses their
sensitivity at single inputs. All of it is exact here: every function is evaluated on all 2^n inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from teeter import cube
from teeter.measure import Estimate
from teeter.studies.study import Claim, Study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Spec"]


@dataclass(frozen=True)
class Spec:
    function: str
    n: int


NAMES = ("parity", "majority", "first", "mean")
SMOKE = [Spec(name, n) for name in NAMES for n in range(1, 11)]
SMALL = [Spec(name, n) for name in NAMES for n in range(1, 19)]
PAPER = [Spec(name, n) for name in NAMES for n in range(1, 25)]


def closed_form(name: str, n: int) -> float:
    """as_n as the paper states it; for MAJORITY the edges between the two middle layers, counted from both ends.

    >>> [closed_form("majority", n) for n in (1, 2, 3, 4, 5)]
    [1.0, 1.0, 1.5, 1.5, 1.875]
    """
    if name == "majority":
        return n * math.comb(n - 1, (n - 1) // 2) / 2 ** (n - 1)
    return {"parity": float(n), "first": 1.0, "mean": 1 / n}[name]


def run(spec: Spec) -> list[dict[str, Any]]:
    result = cube.analyse(cube.truth_table(cube.function(spec.function), spec.n))
    return [
        {
            "average": result.average_sensitivity,
            "maximum": result.max_sensitivity,
            "closed_form": closed_form(spec.function, spec.n),
        }
    ]


def _farthest(name: str, value: Callable[[pd.DataFrame], pd.Series], target: float):
    """The value at the n where it is farthest from the target."""

    def measure(table: pd.DataFrame) -> Estimate:
        values = value(table.loc[table["function"] == name]).to_numpy()
        return Estimate.exact(float(values[abs(values - target).argmax()]), n=len(values))  # a NaN counts as farthest

    return measure


def _exponent(name: str, column: str):
    """The power of n by which a column grows from half the largest n on, over odd n."""

    def measure(table: pd.DataFrame) -> Estimate:
        rows = table.loc[(table["function"] == name) & (table["n"] % 2 == 1)].sort_values("n")
        last = rows.iloc[-1]
        middle = rows[rows.n >= last.n / 2].iloc[0]
        return Estimate.exact(math.log(last[column] / middle[column]) / math.log(last.n / middle.n), n=2)

    return measure


ROUNDING = 1e-9  # of double precision, far below any printed digit
CLAIMS = [
    Claim("PARITY: as_n / n", 1, _farthest("parity", lambda t: t.average / t.n, 1)),
    Claim("FIRST: as_n", 1, _farthest("first", lambda t: t.average, 1)),
    Claim("MEAN: n as_n", 1, _farthest("mean", lambda t: t.average * t.n, 1), ROUNDING),
    Claim(
        "MAJORITY: as_n over its closed form",
        1,
        _farthest("majority", lambda t: t.average / t.closed_form, 1),
        ROUNDING,
    ),
    Claim("MAJORITY: exponent of as_n in n (Theta of sqrt n)", 0.5, _exponent("majority", "average"), 0.05),
    Claim(
        "MAJORITY: largest s(f,x) / n (s(f,x) = n near balance)",
        1,
        _farthest("majority", lambda t: t.maximum / t.n, 1),
        ROUNDING,
    ),
    Claim("MEAN: exponent of s(f,x) in n (section 4: s(f,x) ~ 1/n^2)", -2, _exponent("mean", "maximum"), 0.05),
]

DEPARTURES = [
    "MAJORITY on nearly balanced strings: the paper says s(f,x) = n. Only flips of the majority's own bits change the "
    "answer, so the largest value is (n+1)/2 for odd n and n/2 + 1 for even n. The paper's conclusion about the "
    "blow-up there (Eq. 12) needs only that it grows like n, and stands.",
    "MEAN: section 4 says s(f,x) ~ 1/n^2. By Eq. 6 each of n flips contributes (2/n)^2 / 4, so s(f,x) = 1/n at every "
    "input, which is what section 3's as_n = 1/n says too.",
    "The published value beside MAJORITY's closed form is the ratio 1: the paper gives the order Theta(sqrt n) and "
    "cites O'Donnell (2014, Ex. 2.22); the closed form counts edges between the two middle layers of the cube.",
]


def figure(table: pd.DataFrame) -> Figure:
    """as_n over n: what was measured as dots, the closed form as a line."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = drawing.subplots()
    for i, name in enumerate(NAMES):
        rows = table.loc[table["function"] == name].sort_values("n")
        axes.plot(rows.n, rows.closed_form, color=f"C{i}", linewidth=1.2)
        axes.plot(rows.n, rows.average, "o", color=f"C{i}", markersize=4.5, label=name.upper())
        axes.annotate(
            name.upper(),
            (rows.n.iloc[-1], rows.average.iloc[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=f"C{i}",
        )
    axes.set(xscale="log", yscale="log", xlabel="input length $n$", ylabel="average sensitivity $as_n(f)$")
    ticks = [n for n in (1, 2, 4, 8, 16, 24) if n <= table.n.max()]
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.9, table.n.max() * 2.1)
    axes.set_title("Dots: all $2^n$ inputs. Lines: closed forms.", loc="left")
    return drawing


STUDY = Study(
    name="hahn2024/functions",
    paper="hahn2024",
    where="Section 3",
    title="Average sensitivity of PARITY, MAJORITY, FIRST and MEAN",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
)
