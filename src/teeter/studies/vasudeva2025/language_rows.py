"""Which rows of the language study are which: its models, its noise, and the choice among them."""

from __future__ import annotations

from typing import Any

from teeter.studies.vasudeva2025.reading import Nudge

__all__ = [
    "ALL_TOKENS",
    "GPT2",
    "LSTM",
    "MAIN",
    "MAPS",
    "MEANWHILE",
    "NAMES",
    "NUDGES",
    "RELEASED",
    "RELU",
    "ROBERTA",
    "STRONG",
    "WEAK",
    "at_end",
    "pick",
]

LSTM, ROBERTA, RELU, GPT2 = "text-lstm", "roberta", "roberta-relu", "gpt2"
NAMES = {LSTM: "LSTM", ROBERTA: "RoBERTa", RELU: "RoBERTa-ReLU", GPT2: "GPT-2"}
STRONG, WEAK, ALL_TOKENS = 15.0, 4.0, 0.5  # variances
MAIN = (Nudge("train", "after", STRONG), Nudge("train", "before", STRONG))
MEANWHILE = (  # at every measured step
    *MAIN,
    Nudge("train", "after", WEAK),
    Nudge("valid", "after", STRONG),
    Nudge("train", "after", STRONG, relative=True),
)
NUDGES = (  # and at the last
    *MEANWHILE,
    Nudge("train", "before", WEAK),
    Nudge("valid", "before", STRONG),
    Nudge("train", "before", STRONG, relative=True),
    *(Nudge("train", place, ALL_TOKENS, whole=True) for place in ("after", "before")),
)
MAPS = MEANWHILE[:3]  # of every token, at the last step
# Where the released code differs from our default.
RELEASED: dict[str, dict[str, Any]] = {
    LSTM: {"variant": "released"},
    ROBERTA: {"place": "before"},
    RELU: {"place": "before"},
}


def pick(
    table: Any,
    model: str,
    place: str = "after",
    sigma2: float = STRONG,
    split: str = "train",
    what: str = "token",
    relative: bool = False,
    variant: str = "text",
    layers: int | None = None,
) -> Any:
    """The rows of a model and one kind of noise, by default V's main one, and of the fewest layers."""
    wanted = {"model": model, "variant": variant, "layers": table["layers"].min() if layers is None else layers}
    wanted |= {"place": place, "sigma2": sigma2, "split": split, "what": what, "relative": relative}
    here = table.loc[table["finished"].astype(bool)]
    for name, value in wanted.items():
        here = here.loc[here[name] == value]
    return here


def at_end(table: Any, model: str, **how: Any) -> Any:
    """The sensitivities of one kind at the last step, by data set and seed."""
    here = pick(table, model, **how)
    return here.loc[here["step"] == here["steps"]].set_index(["data", "seed"])["sensitivity"]
