"""What V's language experiments share (V section 6, appendix D): pairs of texts, models that read them, and noise.

Noise goes to one of two places. "after" is where the embedding ends, after its LayerNorm: so has V's text, and so has
the released code for the LSTM. "before" is at the words, before position and LayerNorm, which then gives the nudged
token the size of all others: so has the released code for RoBERTa. GPT-2 has no LayerNorm there, and the two are one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from teeter import counter
from teeter.data import BytePairEncoding, TextPairs, encode, gpt2_bpe, mrpc, qqp, seen, subset, vocabulary_size
from teeter.data.encoding import PADDING
from teeter.data.pairs import own_pairs
from teeter.errors import InputError, UnknownName
from teeter.measure import Estimate, Tally, TokenMap, sensitivity, token_map
from teeter.measure.arithmetic import computing_in
from teeter.models import MODELS
from teeter.perturb import EmbeddingNoise
from teeter.studies.devices import ARITHMETIC, device_here
from teeter.train import Diverged, Recipe, Trained, bar, shuffled, train
from teeter.train.state import own_randomness

__all__ = ["MADE", "Nudge", "Reader", "Reading", "Texts", "learn", "made_pairs", "model_of", "parts_of", "texts_of"]

MADE = "made"  # our own pairs, for where there are no others
BATCH, HEADS, WEIGHT_DECAY = 32, 8, 1e-4  # appendix D
DRAWS = 3  # at each token of a map, as in the released scripts
_PROBED, _MAPPED = 2048, 8  # texts measured, one in how many is mapped
_LONG = 1000  # steps of a run that is measured more often, and more closely at its end
_SEED = 5_000_000  # of noise and of which texts are measured: no run's own
_AT_ONCE = 1024  # texts in a forward


@dataclass(frozen=True)
class Reading:
    """One run; the defaults are those of appendix D and, where it has none, of the released scripts."""

    data: str
    model: str
    seed: int
    variant: str = "text"
    layers: int = 4
    dim: int = 256
    length: int = 128
    pairs: int = 10_000  # to train on, at most
    steps: int = 12_000
    rate: float = 1e-4


@dataclass(frozen=True)
class Nudge:
    """Where noise goes, how much, and to which texts."""

    split: str  # "train" or "valid"
    place: str  # "after" or "before"
    sigma2: float
    relative: bool = False  # to the token's own root mean square there
    whole: bool = False  # all tokens at once

    @property
    def name(self) -> str:
        words = ["relative"] * self.relative + ["whole"] * self.whole
        return " ".join([self.split, self.place, f"{self.sigma2:g}", *words])

    def noise(self, model: str) -> EmbeddingNoise:
        words = "wte" if model == "gpt2" else "word_embeddings"
        module = {"after": "norm", "before": words}[self.place]
        return EmbeddingNoise(module, self.sigma2, self.relative, skip=(PADDING,), whole=self.whole)


class Reader(nn.Module):
    """A model of texts that is given token numbers alone: as one tensor, a step of training can be recorded on a GPU.

    Padding is told by its number, which no text contains.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model({"input_ids": tokens, "attention_mask": tokens != PADDING})


@dataclass(frozen=True, eq=False)
class Texts:
    """Token numbers and labels to train on and to validate with."""

    train: tuple[Tensor, Tensor]
    valid: tuple[Tensor, Tensor]
    vocabulary: int


@lru_cache(maxsize=2)
def texts_of(data: str, pairs: int, length: int) -> Texts:
    """At most so many pairs to train on and half as many to validate with, drawn at random, the same for all runs."""
    if data == MADE:
        train, valid = made_pairs(pairs, seed=0), made_pairs(max(pairs // 2, 2), seed=1)
        code = word_code(train.first + train.second)
    elif data in ("mrpc", "qqp"):
        read = {"mrpc": mrpc, "qqp": qqp}[data]
        first, second = ("test", "dev") if data == "mrpc" else ("dev", "test")  # what V calls its validation set
        split = second if own_pairs(data, first) is None and own_pairs(data, second) is not None else first
        train, valid, code = some(read("train"), pairs), some(read(split), max(pairs // 2, 2)), gpt2_bpe()
    else:
        raise UnknownName("data set of pairs", data, ("mrpc", "qqp", MADE))
    known = seen(train, code)
    both = [(encode(each, code, length, known)["input_ids"], each.labels) for each in (train, valid)]
    return Texts(both[0], both[1], vocabulary_size(code, known))


def some(pairs: TextPairs, limit: int) -> TextPairs:
    """A random part."""
    chosen = subset(len(pairs), limit, seed=_SEED)
    first, second = (tuple(each[i] for i in chosen.tolist()) for each in (pairs.first, pairs.second))
    return replace(pairs, first=first, second=second, labels=pairs.labels[chosen])


_WHO, _WHAT = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"), ("boat", "clock", "drum", "kite", "lamp", "violin")
_HOW, _WHEN = ("found", "lost", "mended", "painted", "sold"), ("today", "yesterday", "at noon", "last week", "in May")


def made_pairs(count: int, seed: int) -> TextPairs:
    """Sentences of our own: the second says what the first does the other way round or, in half of the pairs, with
    another person or thing.

    >>> pairs = made_pairs(2, seed=3)
    >>> for texts in zip(pairs.first, pairs.second, pairs.labels.tolist()):
    ...     print(texts)
    ('Eve sold the lamp today .', 'the violin was sold by Eve today .', 0)
    ('Ben sold the violin last week .', 'the violin was sold by Ben last week .', 1)
    """
    number = torch.arange(count).unsqueeze(-1)
    slots = [
        counter.integers(len(words), seed, number, torch.tensor(slot)).flatten().tolist()
        for slot, words in enumerate((_WHO, _HOW, _WHAT, _WHEN))
    ]
    other = (1 + counter.integers(len(_WHO) - 1, seed, number, torch.tensor(4))).flatten().tolist()
    labels = counter.integers(2, seed, number, torch.tensor(5)).flatten()
    first, second = [], []
    for k, (who, how, what, when, label) in enumerate(zip(*slots, labels.tolist(), strict=True)):
        first.append(f"{_WHO[who]} {_HOW[how]} the {_WHAT[what]} {_WHEN[when]} .")
        if not label and k % 2:
            who = (who + other[k]) % len(_WHO)
        elif not label:
            what = (what + other[k]) % len(_WHAT)
        second.append(f"the {_WHAT[what]} was {_HOW[how]} by {_WHO[who]} {_WHEN[when]} .")
    return TextPairs(tuple(first), tuple(second), labels, ("different", "paraphrase"))


def word_code(texts: Sequence[str]) -> BytePairEncoding:
    """A byte pair encoding that has every word of these texts as a token.

    >>> code = word_code(["a cat", "the dog"])
    >>> [code.decode([token]) for token in code.encode(["a dog"])[0]]
    ['a', ' dog']
    """
    words = sorted({f"Ġ{word}" if place else word for text in texts for place, word in enumerate(text.split(" "))})
    merges = dict.fromkeys((word[:end], word[end]) for word in words for end in range(1, len(word)))
    tokens = dict.fromkeys([*"".join(words), *("".join(pair) for pair in merges)])
    return BytePairEncoding({token: number for number, token in enumerate(tokens)}, list(merges))


def model_of(spec: Reading, vocabulary: int) -> Reader:
    """The model with its first weights. In the variant "released" all of an LSTM but the LSTM itself stays as it is:
    the released code leaves its embedding, LayerNorm and head out of the optimizer."""
    if spec.variant not in ("text", "released"):
        raise UnknownName("variant", spec.variant, ("text", "released"))
    sizes = {"vocabulary": vocabulary, "dim": spec.dim, "layers": spec.layers}
    if spec.model != "text-lstm":
        sizes |= {"length": spec.length, "heads": HEADS}
    if spec.model.startswith("roberta"):
        sizes |= {"width": 12 * spec.dim}  # the released 3072 at 256
    with own_randomness(torch.device("cpu"), spec.seed):
        model: Any = MODELS[spec.model](**sizes)
    if spec.variant == "released" and spec.model == "text-lstm":
        model.embeddings.requires_grad_(False)
        model.head.requires_grad_(False)
    return Reader(model)


@dataclass(frozen=True, eq=False)
class Look:
    """A measure: loss, accuracy and answers on both sets, and the sensitivity to each nudge, one token of every text
    at a time and `rounds` times over."""

    sets: Mapping[str, tuple[Tensor, Tensor]]
    nudges: Sequence[Nudge]
    model: str
    rounds: int = 1

    def __call__(self, model: nn.Module) -> dict[str, float]:
        with computing_in("float32", self.sets["train"][0].device):  # torch has an LSTM of a GPU in tf32 else
            return self._said(model)

    def _said(self, model: nn.Module) -> dict[str, float]:
        found: dict[str, float] = {}
        for split, (tokens, labels) in self.sets.items():
            with torch.no_grad():
                logits = torch.cat([model(part) for part in tokens.split(_AT_ONCE)])
            answers = logits.argmax(-1)
            found[f"{split} loss"] = float(cross_entropy(logits, labels))
            found[f"{split} ones"] = float(answers.double().mean())
            right = (answers == labels).double().cpu()
            _put(found, f"{split} accuracy", Tally(right, torch.ones_like(right)).estimate())
            for nudge in self.nudges:
                if nudge.split == split:
                    how: dict[str, Any] = dict(budget=self.rounds * len(tokens), seed=_SEED, batch=_AT_ONCE)
                    rate = sensitivity(model, tokens, nudge.noise(self.model), clean=logits, **how)
                    if rate.stopped == "interrupted":  # what there is by then is not what was asked for
                        raise KeyboardInterrupt
                    _put(found, nudge.name, rate)
        return found

    def rows(self, step: int, said: Mapping[str, float], finished: bool = True) -> list[dict[str, Any]]:
        """What it said at a step, a row a nudge."""
        ones = float(self.sets["train"][1].double().mean())
        common: dict[str, Any] = {"step": step, "seen": step * BATCH, "finished": finished}
        common["frequent"] = max(ones, 1 - ones)  # the accuracy of whoever always says the same
        for mark, split in (("", "train"), ("valid_", "valid")):
            accuracy = _taken(said, f"{split} accuracy")
            common |= {f"{mark}accuracy": accuracy.value, f"{mark}loss": said[f"{split} loss"]}
            common |= {f"{mark}accuracy_low": accuracy.low, f"{mark}accuracy_high": accuracy.high}
            common[f"{mark}ones"] = said[f"{split} ones"]  # the share of texts that are answered with class 1
        rows = []
        for nudge in self.nudges:
            kind = {name: value for name, value in asdict(nudge).items() if name != "whole"}
            kind |= {"what": "whole" if nudge.whole else "token", "position": 0}
            rows.append({**common, **kind, **_ends(_taken(said, nudge.name))})
        return rows


def _put(found: dict[str, float], name: str, value: Estimate) -> None:
    found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def _taken(found: Mapping[str, float], name: str) -> Estimate:
    return Estimate(found[name], found[f"{name}_low"], found[f"{name}_high"], 1)


def learn(
    spec: Reading,
    nudges: Sequence[Nudge],
    last: Sequence[Nudge],
    maps: Sequence[Nudge],
    folder: Path | None = None,
) -> list[dict[str, Any]]:
    """Train it, look at it a few times, more closely at the end (at the `last` nudges), and then map which tokens
    matter. A row is one sensitivity at one step: `what` says of what (see `parts_of`), and every row has the accuracies
    of its step."""
    device = device_here()
    texts = texts_of(spec.data, spec.pairs, spec.length)
    sets = {"train": texts.train, "valid": texts.valid}
    sets = {name: (tokens.to(device), labels.to(device)) for name, (tokens, labels) in sets.items()}
    model = model_of(spec, texts.vocabulary).to(device)
    look = Look({name: _probe(*each) for name, each in sets.items()}, nudges, spec.model)
    recipe = Recipe(
        spec.steps,
        BATCH,
        rate=spec.rate,
        weight_decay=WEIGHT_DECAY,
        loss="cross-entropy",
        arithmetic=ARITHMETIC[device.type],
    )
    how: dict[str, Any] = {"every": looks_at(spec.steps), "folder": folder, "keep": max(spec.steps // 4, 1)}
    stream = shuffled(*sets["train"], BATCH, spec.seed)
    try:
        with bar() as shown:
            how["progress"] = lambda step, steps, row: shown(step, steps, _short(row))
            made = _trained(model, stream, recipe, measures={"look": look}, seed=spec.seed, **how)
    except Diverged as problem:
        return [row for each in problem.rows for row in look.rows(each["step"], _said(each), False)]
    if made.stopped != "done":
        raise KeyboardInterrupt
    rows = [row for each in made.rows[:-1] for row in look.rows(each["step"], _said(each))]
    close = replace(look, nudges=last, rounds=rounds_at_end(spec.steps))
    end = close.rows(spec.steps, close(made.model))
    rows += end
    for nudge in maps:
        tokens = look.sets[nudge.split][0]
        tokens = tokens[: max(len(tokens) // _MAPPED, 2)]
        with computing_in("float32", device):
            found = token_map(made.model, tokens, nudge.noise(spec.model), draws=DRAWS, seed=_SEED, batch=_AT_ONCE)
        common = end[last.index(nudge)]
        for (what, position), each in parts_of(found).items():
            rows.append({**common, "what": what, "position": position, **_ends(each)})
    return rows


def _trained(*given: Any, **how: Any) -> Trained:
    """Steps are launched as one program each where the model allows it, and else as they come."""
    try:
        return train(*given, **how, record=True)
    except InputError as problem:
        if not torch.cuda.is_available():
            raise
        warnings.warn(f"trained without a recording: {problem}", RuntimeWarning, stacklevel=2)
        return train(*given, **how)


def looks_at(steps: int) -> list[int]:
    """The measured steps: closer together at first, where accuracy rises, so that models can be matched there.

    >>> looks_at(120)
    [0, 3, 8, 15, 23, 32, 42, 53, 65, 78, 91, 105, 120]
    """
    looks = 16 if steps >= _LONG else 12
    return sorted({round(steps * (k / looks) ** 1.5) for k in range(looks + 1)})


def rounds_at_end(steps: int) -> int:
    """Nudges of each text at the last step: of a long run enough for three seeds to tell 0.002.

    >>> rounds_at_end(120), rounds_at_end(6_000)
    (4, 16)
    """
    return 16 if steps >= _LONG else 4


def _probe(tokens: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    chosen = subset(len(tokens), _PROBED, seed=_SEED).to(tokens.device)
    return tokens[chosen], labels[chosen]


def _said(row: Mapping[str, Any]) -> dict[str, float]:
    """What the look said, out of a row of training."""
    return {name.removeprefix("look_"): value for name, value in row.items() if name.startswith("look_")}


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a bar has room for."""
    return {"loss": row["loss"], "accuracy": row["look_train accuracy"]}


def _ends(found: Estimate) -> dict[str, float]:
    return {"sensitivity": found.value, "low": found.low, "high": found.high}


def parts_of(found: TokenMap) -> dict[tuple[str, int], Estimate]:
    """Means of a map of texts that begin with <s> and are padded on the right, each over texts of the mean over some of
    a text's tokens: "start" is <s>, "text" all others, "early" and "late" the first and the last quarter of those;
    "position" k, of all tokens, the k-th from the end. "pooled" is over all tokens of all texts at once, as the
    released code has it: long texts count for more there."""
    mean, there = found.mean, ~found.mean.isnan()
    place, length = torch.arange(mean.shape[1]), there.sum(-1, keepdim=True)
    quarter = ((length - 1) // 4).clamp_min(1)
    masks = {
        "start": place < 1,
        "text": place >= 1,
        "early": (place >= 1) & (place < 1 + quarter),
        "late": (place >= 1) & (place >= length - quarter),
    }
    parts = {(what, 0): _over_texts(mean.where(there & mask, torch.nan), found) for what, mask in masks.items()}
    counts = found.counts.sum(-1).double()
    parts["pooled", 0] = Tally(mean.nansum(-1) * found.draws, counts, found.rate).estimate()
    right = found.by_position("right")
    return parts | {("position", len(right) - i): each for i, each in enumerate(right) if each is not None}


def _over_texts(mean: Tensor, found: TokenMap) -> Estimate:
    each = mean.nanmean(-1)
    draws = int((~mean.isnan()).sum()) * found.draws
    return Tally(each, torch.ones_like(each), found.rate, draws=draws).estimate()
