"""What holds for the arguments of every model: one name for one size, given by name, and checked when it is built."""

import inspect

import pytest

from teeter.errors import InputError
from teeter.models import MODELS
from teeter.models.block import Attention, Block
from teeter.models.embedding import SequenceEmbedding
from teeter.models.sizes import check_heads, check_rates, check_sizes
from teeter.models.vit_simple import PlainAttention
from teeter.models.vit_small import LocalityAttention, ShiftedPatches

every = pytest.mark.parametrize("name", MODELS)

# Of every model that has such a thing, then of one kind alone.
SIZES = {"dim", "layers", "heads", "width", "length", "vocabulary", "classes", "channels", "image_size", "patch"}
SPECIAL = {"dim_head", "kernel", "growth", "bottleneck", "p"}


def arguments(name):
    given = inspect.signature(MODELS[name]).parameters.values()
    return {p.name: p for p in given if p.kind != inspect.Parameter.VAR_KEYWORD}


def sizes(name):
    extra = {"layers"} if name == "sparse-parity" else set()  # handed on to the encoder
    return extra | {key for key, p in arguments(name).items() if p.annotation in ("int", "int | None")} - {"padding"}


@every
def test_sizes_have_the_same_names_everywhere_and_are_given_by_name(name):
    assert sizes(name) <= SIZES | SPECIAL
    assert all(p.kind == inspect.Parameter.KEYWORD_ONLY for p in arguments(name).values())
    assert all(p.default is not p.empty for p in arguments(name).values())


@every
@pytest.mark.parametrize("value", [0, -1, 2.0, True])
def test_sizes_are_whole_numbers(name, value):
    assert len(sizes(name)) >= 2
    for key in sorted(sizes(name)):
        with pytest.raises(InputError, match=f"^{key} is a whole number of at least 1, got {value}"):
            MODELS[name](**{key: value})


@every
@pytest.mark.parametrize("value", [1.0, -0.1, 2, True, "much", float("nan")])
def test_rates_are_between_nothing_and_everything(name, value):
    rates = [key for key, p in arguments(name).items() if p.annotation == "float" and "dropout" in key]
    assert bool(rates) == (name in ("gpt2", "roberta", "roberta-relu", "text-lstm") or name.startswith("vit-small"))
    for key in rates:
        with pytest.raises(InputError, match=f"^{key} is a rate of at least 0 and below 1, got {value!r}"):
            MODELS[name](**{key: value})


@pytest.mark.parametrize("name", ["decoder", "encoder", "gpt2", "modular", "roberta", "scratchpad", "sparse-parity"])
def test_heads_divide_the_dimension(name):
    with pytest.raises(InputError, match="heads divide the dimension evenly, got dim = 12 and heads = 5"):
        MODELS[name](dim=12, heads=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Attention(8, 2.0), "heads is a whole number"),  # pyright: ignore
        (lambda: Block(8, 2, 3.0), "width is a whole number"),  # pyright: ignore
        (lambda: SequenceEmbedding(vocabulary=0, length=3, dim=4), "vocabulary is a whole number"),
        (lambda: PlainAttention(dim=8, heads=2, dim_head=0), "dim_head is a whole number"),
        (lambda: LocalityAttention(dim=8, heads=2, dim_head=0), "dim_head is a whole number"),
        (lambda: LocalityAttention(dim=8, heads=2, dim_head=4, dropout=1.0), "dropout is a rate"),
        (lambda: ShiftedPatches(channels=3, patch=0, dim=4), "patch is a whole number"),
    ],
)
def test_parts_check_what_they_are_made_with(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_good_sizes_pass():
    check_sizes(dim=1, layers=10**9)
    check_rates(dropout=0, embedding_dropout=0.999)
    check_heads(12, 4)
