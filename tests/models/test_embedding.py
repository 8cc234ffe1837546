import pytest
import torch

from teeter.errors import InputError
from teeter.models.embedding import SequenceEmbedding, token_numbers


def test_minus_one_is_the_bit_one_in_every_type():
    for dtype in (torch.int8, torch.int64, torch.float32, torch.float64):
        assert token_numbers(torch.tensor([[1, -1]], dtype=dtype)).tolist() == [[0, 1]]


def test_sum_and_concatenation():
    numbers = torch.tensor([[0, 2], [1, 1]])
    for positions, each in (("sum", 6), ("concatenate", 3)):
        part = SequenceEmbedding(vocabulary=3, length=4, dim=6, positions=positions)  # pyright: ignore
        assert part.token.weight.shape == (3, each)
        assert part.position.weight.shape == (4, each)
        out = part(numbers)
        assert out.shape == (2, 2, 6)
        for row in range(2):
            for place in range(2):
                token, position = part.token.weight[numbers[row, place]], part.position.weight[place]
                whole = token + position if positions == "sum" else torch.cat([token, position])
                assert torch.equal(out[row, place], whole)


def test_values_are_not_looked_at_under_vmap_over_inputs():
    bits = torch.tensor([[1, -1], [1, 1]])
    assert torch.vmap(lambda one: token_numbers(one.unsqueeze(0))[0])(bits).tolist() == [[0, 1], [0, 0]]


def test_nor_while_compiling():
    compiled = torch.compile(token_numbers, backend="eager", fullgraph=True)  # a look at values would break the graph
    assert compiled(torch.tensor([[1, -1]])).tolist() == [[0, 1]]


def test_nor_on_another_device():
    assert token_numbers(torch.zeros(2, 3, device="meta")).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_numbers(torch.tensor([[0, 1]])), "1 - 2 \\* x"),
        (lambda: token_numbers(torch.tensor([[0.5, 1]])), "other values"),
        (lambda: token_numbers(torch.tensor([1, -1])), "shape \\(batch, n\\).*\\(2,\\)"),
        (lambda: token_numbers(torch.ones(2, 0)), "n at least 1"),
        (lambda: token_numbers(torch.ones(2, 2, dtype=torch.bool)), "torch.bool"),
        (
            lambda: SequenceEmbedding(vocabulary=2, length=3, dim=4, positions="add"),
            "'sum' or 'concatenate', got 'add'",
        ),  # pyright: ignore
        (lambda: SequenceEmbedding(vocabulary=2, length=3, dim=5, positions="concatenate"), "even dim, got 5"),
        (lambda: SequenceEmbedding(vocabulary=2, length=0, dim=4), "length is a whole number of at least 1, got 0"),
        (lambda: SequenceEmbedding(vocabulary=2, length=4, dim=0), "dim is a whole number of at least 1, got 0"),
        (
            lambda: SequenceEmbedding(vocabulary=2, length=3, dim=4)(torch.zeros(1, 4, dtype=torch.long)),
            "3 positions.*length 4",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
