"""Probes: the head is the one logistic regression has, and the encoder is left alone."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError
from teeter.integrations import Probe, encode, fit_probe
from teeter.integrations.probe import pooled
from tests import tiny


def texts(n=200, seed=0):
    from transformers import BertModel

    torch.manual_seed(seed)
    encoder = BertModel(tiny.config("bert", initializer_range=0.5))
    tokens = torch.randint(4, 37, (n, 7))
    mask = (torch.arange(7) < torch.randint(2, 8, (n, 1))).long()
    labels = (tokens[:, 0] > 20).long() + (tokens[:, 1] > 30).long()
    return encoder, {"input_ids": tokens * mask, "attention_mask": mask}, labels


def test_padding_does_not_count():
    encoder, inputs, _ = texts(6)
    with torch.no_grad():
        together = pooled(encoder.eval(), inputs)
        for row in range(6):
            n = int(inputs["attention_mask"][row].sum())
            alone = pooled(encoder, inputs["input_ids"][row : row + 1, :n])
            assert torch.allclose(together[row], alone[0], atol=1e-5)
        for batch in (1, 4, 100):
            assert torch.allclose(encode(encoder, inputs, batch), together, atol=1e-5)


@pytest.mark.parametrize("penalty", [1.0, 0.01])
def test_the_head_is_that_of_logistic_regression(penalty):
    encoder, inputs, labels = texts()
    probe = fit_probe(encoder, inputs, labels, penalty=penalty, batch=33)
    with torch.no_grad():
        features = pooled(encoder.eval(), inputs).double()
        logits = probe.eval()(inputs).double()
    standard = ((features - features.mean(0)) / features.std(0)).numpy()
    theirs = LogisticRegression(C=1 / (len(labels) * penalty), tol=1e-10, max_iter=10_000).fit(standard, labels)
    expected = torch.tensor(theirs.predict_log_proba(standard))
    assert torch.allclose(logits.log_softmax(-1), expected, atol=2e-4)
    assert logits.shape == (200, 3)


def test_the_encoder_is_left_as_it_was():
    encoder, inputs, labels = texts(60)
    encoder.train()
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    probe = fit_probe(encoder, inputs, labels)
    assert encoder.training
    assert probe.training
    assert all(torch.equal(weight, before[name]) for name, weight in encoder.state_dict().items())
    assert all(weight.grad is None for weight in encoder.parameters())


def test_noise_finds_the_embeddings():
    encoder, inputs, labels = texts(100)
    probe = fit_probe(encoder, inputs, (labels > 0).long(), penalty=0.01).eval()
    nudge = perturb.EmbeddingNoise(sigma2=4.0)
    assert nudge.where(probe) is encoder.embeddings.LayerNorm
    assert teeter.sensitivity(probe, inputs, nudge, budget=300).value > 0
    assert teeter.doctor(probe, inputs, nudge) == []


def test_probes_that_are_none():
    table, tokens = nn.Embedding(5, 3), torch.tensor([[0, 1], [2, 3], [1, 4]])
    labels = torch.tensor([0, 1, 1])
    with pytest.raises(InputError, match=r"got \(2, 3\) and \(3,\)"):
        Probe(table, torch.zeros(2, 3), torch.zeros(3))
    for wrong in (labels[:2], torch.tensor([0, 0, 0]), torch.tensor([1, 2, 2]), torch.tensor([[0], [1], [1]])):
        with pytest.raises(InputError, match="labels are one of 0 .. classes-1"):
            fit_probe(table, tokens, wrong)
    with pytest.raises(InputError, match="penalty is positive"):
        fit_probe(table, tokens, labels, penalty=0)
    with pytest.raises(InputError, match=r"\(inputs, tokens, features\), got \(3, 6\)"):
        fit_probe(nn.Sequential(table, nn.Flatten()), tokens, labels)
    with pytest.raises(InputError, match="got tuple"):
        pooled(lambda x: (x,), tokens)
