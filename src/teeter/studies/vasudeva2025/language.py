"""Are transformers less sensitive than LSTMs on language, and how much of that is where the noise goes in?

Section 6 of Vasudeva et al., with A.4 and the language rows of Table 4: LSTM, RoBERTa with softmax and with ReLU
attention, and GPT-2 are trained from scratch on MRPC and QQP, pairs of texts with the question whether they say the
same. Gaussian noise of variance 15 goes to the embedding of one token at a time. The paper finds LSTMs more sensitive,
at first as in the end, above all to late tokens; RoBERTa with ReLU less than with softmax, which is sensitive to its
first token <s>; GPT-2 between them and the LSTM. With noise on all tokens at once (variance 0.5) the gap is smaller.

By the text noise comes after the embedding's LayerNorm. The released code has it there for the LSTM, but before
position and LayerNorm for RoBERTa, so that it is normalised in one model and not in the other. Here every model is
nudged at both places, also by noise in units of the embedding's own size.

Models are compared where their training accuracy is the same (see `matching`), and the figure shows where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teeter.measure import Estimate
from teeter.runs import Together
from teeter.studies.over_runs import mean, share, unknown
from teeter.studies.study import Claim, Study
from teeter.studies.vasudeva2025.language_panels import draw
from teeter.studies.vasudeva2025.language_rows import (
    ALL_TOKENS,
    GPT2,
    LSTM,
    MAIN,
    MAPS,
    MEANWHILE,
    NAMES,
    NUDGES,
    RELEASED,
    RELU,
    ROBERTA,
    WEAK,
    at_end,
    pick,
)
from teeter.studies.vasudeva2025.matching import FAIR, matches
from teeter.studies.vasudeva2025.reading import MADE, Nudge, Reading, learn

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STUDY"]

MRPC, QQP = "mrpc", "qqp"


def grid(data: Sequence[str], seeds: int, deeper: Sequence[int], again: int, **more: Any) -> list[Reading]:
    """All models on all data, the LSTM as released as well, seed by seed; then of the last data set LSTM and RoBERTa of
    more layers, `again` times each."""
    kinds = [*((each, "text") for each in NAMES), (LSTM, "released")]
    made = [
        Reading(name, model, seed, variant, **more)
        for seed in range(seeds)
        for name in data
        for model, variant in kinds
    ]
    depths = [
        replace(each, layers=layers)
        for seed in range(again)
        for layers in deeper
        for each in made
        if (each.data, each.seed, each.variant) == (data[-1], seed, "text") and each.model in (LSTM, ROBERTA)
    ]
    return made + depths


SMOKE = grid([MADE], 1, [2], 1, layers=1, dim=8, length=20, pairs=24, steps=2, rate=1e-2)
SMALL = [
    replace(spec, length=64) if spec.data == MRPC else spec
    for spec in grid([MRPC, QQP], 3, [3, 4], 3, layers=2, dim=32, length=32, pairs=1_500, steps=300, rate=2e-3)
]
PAPER = [
    replace(spec, steps=4_000, length=64) if spec.data == QQP else replace(spec, steps=6_000)
    for spec in grid([MRPC, QQP], 3, [8, 12], 3)
]
LAYERS = min(spec.layers for spec in PAPER)


def looked_at(spec: Reading) -> tuple[Sequence[Nudge], Sequence[Nudge], Sequence[Nudge]]:
    """The noise at every measured step, at the last, and by token: of models deeper than the paper's main ones, and
    of the LSTM as released, only what is said of them."""
    if spec.layers > LAYERS:
        return MAIN, MAIN, ()
    return (MAIN, MAIN, MAIN) if spec.variant == "released" else (MEANWHILE, NUDGES, MAPS)


def run_together(specs: Sequence[Reading], folder: Path | None) -> list[list[dict[str, Any]]]:
    return [learn(spec, *looked_at(spec), folder and folder / str(k)) for k, spec in enumerate(specs)]


def run(spec: Reading) -> list[dict[str, Any]]:
    return run_together([spec], None)[0]


Answer = Callable[["pd.DataFrame"], "Estimate | None"]


def above(first: pd.DataFrame, second: pd.DataFrame) -> list[bool]:
    """Whether the first model is the more sensitive, for each fair comparison that tells: the intervals of the two
    measurements have nothing in common."""
    lows, highs = (matches(first, second, column) for column in ("low", "high"))
    ends = [(low.values, high.values) for low, high in zip(lows, highs, strict=True) if low.fair]
    return [low[0] > high[1] for low, high in ends if low[0] > high[1] or low[1] > high[0]]


def higher(first: str, second: str, others: dict[str, Any] | None = None, **more: Any) -> Answer:
    """The share of comparisons in which the first model is the more sensitive; `others` are the second's noise, where
    it is not the first's."""
    other = more if others is None else others
    return lambda table: share(above(pick(table, first, **more), pick(table, second, **other)))


def at_first(second: str) -> Answer:
    """The share of data sets and seeds in which the LSTM is more sensitive before any training, of those that tell."""

    def measure(table: pd.DataFrame) -> Estimate:
        runs = [pick(table, model) for model in (LSTM, second)]
        one, two = (each.loc[each["step"] == 0].set_index(["data", "seed"]) for each in runs)
        both = one.index.intersection(two.index)
        more, less = one["low"][both] > two["high"][both], two["low"][both] > one["high"][both]
        return share(more[more | less].to_numpy(dtype=bool))

    return measure


def balance(one: Any, other: Any) -> Any:
    """one / (one + other), run by run; runs where both are 0 do not count."""
    both = one.index.intersection(other.index)
    total = one[both] + other[both]
    return (one[both] / total).loc[total > 0]


def balanced(model: str, one: dict[str, Any], other: dict[str, Any]) -> Answer:
    """The mean balance of two kinds of noise, or of two parts of the texts, at the end."""
    return lambda table: mean(balance(at_end(table, model, **one), at_end(table, model, **other)), (0.0, 1.0))


def mostly(model: str, one: str, other: str, **more: Any) -> Answer:
    """The share of runs more sensitive in one part of the texts than in the other."""

    def measure(table: pd.DataFrame) -> Estimate:
        found = balance(*(at_end(table, model, what=what, **more) for what in (one, other)))
        return share((found > 0.5).to_numpy(dtype=bool))

    return measure


def weighs_more(first: str, second: str, one: str, other: str) -> Answer:
    """The share of pairs of runs in which one part of the texts weighs more, against the other, in the first model."""

    def measure(table: pd.DataFrame) -> Estimate:
        a, b = (balance(at_end(table, model, what=one), at_end(table, model, what=other)) for model in (first, second))
        both = a.index.intersection(b.index)
        return share((a[both] > b[both]).to_numpy(dtype=bool))

    return measure


def in_data(data: str, answer: Answer) -> Answer:
    """Of one data set; where there are only pairs of our own, nothing is known of it."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        here = table.loc[table["data"] == data]
        if len(here):
            return answer(here)
        return unknown((0.0, 1.0)) if set(table["data"]) == {MADE} else None

    return measure


def final(model: str, **more: Any) -> Answer:
    """The mean at the end, of models as large as those whose numbers the paper prints; None of smaller ones."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        large = bool((table["dim"] >= Reading.dim).any())
        return mean(at_end(table, model, **more), (0.0, 1.0)) if large else None

    return measure


def deeper(answer: Callable[[pd.DataFrame, list[int]], Estimate]) -> Answer:
    """Of the data sets that have models of several depths, given those; None where there is but one depth."""

    def measure(table: pd.DataFrame) -> Estimate | None:
        depths = sorted(table["layers"].unique())
        here = table.loc[table["data"].isin(table.loc[table["layers"] == depths[-1], "data"])]
        return answer(here, depths) if len(depths) > 1 else None

    return measure


def _at_every_depth(table: pd.DataFrame, depths: list[int]) -> Estimate:
    return share([yes for n in depths for yes in above(pick(table, LSTM, layers=n), pick(table, ROBERTA, layers=n))])


def _shallow_is_lower(table: pd.DataFrame, depths: list[int]) -> Estimate:
    least = pick(table, ROBERTA)
    return share([not yes for n in depths[1:] for yes in above(least, pick(table, ROBERTA, layers=n))])


def _alike_throughout(table: pd.DataFrame, depths: list[int]) -> Estimate:
    """The least sensitive LSTM over the most, seed by seed: each summed over the measured steps at which those of all
    depths have learned something, for one that always says the same is sensitive to nothing."""
    from pandas import concat

    rows = concat([pick(table, LSTM, layers=n) for n in depths])
    rows = rows.assign(above=rows["accuracy"] - rows["frequent"])
    named = {"least": ("sensitivity", "min"), "most": ("sensitivity", "max")}
    steps = rows.groupby(["data", "seed", "step"]).agg(**named, above=("above", "min"), depths=("layers", "nunique"))
    sums = steps.loc[(steps["above"] >= FAIR) & (steps["depths"] == len(depths))].groupby(["data", "seed"]).sum()
    return mean((sums["least"] / sums["most"]).loc[sums["most"] > 0], (0.0, 1.0))


# What the paper gives: by data set and model, with noise of variance 15 on one token.
PUBLISHED = {
    (MRPC, LSTM): 0.15,
    (MRPC, ROBERTA): 0.002,
    (MRPC, RELU): 0.001,
    (QQP, LSTM): 0.09,
    (QQP, ROBERTA): 0.03,
    (QQP, RELU): 0.02,
}
WHOLE = {(QQP, LSTM): 0.11, (QQP, ROBERTA): 0.05}  # Table 4
MATCHED = "at matched training accuracy"


def _number(of: str, key: tuple[str, str], value: float, **how: Any) -> Claim:
    """A published number: half a unit of its last digit either way. An interval of half of the number would tell, or
    of a unit of that digit where that is more."""
    digit = 0.0005 if value < 0.01 else 0.005
    data, model = key
    words = f"{data.upper()}, {NAMES[model]}: sensitivity at the end, {of}"
    return Claim(
        words, value, in_data(data, final(model, **how)), tolerance=digit, resolution=max(value / 2, 2 * digit)
    )


def _all(words: str, answer: Answer) -> Claim:
    """Said without a number: it is to hold in every run or comparison. Five of five tell, four of four do not."""
    return Claim(words, 1, answer, resolution=0.28)


def _even(words: str, answer: Answer) -> Claim:
    """Two kinds a factor of two apart at most: the first is a third to two thirds of both together."""
    return Claim(words, 0.5, answer, tolerance=1 / 6, strict=True)


CLAIMS = [
    *[_number("as in the text", key, value) for key, value in PUBLISHED.items()],
    *[_number("as released", k, value, what="pooled", **RELEASED[k[1]]) for k, value in PUBLISHED.items()],
    *[_number("all tokens at once", k, value, what="whole", sigma2=ALL_TOKENS) for k, value in WHOLE.items()],
    *[_all(f"LSTM above {NAMES[other]} before training", at_first(other)) for other in (ROBERTA, RELU)],
    *[_all(f"LSTM above {NAMES[other]} {MATCHED}", higher(LSTM, other)) for other in (ROBERTA, RELU, GPT2)],
    *[_all(f"GPT-2 above {NAMES[other]} {MATCHED}", higher(GPT2, other)) for other in (ROBERTA, RELU)],
    *[
        _all(f"{NAMES[one]} above {NAMES[other]} {MATCHED}, noise relative", higher(one, other, relative=True))
        for one, other in ((LSTM, GPT2), (GPT2, ROBERTA))
    ],
    _all(f"RoBERTa above RoBERTa-ReLU {MATCHED}", higher(ROBERTA, RELU)),
    _all(f"LSTM above RoBERTa {MATCHED}, variance 4", higher(LSTM, ROBERTA, sigma2=WEAK)),
    _all(f"LSTM above RoBERTa {MATCHED}, validation set", higher(LSTM, ROBERTA, split="valid")),
    _all(f"LSTM above RoBERTa {MATCHED}, both before LayerNorm", higher(LSTM, ROBERTA, place="before")),
    _all(f"LSTM above RoBERTa {MATCHED}, as released", higher(LSTM, ROBERTA, RELEASED[ROBERTA], **RELEASED[LSTM])),
    *[
        _even(
            f"{data.upper()}, RoBERTa: noise before LayerNorm against after it (no prediction; yardstick: even)",
            in_data(data, balanced(ROBERTA, {"place": "before"}, {"place": "after"})),
        )
        for data in (MRPC, QQP)
    ],
    _all("LSTM: last quarter of the tokens above the first", mostly(LSTM, "late", "early")),
    _all("LSTM: last quarter of the tokens above the first, variance 4", mostly(LSTM, "late", "early", sigma2=WEAK)),
    _all("the last quarter weighs more in GPT-2 than in RoBERTa", weighs_more(GPT2, ROBERTA, "late", "early")),
    _even(
        "RoBERTa: last quarter of the tokens against the first", balanced(ROBERTA, {"what": "late"}, {"what": "early"})
    ),
    _all("RoBERTa: <s> above all other tokens", mostly(ROBERTA, "start", "text")),
    _all("<s> weighs less in RoBERTa-ReLU than in RoBERTa", weighs_more(ROBERTA, RELU, "start", "text")),
    _all(f"LSTM above RoBERTa {MATCHED}, at every depth", deeper(_at_every_depth)),
    _all(f"RoBERTa: fewest layers below more layers, {MATCHED}", deeper(_shallow_is_lower)),
    Claim(
        "LSTM: least sensitive depth over most, throughout training (Figure 23: the same; rule: at least a half)",
        1,
        deeper(_alike_throughout),
        tolerance=0.5,
        strict=True,
    ),
]

DEPARTURES = [
    "QQP is a balanced part of it, 10,000 pairs to train on and 5,000 to validate with; the paper has 364,000 and "
    "40,000. MRPC is whole. Where a user has the full QQP, as many of its pairs are drawn.",
    "The paper does not say how long it trains. Its scripts name 392,700 training pairs, which is 12,272 batches and "
    "96 times all of MRPC, but about once all of QQP. Here it is 6,000 steps on MRPC, 47 times all of it, and 4,000 on "
    "the part of QQP, 13 times all of it, so that minutes of a GPU do: the end is where we chose it, and a pair of QQP "
    "is seen more often than there.",
    "Sizes that the paper does not give (dimension 256, feed-forward width 3072, length 128) are the released code's. "
    "Pairs of QQP are cut at 64 tokens, which one in 50 reaches; the longest of MRPC has 102. Some of the released "
    "scripts have weight decay 0.01; we have the text's 0.0001 for all. The learning rate stays as it is, "
    "though the scripts have a factor of 0.9 for it.",
    "Byte pairs are GPT-2's, which are RoBERTa's in another order. Those that are in no training pair, and so would "
    "keep their first embedding, are one unknown token.",
    "Sensitivity is Definition 4.1's, the mean over texts of the mean over a text's tokens, <s> and </s> among them. "
    "'As released' it is at the end the mean over all tokens of all texts, RoBERTa's noise is before position and "
    "LayerNorm, and the LSTM's embedding, LayerNorm and head keep their first weights.",
    "One random token of each of up to 2,048 training texts and as many validation texts is nudged at each of 17 "
    "measured steps, 16 times over at the last. What is said of positions, and 'as released', is from every token of "
    "up to 256 training texts at the last step, three draws each. Noise on all tokens at once, and before LayerNorm "
    "relative, of variance 4, or on validation texts, is measured at the last step alone. Of models of 8 and 12 "
    "layers, and of the LSTM as released, only noise of variance 15 on training texts is measured.",
    "Noise of variance 15 is at first about 4 times the size of what it is added to after a LayerNorm, and of the "
    "LSTM's words before it, but about 190 times the size of RoBERTa's and GPT-2's words. GPT-2 has no LayerNorm where "
    "its embedding ends: there it is about 140 times the size of words and positions together, and only noise relative "
    "to that compares like with like. The orders with GPT-2 are asked for in both. The paper has GPT-2 on QQP; we on "
    "both.",
    "Where the noise of variance 0.5 goes in Table 4 is not said; here it is after the LayerNorm of the embedding.",
    "A number of the paper's is of one run, without an error. Here it is reproduced where the interval of three seeds "
    "meets what is printed and is no wider, either way, than half of that or one unit of its last digit. With the "
    "noise of independent nudges alone, 0.002 is so in about nine of ten cases if it is true, and in none if three "
    "times as much is; if seeds differ by a fifth, 0.15 is so in about six of ten, and undecided in most others.",
    "The paper reads its orders off figures and single runs. That they are to hold in every seed, at equal training "
    "accuracy, is our rule, and so are quarters of the tokens and the factor of two for 'relatively uniform' and for "
    "'the same sensitivity' of LSTMs, which is asked of the measured steps at which those of all depths have learned "
    "something. Two models whose measurements overlap with their intervals tell no order, and count for neither. All "
    "this was settled after a look at the small tier, before the paper tier was run.",
    "At the small tier there are 1,500 pairs of either set, of which MRPC's are cut at 64 tokens and QQP's at 32, and "
    "models of two layers of dimension 32, trained for 300 steps at a rate of 0.002; depths are 2, 3 and 4. All texts "
    "are measured at 13 steps, four times over at the last, and 187 are mapped. V's numbers, of larger models, are not "
    "judged there. In the smoke tier texts are made up by us, so that it runs where MRPC is not.",
]

STUDY = Study(
    name="vasudeva2025/language",
    paper="vasudeva2025",
    where="Section 6, A.4, Table 4",
    title="LSTM, RoBERTa and GPT-2 on pairs of texts",
    about=__doc__ or "",
    revision=2,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=run,
    figure=draw,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=Together(key=lambda spec: spec, run=run_together, most=1),
    demo="smoke",
    took="about 24 hours an experiment on one A6000 GPU",
)
