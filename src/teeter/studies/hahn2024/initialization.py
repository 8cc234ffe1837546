"""How sensitive are transformers before any training, beside LSTMs, GRUs and MLPs?

Beyond the paper. Section 6 of Hahn & Rofin concludes from Eq. 70 that sensitive transformers fill a small volume of
parameter space, and that this is why random transformers have low average sensitivity, "more so than recurrent
networks" (after Bhattamishra et al. 2023). Here random networks of four kinds are measured over the input length, the
depth, the width, and the scale by which all weight matrices are multiplied.

The output of an untrained network is a real number that hardly varies around some constant, so that its sign is often
the same for all inputs and its sensitivity 0 for no good reason. Two measures do not depend on where that constant is:

    flip     as_n of the answer "above the median output?", a balanced ±1 function: n/2 for a random function;
    square   as_n by Eq. 6 of the output less its mean, over its standard deviation: the mean degree of its Fourier
             weight (Eq. 17), at least 1 for any function (Poincaré), n/2 for a random one.

Up to 12 bits they are exact, on the whole cube; beyond that they are sampled, on strings that each network has for
itself, and have 95 % intervals (`_low`, `_high`): the last bit, where models are read, is flipped in all of them, and
one of the others in each. Columns also hold the variance of the output, whether its sign is constant, and the share
of `square` that is due to the last bit, where models are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from teeter import counter, cube
from teeter.data import bit_strings
from teeter.measure import Estimate
from teeter.measure.arithmetic import computing_in
from teeter.models import MODELS
from teeter.studies.devices import device_here
from teeter.studies.over_runs import share, slope
from teeter.studies.study import Claim, Study
from teeter.train.state import own_randomness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Spec", "measured", "random_model"]


@dataclass(frozen=True)
class Spec:
    model: str
    n: int
    scale: float = 1.0
    layers: int = 2
    dim: int = 64
    models: int = 20  # drawn with seeds 0, 1, ...
    strings: int = 4_096  # beyond 12 bits


KINDS = ("encoder", "lstm", "gru", "mlp")
NAMES = {"encoder": "transformer", "lstm": "LSTM", "gru": "GRU", "mlp": "MLP"}
EXACT = 12  # bits, of which all strings are looked at
USUAL, LARGE = 1.0, 4.0  # scales: torch's own, and one at which all networks are far from linear
_STRINGS = 2_000_000  # and the number of a network: a seed that no other has
_AT_ONCE = {"cuda": 4096, "cpu": 128}  # strings: what a processor holds near it


def grid(lengths: list[int], scales: list[float], layers: list[int], dims: list[int], at: int, **more: int):
    """All lengths at two scales; scales, depths and widths at one length each."""
    specs = [Spec(kind, n, scale, **more) for kind in KINDS for n in lengths for scale in (USUAL, LARGE)]
    specs += [Spec(kind, at, scale, **more) for kind in KINDS for scale in scales]
    specs += [Spec(kind, at, scale, depth, **more) for kind in KINDS for depth in layers for scale in (USUAL, LARGE)]
    specs += [Spec(kind, at, scale, dim=dim, **more) for kind in KINDS for dim in dims for scale in (USUAL, LARGE)]
    return list(dict.fromkeys(specs))


SMOKE = grid([4, 13], [0.5], [1], [8], at=4, models=2, strings=64)
SMALL = grid([4, 8, 12, 24], [0.5, 2.0, 8.0], [1, 4], [8, 32], at=8, models=6, strings=512)
PAPER = grid(
    [4, 6, 8, 10, 12, 16, 32, 64, 128],
    [0.25, 0.5, 2.0, 8.0, 16.0],
    [1, 4, 8],
    [8, 16, 32, 128, 256],
    at=10,
)


def random_model(spec: Spec, seed: int) -> nn.Module:
    """A network as torch begins it, its matrices (all weights but biases and norms) multiplied by the scale."""
    with own_randomness(torch.device("cpu"), seed):
        if spec.model == "mlp":
            sizes = [spec.n, *[spec.dim] * spec.layers]
            hidden = [part for i, o in zip(sizes, sizes[1:], strict=False) for part in (nn.Linear(i, o), nn.ReLU())]
            model: nn.Module = nn.Sequential(*hidden, nn.Linear(spec.dim, 1), nn.Flatten(0))
        else:
            more: dict[str, Any] = {"length": spec.n, "same_start": False} if spec.model == "encoder" else {}
            model = MODELS[spec.model](dim=spec.dim, layers=spec.layers, **more)
    for weight in model.parameters():
        if weight.ndim > 1:
            weight.data *= spec.scale
    return model.eval()


def run(spec: Spec) -> list[dict[str, Any]]:
    device = device_here()
    rows = []
    for seed in range(spec.models):
        model = random_model(spec, seed).to(device)
        with computing_in("float32", device):  # without a word, cuDNN's LSTM and GRU would compute in tf32
            rows.append({"seed": seed, **measured(model, spec.n, spec.strings, device, seed)})
    return rows


def measured(
    f: Callable[[Tensor], Tensor], n: int, strings: int, device: torch.device, seed: int = 0
) -> dict[str, float]:
    """Both measures of a real function on the cube, and what surrounds them; a constant function has as_n = 0."""
    exact, at_once = n <= EXACT, _AT_ONCE[device.type]

    def outputs(bits: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.cat([f(part) for part in bits.split(at_once)]).double()

    x = _whole(n, device) if exact else bit_strings(n, strings, seed=_STRINGS + seed, device=device)
    row = torch.arange(len(x), device=device)
    output, last = outputs(x), outputs(_flipped(x, torch.full_like(row, n - 1)))
    middle, mean, variance = output.median(), output.mean(), output.var(correction=0)
    found = {"variance": float(variance), "constant": float(output.sign().abs().sum() == output.sign().sum().abs())}
    if variance <= 1e-12 * mean.square():  # only rounding is left
        return {**found, **_columns("flip", _NONE), **_columns("square", _NONE), "last": 0.0}
    if exact:
        flip = Estimate.exact(cube.average_sensitivity(_above(output, middle)))
        square = Estimate.exact(cube.average_sensitivity((output - mean) / variance.sqrt()))
    else:
        other = outputs(_flipped(x, counter.integers(n - 1, _STRINGS + seed, 1, row)))
        changed, changed_other = (_above(each, middle) != _above(output, middle) for each in (last, other))
        flip = _flips(changed.cpu().numpy(), changed_other.cpu().numpy(), n - 1)
        steps, other_steps = ((each - output).square() / 4 for each in (last, other))
        square = _squares(steps, other_steps, (output - mean).square(), n - 1)
    share_of_last = float((last - output).square().mean() / 4 / variance) / max(square.value, 1e-12)
    return {**found, **_columns("flip", flip), **_columns("square", square), "last": share_of_last}


_NONE = Estimate.exact(0.0)


def _flipped(x: Tensor, bit: Tensor) -> Tensor:
    """These strings, of each of them one bit flipped."""
    index = bit.unsqueeze(1)
    return x.scatter(1, index, -x.gather(1, index))


def _flips(last: np.ndarray, other: np.ndarray, others: int) -> Estimate:
    """How often the answer changes with the last bit, and with one of the others, times as many as there are. Both come
    of the same strings: their doubts are added up, as if they went together."""
    one, rest = share(last), share(other)
    value = one.value + others * rest.value
    below = one.value - one.low + others * (rest.value - rest.low)
    above = one.high - one.value + others * (rest.high - rest.value)
    return Estimate(value, value - below, value + above, len(last))


def _squares(last: Tensor, other: Tensor, spread: Tensor, others: int) -> Estimate:
    """The same for squares over the variance, a ratio of two means over the same strings."""
    total = last + others * other
    value = float(total.mean() / spread.mean())
    half = 1.96 * float((total - value * spread).std() / spread.mean()) / len(total) ** 0.5
    return Estimate(value, max(0.0, value - half), value + half, len(total))


def _columns(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _whole(n: int, device: torch.device) -> Tensor:
    return cube.points(n, dtype=torch.float32, device=device)


def _above(output: Tensor, middle: Tensor) -> Tensor:
    return torch.where(output > middle, 1.0, -1.0).double()


def _base(table: pd.DataFrame) -> pd.DataFrame:
    return table.loc[(table.layers == 2) & (table.dim == 64)]


def lower(kind: str, column: str, scale: float) -> Callable[[pd.DataFrame], Estimate]:
    """In how many pairs, one of each kind, the transformer is the less sensitive: at the largest n.

    Networks of one seed are compared, so that the pairs are independent.
    """

    def measure(table: pd.DataFrame) -> Estimate:
        here = _base(table)
        here = here.loc[(here.scale == scale) & (here.n == here.n.max())]
        pairs = here.pivot(index="seed", columns="model", values=column)
        return share((pairs["encoder"] < pairs[kind]).to_numpy())

    return measure


def exponent(kind: str, scale: float, raw: bool = False) -> Callable[[pd.DataFrame], Estimate]:
    """The power of n by which `square` grows (raw: that of the output as it is), from n = 8 where there are such."""

    def measure(table: pd.DataFrame) -> Estimate:
        here = _base(table)
        here = here.loc[(here.model == kind) & (here.scale == scale) & (here.square > 0)]
        lengths = sorted(here.n.unique())
        here = here.loc[here.n >= min(8, lengths[-2])] if len(lengths) > 1 else here
        value = here["square"] * (here["variance"] if raw else 1.0)
        return slope(np.log(here["n"]), np.log(value), (-3.0, 3.0))

    return measure


def _pairs(kind: str, column: str, scale: float) -> Claim:
    return Claim(
        f"{NAMES[kind]}, scale {scale:g}: pairs in which the transformer has the lower {column} (rule: 0.6 or more)",
        1,
        lower(kind, column, scale),
        tolerance=0.4,
        strict=True,
    )


CLAIMS = [
    *[_pairs(kind, "flip", scale) for scale in (USUAL, LARGE) for kind in ("lstm", "gru", "mlp")],
    *[_pairs("lstm", "square", scale) for scale in (USUAL, LARGE)],
    *[
        Claim(
            f"Transformer, scale {scale:g}: exponent of square in n (Eq. 70: 5/8 at most; rule: -1/2 to 1/2)",
            0,
            exponent("encoder", scale),
            tolerance=0.5,
            strict=True,
        )
        for scale in (USUAL, LARGE)
    ],
    Claim(
        "Transformer, scale 1: exponent of as_n of the output as it is (Eq. 70: 5/8 at most; rule: -1 to 1/2)",
        -0.25,
        exponent("encoder", USUAL, raw=True),
        tolerance=0.75,
        strict=True,
    ),
    *[
        Claim(
            f"LSTM, scale {scale:g}: exponent of square in n (no prediction; yardstick: the transformer's rule)",
            0,
            exponent("lstm", scale),
            tolerance=0.5,
            strict=True,
        )
        for scale in (USUAL, LARGE)
    ],
]

DEPARTURES = [
    "Beyond the paper: section 6 states the comparison with recurrent networks in words, after Bhattamishra et al. "
    "(2023), and has no experiment of its own. The rules and the comparison with GRUs and MLPs are ours.",
    "Eq. 70 bounds the sensitivity of a perturbed transformer whose output lies in [-1, 1]; an untrained output hardly "
    "varies, and its sign is often constant (column `constant`). We ask for the median instead of 0 and divide by the "
    "standard deviation; the exponent of the output as it is stands beside. By Eq. 70 that exponent is at most 1/2 + 2 "
    "zeta beside a root of log n, where zeta is above twice the layers over the dimension, which makes 5/8 here: our "
    "rule asks for less.",
    "That random transformers are less sensitive than recurrent networks holds at torch's own scale, where at 10 bits "
    "0.84 of a transformer's sensitivity is due to the last bit alone, the one it is read at. With all matrices four "
    "times as large it is 0.17 of it, and transformers are more sensitive than GRUs in 19 of 20 pairs at 128 bits, "
    "than LSTMs in 13, and in 18 by `square`.",
    "Beyond 12 bits a network has 4,096 strings; at 128 bits, the half-width of its interval is 11 to 23 % of flip and "
    "1 to 16 % of square, on average over networks of a kind. Strings of one kind's networks, at one length, are "
    "independent.",
    "Layers are drawn independently here; torch's TransformerEncoder begins all with the same weights, as H's do.",
    "Transformers and recurrent networks are read at the last position, MLPs have none; `last` says how much of the "
    "sensitivity the last bit alone makes up. The recurrent networks have no position vectors, the MLPs no tokens.",
    "The scale multiplies embeddings, attention, feed-forward, recurrent and head matrices alike; a LayerNorm undoes "
    "part of it in a transformer, and nothing does in the others.",
]


def figure(table: pd.DataFrame) -> Figure:
    """Sensitivity over n at two scales, then over scale, depth and width at one n. Shaded: quartiles over networks."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.8, 7.4), layout="constrained")
    panels = drawing.subplots(3, 2)
    at = table.loc[table.dim != 64, "n"].iloc[0]
    base = _base(table)
    large = table.loc[(table.n == at) & (table.scale == LARGE)]
    above, share_of_last = "as$_n$ of “above the median?”", "share of the last bit"
    views = [
        (base.loc[base.scale == USUAL], "n", "flip", "input length $n$, scale 1", above),
        (base.loc[base.scale == LARGE], "n", "flip", f"input length $n$, scale {LARGE:g}", ""),
        (base.loc[base.n == at], "scale", "flip", f"scale of the weights, $n$ = {at}", above),
        (base.loc[base.n == at], "scale", "last", f"scale of the weights, $n$ = {at}", share_of_last),
        (large.loc[large.dim == 64], "layers", "flip", f"layers, $n$ = {at}, scale {LARGE:g}", above),
        (large.loc[large.layers == 2], "dim", "flip", f"width, $n$ = {at}, scale {LARGE:g}", ""),
    ]
    for axes, (rows, column, value, label, side) in zip(panels.flat, views, strict=True):
        for i, kind in enumerate(KINDS):
            by = rows.loc[rows.model == kind].groupby(column)[value]
            low, middle, high = (by.quantile(q) for q in (0.25, 0.5, 0.75))
            axes.fill_between(middle.index, low, high, color=f"C{i}", alpha=0.15, linewidth=0)
            axes.plot(middle.index, middle, "o-", color=f"C{i}", markersize=3.5, linewidth=1.2, label=NAMES[kind])
        values = sorted(rows[column].unique())
        ticks = [value for value in values if np.log2(value) % 1 == 0] or values  # others come too close
        axes.set(xscale="log", xlabel=label, ylabel=side)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
    lengths = np.array(sorted(base["n"].unique()))
    for axes in panels[0]:
        axes.plot(lengths, lengths / 2, color="0.4", linewidth=1, linestyle="--")
        axes.plot(lengths, np.sqrt(2 * lengths / np.pi), color="0.4", linewidth=1, linestyle=":")
        axes.set(yscale="log", ylim=(0.45, 1.2 * lengths.max() / 2))
    panels[0, 0].set_title("dashed: a random function; dotted: MAJORITY", loc="left", fontsize=8.5)
    panels[0, 1].set_title("shaded: middle half of the networks", loc="left", fontsize=8.5)
    panels[0, 0].legend(fontsize=8.5)
    return drawing


STUDY = Study(
    name="hahn2024/initialization",
    paper="hahn2024",
    where="Section 6 (beyond the paper)",
    title="Average sensitivity of random, untrained networks",
    about=__doc__ or "",
    revision=3,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
)
