"""Does PARITY stay flat when its steps are written down?

Section 7.2 of Hahn & Rofin, "Scratchpad Eliminates Sharpness" (Figure 11), and Theorem 7. An encoder reads x, a decoder
writes t_i = PARITY(x_1 ... x_i) = x_i t_{i-1}, one step after the other. Each step depends on two of the tokens before
it, however long x is; Theorem 6 then gives no bound, and the paper finds that sharpness is low and rises little with
length, up to 300 bits and more.

The network is trained on all steps at once with PARITY's own earlier steps as given. Measured are its accuracy with
those and with its own; of every step the sharpness (H Eq. 15) and the sensitivity, how many tokens there are, of x and
of t_1 ... t_{i-1}, whose flip changes the answer; and the mean log blow-up of the LayerNorms that read and that write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from teeter import measure
from teeter.data import bit_strings
from teeter.errors import NotFinite
from teeter.measure import Estimate
from teeter.measure.sharpness import Nudging
from teeter.models import MODELS
from teeter.runs import Together
from teeter.studies.devices import ARITHMETIC, device_here
from teeter.studies.hahn2024.learning import CONVERGED, POSITIONS, VARIANTS, worth_compiling
from teeter.studies.hahn2024.lengths import SHARPNESS, of_variant
from teeter.studies.hahn2024.nudged import answers, changes
from teeter.studies.over_runs import FAR, correlation, mean, slope
from teeter.studies.study import Claim, Study
from teeter.train import Job, Recipe, Stack, Stream, Trained, train_many
from teeter.train.state import own_randomness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["STUDY", "Spec"]


@dataclass(frozen=True)
class Spec:
    """One run. E.1 has the dimension, Table 1 the steps, rate and decay. Its batch is 1,024, the released one 128."""

    n: int
    seed: int
    variant: str = "text"
    dim: int = 32
    batch: int = 128
    steps: int = 10_000
    rate: float = 3e-4
    weight_decay: float = 0.1


QUICK: dict[str, Any] = dict(dim=8, batch=16, steps=15, rate=3e-3)
LENGTHS = (4, 39, 74, 109, 144, 179, 215, 250, 285, 320)  # the first of the released thirty from 4 to 1024
SMOKE = [Spec(3, 0, **QUICK), Spec(5, 0, **QUICK), Spec(3, 0, "released", **QUICK)]
SMALL = [Spec(n, seed, dim=16, batch=32, steps=400, rate=4e-3) for n in (4, 8, 12) for seed in range(2)]
PAPER = [Spec(n, seed) for n in LENGTHS for seed in range(3)] + [
    Spec(n, seed, "released")
    for n in LENGTHS[:7:2]
    for seed in range(6)  # 24, to tell r = 0 from 1/2
]

STRINGS, FEW = 256, 32  # for accuracy and sharpness; for the sensitivity of steps, which needs one for every token
_SEED = 1_000_000  # of those strings: no run's own


class Steps(nn.Module):
    """The outputs for all steps, each from PARITY's own earlier ones: (batch, n) of bits to as many numbers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, bits: Tensor) -> Tensor:
        return self.model(bits, all_positions=True)


def model_of(spec: Spec) -> Steps:
    """The network with the first weights of its seed, whatever else is drawn."""
    with own_randomness(torch.device("cpu"), spec.seed):
        return Steps(MODELS["scratchpad"](length=spec.n, dim=spec.dim, positions=VARIANTS[spec.variant]))


def steps_of(bits: Tensor) -> Tensor:
    """All t_i, as 0 and 1, where 1 stands for +1.

    >>> steps_of(torch.tensor([[1.0, -1.0, 1.0, -1.0]]))
    tensor([[1., 0., 0., 1.]])
    """
    return (1 + bits.cumprod(-1)) / 2


def stream_of(spec: Spec, device: torch.device) -> Stream:
    def stream(step: int) -> tuple[Tensor, Tensor]:
        bits = bit_strings(spec.n, spec.batch, seed=spec.seed, step=step, device=device)
        return bits, steps_of(bits)

    return stream


def in_signs(model: Steps) -> nn.Module:
    """The network that answers ±1 where this one answers 0 and 1: `Scratchpad` reads its own answers so."""
    signed: Any = copy.deepcopy(model.model)
    with torch.no_grad():
        signed.head.weight.mul_(2)
        signed.head.bias.mul_(2).sub_(1)
    return signed


def step_sensitivity(model: nn.Module, bits: Tensor) -> Tensor:
    """Of every step, how many of the tokens x_1 ... x_n, t_1 ... t_{i-1} change its sign when flipped: (n,), the means
    over strings. 2 for PARITY from its second step on, x_i and t_{i-1}. Later t_j are flipped too; no step reads them.
    """
    n = bits.shape[1]
    flips = 1 - 2 * torch.eye(2 * n - 1, device=bits.device)
    room = max(1, 2**24 // n**2)  # attention weighs every pair of places
    total = torch.zeros(n, dtype=torch.float64, device=bits.device)

    def positive(tokens: Tensor) -> Tensor:
        return model(tokens[:, :n], tokens[:, n:], all_positions=True) > 0

    with torch.no_grad():
        for tokens in torch.cat([bits, bits.cumprod(-1)[:, :-1]], 1).split(1):
            clean = positive(tokens)
            for some in flips.split(room):
                total += (positive(tokens * some) != clean).sum(0)
    return total / len(bits)


def measured(spec: Spec, model: Steps, device: torch.device) -> dict[str, float]:
    """The columns of a run."""
    bits = bit_strings(spec.n, STRINGS, seed=_SEED, device=device)
    targets, signed = steps_of(bits), in_signs(model)
    room = max(1, 2**22 // spec.n**2)
    (given,), nudged = answers(Stack([model]), bits)
    if not bool(torch.isfinite(given).all() and torch.isfinite(nudged).all()):
        raise NotFinite("the network returned NaN or infinity")
    with torch.no_grad():
        own = torch.cat([signed(part, "own", all_positions=True) for part in bits.split(4 * room)]) > 0
    right = own == (targets > 0.5)
    found = {
        "mse": float((given - targets).square().mean()),
        "accuracy": float(((given > 0.5) == (targets > 0.5)).float().mean()),
        "own_accuracy": float(right.float().mean()),
        "own_last": float(right[:, -1].float().mean()),
    }
    for name, change in changes(given, nudged[:, 0], targets).items():  # (draws, strings, steps)
        steps = change.mean((0, 1))
        found |= {name: float(steps.mean()), f"{name}_last": float(steps[-1]), f"{name}_most": float(steps.max())}
        if name == "sharpness":
            (doubt,) = Nudging().estimates(change.mean(-1).unsqueeze(0))
            found |= {"sharpness_low": doubt.low, "sharpness_high": doubt.high}
    places = {"quarter": (spec.n + 3) // 4, "half": (spec.n + 1) // 2, "last": spec.n}
    steps = step_sensitivity(signed, bits[:FEW])
    found |= {f"sensitivity_{name}": float(steps[i - 1]) for name, i in places.items()}
    found |= {"sensitivity_mean": float(steps.mean()), "sensitivity_most": float(steps.max())}
    blowup = measure.blowup(model, bits, batch=4 * room)
    for part in ("encoder", "decoder"):
        these = [name.startswith(f"model.{part}") for name in blowup.layers]
        found[f"blowup_{part}"] = float(blowup.factors[:, torch.tensor(these)].log().sum(-1).mean())
    return found | {"norm": measure.parameter_norm(model, skip=POSITIONS)}


_THREE = ("", "_last", "_most")
COLUMNS = (
    *("mse", "accuracy", "own_accuracy", "own_last", "sharpness_low", "sharpness_high"),
    *(f"{name}{which}" for name in SHARPNESS.values() for which in _THREE),
    *(f"sensitivity_{which}" for which in ("quarter", "half", "last", "mean", "most")),
    *("blowup_encoder", "blowup_decoder", "norm"),
)


def fate_of(variant: str, row: dict[str, float]) -> str:
    """The runs that count have converged: in the text those with an MSE of at most 1e-3; the released code keeps those
    with more than 99.9 % of the steps right when the network reads its own. "not learned": no better than half of the
    best constant's error."""
    exact = row["mse"] <= CONVERGED if variant == "text" else row["own_accuracy"] > 0.999
    return "converged" if exact else "not learned" if row["mse"] >= 0.125 else "not exact"


def row_of(spec: Spec, made: Trained, device: torch.device) -> dict[str, Any]:
    """What a run came to; one that diverged has no measures, and each is None."""
    if made.stopped != "diverged":
        with suppress(NotFinite):  # finite weights may give answers that are not
            row = measured(spec, cast(Steps, made.model), device)
            return {"fate": fate_of(spec.variant, row), **row}
    return {"fate": "diverged", **dict.fromkeys(COLUMNS)}


def run_together(specs: Sequence[Spec], folder: Path | None) -> list[list[dict[str, Any]]]:
    device = device_here()
    jobs = []
    for spec in specs:
        how: dict[str, Any] = dict(rate=spec.rate, weight_decay=spec.weight_decay)
        recipe = Recipe(spec.steps, spec.batch, arithmetic=ARITHMETIC[device.type], **how)
        jobs.append(Job(model_of(spec).to(device), stream_of(spec, device), recipe))
    steps = specs[0].steps
    compile = worth_compiling(device, len(specs) * steps * specs[0].n ** 2)  # attention weighs every pair of places
    made = train_many(jobs, every=steps, folder=folder, keep=max(steps // 4, 1), compile=compile)
    return [[row_of(spec, each, device)] for spec, each in zip(specs, made, strict=True)]


def run(spec: Spec) -> list[dict[str, Any]]:
    return run_together([spec], None)[0]


def kind_of(spec: Spec) -> tuple[Any, ...]:
    """What specs have in common that are trained as one program."""
    return spec.variant, spec.n, spec.dim, spec.batch, spec.steps


def converged(table: pd.DataFrame) -> Any:
    """The runs that count, see `fate_of`."""
    return table.loc[table.fate == "converged"]


def rise_of(column: str) -> Callable[[pd.DataFrame], Estimate]:
    """By how much a column rises with each bit of length, over runs that count."""
    return lambda table: slope(converged(table)["n"], converged(table)[column])


def goes_with(column: str) -> Callable[[pd.DataFrame], Estimate]:
    """The correlation of a column with the length, over runs that count."""
    return lambda table: correlation(converged(table)["n"], converged(table)[column])


def mean_of(column: str, longest: bool = False) -> Callable[[pd.DataFrame], Estimate]:
    """The mean of a column over runs that count, or over those of the longest inputs that any run had."""

    def measure(table: pd.DataFrame) -> Estimate:
        rows = converged(table)
        return mean(rows.loc[rows.n >= (table.n.max() if longest else 0), column], (0.0, FAR))

    return measure


def right_steps(table: pd.DataFrame) -> Estimate:
    """The mean share of steps that are right, over all runs; one that diverged has none."""
    return mean(table.own_accuracy.astype(float).fillna(0.0), (0.0, 1.0))


# The paper gives no numbers here. For PARITY, Theorem 7's O(1) is 2: x_i and t_{i-1}.
CLAIMS = [
    claim
    for variant, column in SHARPNESS.items()
    for claim in (
        Claim(
            f"share of steps right, reading its own ({variant})",
            1,
            of_variant(variant, right_steps),
            tolerance=0.001,
            resolution=0.01,
        ),
        Claim(
            f"slope of sharpness in n ({variant}; rule: within a hundredth of PARITY's 0.05)",
            0,
            of_variant(variant, rise_of(column)),
            5e-4,
            strict=True,
        ),
        Claim(
            f"Pearson r of sharpness and n ({variant}; rule: within 1/2)",
            0,
            of_variant(variant, goes_with(column)),
            0.5,
            strict=True,
        ),
        Claim(
            f"sharpness at the longest n ({variant}; rule: at most 0.1)",
            0,
            of_variant(variant, mean_of(column, longest=True)),
            tolerance=0.1,
            strict=True,
        ),
        Claim(
            f"sensitivity of the last step ({variant})",
            2,
            of_variant(variant, mean_of("sensitivity_last")),
            tolerance=0.02,
            resolution=0.1,
        ),
        Claim(
            f"slope of that in n ({variant}; rule: within 0.001)",
            0,
            of_variant(variant, rise_of("sensitivity_last")),
            1e-3,
            strict=True,
        ),
    )
]

DEPARTURES = [
    "The text speaks of lengths around 300; the released settings have thirty from 4 to 1,024, ten runs each. "
    "Attention over n places takes n^2: here are those lengths up to 320, three runs each, and with the released "
    "code's model every second of them up to 215, six runs each.",
    'Batches are of 128 strings in both variants, as in the released settings. The text has 1,024 (Table 1, "unless '
    'stated otherwise") and states nothing else here: for the variant of the text, 128 is our choice.',
    "The loss is the mean squared error over all steps with PARITY's own earlier ones as given, as in the released "
    "code; the paper does not say. There the decoder also reads t_n and its answer to that is dropped.",
    "Sharpness is that of all steps with PARITY's own earlier ones as given, the mean over steps, as in the released "
    "code; Eq. 15 is for a network with one answer. Columns also have the last step's and the largest.",
    "The paper's words are 'low' and 'no clear increase'. The rules are ours: a tenth of the sharpness that PARITY has "
    "without a scratchpad at 30 bits, which is about 1, a hundredth of its slope of 0.05, and a correlation below 1/2, "
    "since 24 to 30 runs cannot tell less (`long` has 50 to 100, and 0.3). The longest n is 320 for the text's model "
    "and 215 for the released code's.",
    "The text discards runs with an MSE above 1e-3, the released plot those with at most 99.9 % of steps right where "
    "the network reads its own. Each variant has its own rule, and its own measure: that of `released` is the rise of "
    "the error.",
    "A network that guesses one of n steps has an MSE of 1/(4n), which the text's rule lets pass from n = 250 on. One "
    "of ours does so, at n = 285: it never learned t_1, which is x_1, is right on 99.8 % of the steps where it is "
    "given PARITY's, and on 55 % where it reads its own, since all of them follow from the first.",
    "At 4 bits both models have a mean of 0.12, more than at any other length but one, and that hides what follows. "
    "From 39 bits on that of the text's model rises, from 0.05 to 0.11 at 320 (a correlation of 0.39, 0.01 to 0.67; "
    "0.00018 a bit, where PARITY without a scratchpad has 0.065, see `scaling`), while that of the released code's, up "
    "to 215 bits, does not measurably (-0.13, -0.56 to 0.36). No run has more than 0.25. At 320 bits the last step has "
    "0.05 and the sharpest 0.44, though the largest of more steps is also larger by chance.",
    "Training on a GPU is in tf32, of which the paper does not speak; all is measured in float32.",
    "Theorem 7 says O(1) for any automaton. PARITY's steps depend on two tokens, the first on one. A flipped token "
    "makes steps that do not follow from the bits, such as training never shows: a trained network may differ there.",
]


def figure(table: pd.DataFrame) -> Figure:
    """Sharpness over length (Figure 11), each variant's own, and the last step's sensitivity beside PARITY's in one."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2)
    kept, words, highest = converged(table), [], 0.1
    for i, variant in enumerate(name for name in VARIANTS if (table.variant == name).any()):
        rows, every = kept[kept.variant == variant], int((table.variant == variant).sum())
        words.append(f"{variant}: {every - len(rows)} of {every} runs discarded")
        highest = max([highest, *1.6 * rows[SHARPNESS[variant]]])
        for axes, column in ((left, SHARPNESS[variant]), (right, "sensitivity_last")):
            means = rows.groupby("n")[column].mean()
            axes.plot(rows.n, rows[column], "o", color=f"C{i}", alpha=0.5, markersize=4, markeredgewidth=0)
            axes.plot(means.index, means, color=f"C{i}", linewidth=1.2, label=variant)
        wrong = rows[rows.own_accuracy < 0.99]
        if len(wrong):
            left.plot(wrong.n, wrong[SHARPNESS[variant]], "kx", markersize=6, label="wrong by its own steps")
    longest = int(table.n.max())
    left.set(xlabel="input length $n$", ylabel="sharpness", xlim=(0, 1.05 * longest))
    left.set_ylim(0, highest)
    left.legend(loc="upper right", fontsize=8)
    left.set_title("\n".join(words), loc="left", fontsize=8.5)
    right.plot([1, longest], [1, longest], color="0.5", linewidth=1.2)
    right.annotate("PARITY in one step", (longest, longest), xytext=(0, 5), textcoords="offset points", ha="right")
    right.set(xlabel="input length $n$", xscale="log", yscale="log", xlim=(0.9, 1.3 * longest), ylim=(0.9, 2 * longest))
    ticks = [4**k for k in range(6) if 4**k <= longest]
    for axis in (right.xaxis, right.yaxis):
        axis.set_ticks(ticks, [str(n) for n in ticks])
        axis.set_ticks([], minor=True)
    right.set_title("sensitivity of the last step", loc="left", fontsize=8.5)
    return drawing


STUDY = Study(
    name="hahn2024/scratchpad",
    paper="hahn2024",
    where="Section 7.2, Figure 11; Theorem 7",
    title="PARITY with a scratchpad",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=Together(key=kind_of, run=run_together, most=6),
)
