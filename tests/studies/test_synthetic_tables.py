"""V Tables 1 and 3: the closed form, an enumeration that knows nothing of it, and the sampled estimate."""

import pytest
import torch

from teeter.data import Vocabulary, sequences
from teeter.runs import Store
from teeter.studies.vasudeva2025 import synthetic_tables as study


def enumerated(votes, tokens):
    """Definition 4.1 with the expectation over replacement tokens written out, for one sentence."""
    clean = int(votes[tokens].sum().sign())
    changes = 0
    for place in range(len(tokens)):
        for token in range(len(votes)):
            altered = tokens.clone()
            altered[place] = token
            changes += int(votes[altered].sum().sign()) != clean
    return changes / (len(tokens) * len(votes))


@pytest.mark.parametrize(
    ("setting", "size", "expected"),
    [
        ((3, 3, 1, 6), 59, (0, 0.1315)),
        ((3, 5, 1, 16), 59, (0, 0.2878)),
        ((3, 7, 1, 28), 59, (0, 0.4502)),
        ((1, 7, 7, 10), 69, (0.0339, 0)),
        ((1, 17, 7, 20), 69, (0.0339, 0)),
        ((1, 32, 7, 33), 69, (0.0339, 0)),
    ],
)
def test_closed_form_gives_the_published_digits(setting, size, expected):
    rows = study.run(study.Spec(*setting, size, sentences=2))
    exact = {row["predictor"]: row["value"] for row in rows if row["method"] == "exact"}
    assert (round(exact["sparse"], 4), round(exact["frequent"], 4)) == expected


@pytest.mark.parametrize("n_sparse", [1, 2, 3])
@pytest.mark.parametrize(("n_frequent", "n_difference"), [(3, 1), (4, 1), (5, 2), (4, 4), (6, 3)])
def test_closed_form_equals_enumeration(n_sparse, n_frequent, n_difference):
    words = Vocabulary(m=5, size=20)
    tokens, _ = sequences(
        words, 2, length=12, n_sparse=n_sparse, n_frequent=n_frequent, n_difference=n_difference, seed=1
    )
    agree = (n_frequent + n_difference) // 2
    if agree > n_frequent - agree:  # a margin of zero has no answer to change
        expected = study.closed_form(agree, n_frequent - agree, 5, 20, 12)
        for sentence in tokens:
            assert enumerated(words.votes("frequent"), sentence) == pytest.approx(expected, abs=1e-12)
    expected = study.closed_form(n_sparse, 0, 1, 20, 12)
    for sentence in tokens:
        assert enumerated(words.votes("sparse"), sentence) == pytest.approx(expected, abs=1e-12)


def test_flip_rates_against_a_loop():
    words = Vocabulary(m=5, size=20)
    tokens, _ = sequences(words, 6, length=12, n_sparse=1, n_frequent=3, n_difference=1, seed=3)
    votes = words.votes("frequent")
    together = study.flip_rates(votes, tokens, first=0, seed=9)
    for i in range(6):
        alone = study.flip_rates(votes, tokens[i : i + 1], first=i, seed=9)
        assert torch.equal(alone, together[i : i + 1])  # whatever the batch
        drawn = study.counter.integers(20, 9, torch.tensor([[i]]), torch.tensor(study.REPLACEMENT), torch.arange(12))[0]
        changes = 0
        for place in range(12):
            altered = tokens[i].clone()
            altered[place] = drawn[place]
            changes += bool(votes[altered].sum().sign() != votes[tokens[i]].sum().sign())
        assert float(together[i]) == pytest.approx(changes / 12)


def test_sampled_intervals_contain_the_exact_values(tmp_path):
    table = study.STUDY.execute("smoke", Store(tmp_path)).table
    pairs = table.pivot_table(index=["run", "predictor"], columns="method", values=["value", "low", "high"])
    assert len(pairs) == 14
    assert (pairs["low"]["sampled"] <= pairs["value"]["exact"]).all()
    assert (pairs["high"]["sampled"] >= pairs["value"]["exact"]).all()


def test_claims_at_smoke(tmp_path):
    judgements = study.STUDY.execute("smoke", Store(tmp_path)).judgements
    stray = [j.claim.claim for j in judgements if j.verdict != "reproduced"]
    assert stray == ["(1,32,7,36) sparse, exact", "(1,32,7,36) sparse, sampled"]


def test_the_resolution_tells_the_two_readings_apart():
    for claim in study.CLAIMS:
        assert claim.resolution is not None
        assert claim.resolution < 0.0339 - 0.0328 if claim.published == 0.0339 else claim.resolution <= 0.03


def test_settings_have_their_own_noise():
    for specs in study.STUDY.tiers.values():
        assert len({spec.seed for spec in specs}) == len(specs)
