import pytest
import torch

from teeter.data import Vocabulary, sequences
from teeter.errors import InputError

WORDS = Vocabulary(m=16, size=59)
SETTING = dict(length=50, n_sparse=3, n_frequent=5, n_difference=1, seed=0)


def test_vocabulary_as_in_definition_4_2():
    words = Vocabulary(m=2, size=9)
    # e1, e2 | e3, e5 (+) and e4, e6 (-) | e7, e8, e9, counted from zero
    assert words.votes("sparse").tolist() == [1, -1, 0, 0, 0, 0, 0, 0, 0]
    assert words.votes("frequent").tolist() == [0, 0, 1, -1, 1, -1, 0, 0, 0]


def test_sentences_as_in_definition_4_3():
    tokens, labels = sequences(WORDS, 500, **SETTING)
    assert tokens.shape == (500, 50)
    assert set(labels.tolist()) == {-1, 1}
    frequent, sparse = WORDS.votes("frequent")[tokens], WORDS.votes("sparse")[tokens]
    agree = (frequent == labels.unsqueeze(1)).sum(1)
    oppose = (frequent == -labels.unsqueeze(1)).sum(1)
    assert agree.unique().tolist() == [3]
    assert oppose.unique().tolist() == [2]
    assert torch.equal(sparse.sum(1), 3 * labels)
    assert ((tokens >= 34).sum(1) == 50 - 5 - 3).all()
    assert int(tokens.max()) == 58


def test_altered_sentences_differ_in_the_sparse_tokens_alone():
    plain, labels = sequences(WORDS, 300, **SETTING)
    other, same = sequences(WORDS, 300, **SETTING, altered=True)
    assert torch.equal(labels, same)
    assert torch.equal(WORDS.votes("sparse")[other].sum(1), -3 * labels)
    assert torch.equal(plain[plain > 1], other[other > 1])


@pytest.mark.parametrize(
    ("n_sparse", "n_frequent", "n_difference", "m", "size"),
    [(3, 3, 1, 6, 59), (3, 5, 1, 16, 59), (3, 7, 1, 28, 59), (1, 7, 7, 10, 69), (1, 17, 7, 20, 69), (1, 32, 7, 36, 75)],
)
def test_who_reads_which_tokens_is_told_by_the_altered_set(n_sparse, n_frequent, n_difference, m, size):
    """V section 4.1 and A.1, its six settings: a reader of the sparse tokens is always wrong on the altered sentences
    and one of the frequent tokens always right, by the same margin."""
    words = Vocabulary(m, size)
    given = dict(length=50, n_sparse=n_sparse, n_frequent=n_frequent, n_difference=n_difference, seed=1)
    for altered, right in ((False, 1), (True, -1)):
        tokens, labels = sequences(words, 400, **given, altered=altered)
        sparse, frequent = (words.votes(kind)[tokens].sum(1) * labels for kind in ("sparse", "frequent"))
        assert sparse.unique().tolist() == [right * n_sparse]
        agreeing = (n_frequent + n_difference) // 2
        assert frequent.unique().tolist() == [2 * agreeing - n_frequent]
        assert frequent.min() > 0


def test_tokens_and_places_are_uniform():
    tokens, labels = sequences(WORDS, 20_000, **SETTING)
    assert abs(float(labels.double().mean())) < 5 / 20_000**0.5
    used = tokens.flatten().bincount(minlength=59).double()
    for span in (used[2:34], used[34:59]):
        assert float((span / span.mean() - 1).abs().max()) < 0.07
    sparse_places = (tokens < 2).double().mean(0)
    assert float((sparse_places / (3 / 50) - 1).abs().max()) < 0.15


def test_a_sentence_depends_on_seed_and_index_alone():
    whole, labels = sequences(WORDS, 100, **SETTING)
    part, some = sequences(WORDS, 30, **SETTING, start=50)
    assert torch.equal(part, whole[50:80])
    assert torch.equal(some, labels[50:80])
    assert not torch.equal(sequences(WORDS, 100, **{**SETTING, "seed": 1})[0], whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Vocabulary(m=36, size=69), "at least 2m \\+ 3 = 75 tokens"),
        (lambda: Vocabulary(m=0, size=69), "m = 0"),
        (lambda: WORDS.votes("rare"), "'sparse' or 'frequent', got 'rare'"),
        (lambda: sequences(WORDS, -1, **SETTING), "not negative, got -1"),
        (lambda: sequences(WORDS, 2, **{**SETTING, "length": 7}), "length = 7"),
        (lambda: sequences(WORDS, 2, **{**SETTING, "n_difference": 6}), "n_difference = 6"),
        (lambda: sequences(WORDS, 2, **{**SETTING, "n_sparse": -1}), "n_sparse = -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
