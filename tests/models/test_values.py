"""Values are looked at on the CPU alone."""

import pytest
import torch

from teeter.errors import InputError
from teeter.models import MODELS
from teeter.models.embedding import token_numbers
from teeter.models.values import breaks, check_tokens
from tests.models.launched import Launched


def test_on_the_cpu_a_broken_rule_is_seen():
    numbers = torch.tensor([[3, 4], [5, 6]])
    assert breaks(numbers, lambda each: each < 6)
    assert not breaks(numbers, lambda each: each < 7)
    check_tokens(numbers, 7)
    for wrong, message in ((numbers, "from 0 to 5, got 3 to 6"), (numbers - 4, "from 0 to 5, got -1 to 2")):
        with pytest.raises(InputError, match=message):
            check_tokens(wrong, 6)


def test_elsewhere_the_rule_is_not_even_computed():
    def never(each):
        raise AssertionError("computed")

    assert not breaks(torch.zeros(3, device="meta"), never)


def test_nor_while_compiling():
    def run(each):
        return each + int(breaks(each, lambda values: values > 5))

    compiled = torch.compile(run, backend="eager", fullgraph=True)  # a look at values would break the graph
    assert compiled(torch.zeros(2)).tolist() == [0, 0]
    assert run(torch.zeros(2)).tolist() == [1, 1]


def test_under_vmap_over_inputs_values_are_not_seen():
    numbers = torch.tensor([[3], [9]])
    assert torch.vmap(lambda each: each + int(breaks(each, lambda values: values < 5)))(numbers).tolist() == [[3], [9]]


def test_bits_on_another_device_take_one_comparison():
    bits = torch.zeros(2, 3, device="meta")
    with Launched() as launched:
        token_numbers(bits)
    assert launched.names == ["lt", "_to_copy"]


@pytest.mark.parametrize(
    ("name", "sizes", "shape"),
    [
        ("modular", {"p": 5, "dim": 8}, (2, 3)),
        ("self-attention", {"length": 4}, (2, 4)),
        ("gpt2", {"dim": 8, "layers": 1, "vocabulary": 9}, (2, 4)),
        ("roberta", {"dim": 8, "layers": 1, "vocabulary": 9}, (2, 4)),
    ],
)
def test_token_numbers_on_another_device_are_not_compared(name, sizes, shape):
    with torch.device("meta"):
        model, tokens = MODELS[name](**sizes), torch.zeros(shape, dtype=torch.long)
    with Launched() as launched:
        model(tokens)
    assert "embedding" in launched.names
    assert not {"ge", "lt", "all", "_local_scalar_dense"} & set(launched.names)
