import random

import pytest
import torch

import teeter
from teeter.data import SPECIAL, BytePairEncoding, TextPairs, encode, seen, vocabulary_size
from teeter.errors import InputError
from teeter.models import TextLSTM
from teeter.perturb import EmbeddingNoise

LETTERS = "abcdefgh"
CODE = BytePairEncoding({letter: i for i, letter in enumerate(LETTERS)}, [])


def naive(a, b, length):
    """One pair as the definition has it: tokens fall off the longer end one by one."""
    a, b = [4 + LETTERS.index(letter) for letter in a], [4 + LETTERS.index(letter) for letter in b]
    while len(a) + len(b) + 4 > length:
        (a if len(a) > len(b) else b).pop()
    return [0, *a, 2, 2, *b, 2]


def pairs_of(first, second):
    return TextPairs(tuple(first), tuple(second), torch.zeros(len(first), dtype=torch.int64), ("only",))


@pytest.mark.parametrize("length", [4, 5, 6, 9, 12, 13, 40])
def test_pairs_are_their_naive_twin(length):
    draw = random.Random(0)
    first, second = (["".join(draw.choices(LETTERS, k=draw.randrange(12))) for _ in range(200)] for _ in range(2))
    encoded = encode(pairs_of(first, second), CODE, length)
    expected = [naive(a, b, length) for a, b in zip(first, second, strict=True)]
    longest = max(map(len, expected))
    assert longest == min(length, 26)
    assert encoded["input_ids"].tolist() == [row + [1] * (longest - len(row)) for row in expected]
    assert encoded["attention_mask"].tolist() == [[1] * len(row) + [0] * (longest - len(row)) for row in expected]
    assert encoded["input_ids"].dtype == encoded["attention_mask"].dtype == torch.int64


def test_single_texts():
    encoded = encode(["abc", "", "abcdefgh"], CODE, length=5)
    assert encoded["input_ids"].tolist() == [[0, 4, 5, 6, 2], [0, 2, 1, 1, 1], [0, 4, 5, 6, 2]]
    assert encoded["attention_mask"].sum(-1).tolist() == [5, 2, 5]


def test_known_tokens_alone():
    train, test = pairs_of(["hg", "c"], ["g", "ca"]), pairs_of(["abc"], ["hd"])
    known = seen(train, CODE)
    assert known.tolist() == [0, 2, 6, 7]
    assert (vocabulary_size(CODE), vocabulary_size(CODE, known)) == (12, 8)
    assert encode(test, CODE, known=known)["input_ids"].tolist() == [[0, 4, 3, 5, 2, 2, 7, 3, 2]]
    everything = encode(train, CODE, known=known)
    assert int(everything["input_ids"].max()) == 7  # nothing in the text it was made from is unknown
    assert not bool((everything["input_ids"] == 3).any())
    assert torch.equal(everything["attention_mask"], encode(train, CODE)["attention_mask"])
    all_of_them = encode(test, CODE, known=torch.arange(8))
    assert torch.equal(all_of_them["input_ids"], encode(test, CODE)["input_ids"])


def test_special_tokens_are_the_structure():
    tokens = encode(pairs_of(["ab", "c"], ["d", "e"]), CODE)["input_ids"]
    text = torch.isin(tokens, torch.tensor(SPECIAL), invert=True)
    assert tokens[text].tolist() == [4, 5, 7, 6, 8]


def test_from_texts_to_sensitivity():
    pairs = pairs_of(["ab", "bad", "cafe"] * 4, ["d", "e", "bad"] * 4)
    inputs = encode(pairs, CODE, known=seen(pairs, CODE))
    torch.manual_seed(0)
    model = TextLSTM(vocabulary=vocabulary_size(CODE, seen(pairs, CODE)), dim=8, layers=1).eval()
    with torch.no_grad():
        model.head.bias -= model(inputs).mean(0)  # undecided on the whole, so that there is something to flip
    noise = EmbeddingNoise(sigma2=15.0, skip=SPECIAL)
    assert noise.positions(inputs).sum(-1).tolist() == [3, 4, 7] * 4
    assert 0 < teeter.sensitivity(model, inputs, noise, budget=4096).value < 1


@pytest.mark.parametrize("known", [[-1, 2], [0, 8], [-5]])
def test_known_tokens_that_are_none(known):
    with pytest.raises(InputError, match=f"numbers from 0 to 7, got some from {min(known)} to {max(known)}"):
        encode(["abc"], CODE, known=torch.tensor(known))


@pytest.mark.parametrize(
    ("texts", "length", "message"),
    [
        ([], 128, "room for 2 marks, got 0 texts"),
        (["a"], 1, "room for 2 marks, got 1 texts and length = 1"),
        (pairs_of(["a"], ["b"]), 3, "room for 4 marks, got 1 texts and length = 3"),
        (pairs_of([], []), 128, "room for 4 marks, got 0 texts"),
        ("ab", 128, "a list of texts, got the one text 'ab'"),
    ],
)
def test_bad_input(texts, length, message):
    with pytest.raises(InputError, match=message):
        encode(texts, CODE, length)
