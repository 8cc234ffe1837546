"""Adapters give what the model itself gives, at the right place, and padding never matters."""

import sys

import pytest
import torch
from torch import nn

import teeter
from teeter import perturb
from teeter.errors import InputError
from teeter.integrations import Keywords, NextToken, adapt
from teeter.integrations.adapters import kind_of, library, longest_text
from tests import tiny

LENGTHS = (6, 4, 2)
TOKENS = torch.randint(3, 37, (3, 6), generator=torch.Generator().manual_seed(0))


def padded(side):
    """The three texts, padded with zeros."""
    tokens, mask = torch.zeros_like(TOKENS), torch.zeros_like(TOKENS)
    for row, n in enumerate(LENGTHS):
        there = slice(0, n) if side == "right" else slice(6 - n, 6)
        tokens[row, there], mask[row, there] = TOKENS[row, :n], 1
    return {"input_ids": tokens, "attention_mask": mask}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("gpt2", {}),
        ("llama", {}),
        ("gemma2", {"final_logit_softcapping": 0.05}),  # what follows the head counts too
        ("cohere", {"logit_scale": 0.3}),
        ("bloom", {}),
        ("opt", {}),
        ("mamba", {}),
        ("roberta", {"is_decoder": True}),  # a head of two layers, and positions counted from the padding's number
    ],
)
def test_next_token_is_the_models_own_and_padding_never_matters(kind, more):
    model = tiny.causal(kind, **more)
    next_token = adapt(model)
    assert isinstance(next_token, NextToken)
    seen = []
    model.get_output_embeddings().register_forward_pre_hook(lambda module, given: seen.append(given[0].shape[1]))
    with torch.no_grad():
        whole = model(**padded("right")).logits
        expected = whole[torch.arange(3), torch.tensor(LENGTHS) - 1]
        seen.clear()
        answers = next_token(padded("right"))
        assert seen == [6]  # it is narrowed after the hooks that were there before
        assert answers.shape == (3, 37)
        assert torch.allclose(answers, expected, atol=1e-6)
        assert torch.allclose(next_token(padded("left")), expected, atol=1e-6)
        for row, n in enumerate(LENGTHS):
            assert torch.allclose(next_token(TOKENS[row : row + 1, :n])[0], expected[row], atol=1e-6)
    assert next_token.head  # nothing made it fall back
    assert len(model.get_output_embeddings()._forward_pre_hooks) == 1  # and its own hook is gone


def test_the_head_runs_at_one_position():
    model = tiny.causal("gpt2")
    rows = []
    model.lm_head.register_forward_hook(lambda module, given, output: rows.append(tuple(output.shape)))
    NextToken(model)(padded("right"))
    assert rows == [(3, 1, 37)]


class Odd(nn.Module):
    """A language model that asks its head in pieces, so that one position a row cannot be handed to it."""

    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(37, 8), nn.Linear(8, 37)

    def get_output_embeddings(self):
        return self.out

    def forward(self, input_ids, attention_mask=None):
        hidden = self.table(input_ids).cumsum(1)
        self.logits = torch.cat([self.out(hidden[:, :3]), self.out(hidden[:, 3:])], 1)
        return self


def test_a_head_used_in_another_way_gives_all_logits():
    model = Odd()
    next_token = NextToken(model)
    answers = next_token(padded("right"))
    assert torch.equal(answers, model(**padded("right")).logits[torch.arange(3), torch.tensor(LENGTHS) - 1])
    assert not next_token.head
    model.get_output_embeddings = lambda: None
    assert torch.equal(NextToken(model)(padded("right")), answers)
    del Odd.get_output_embeddings, model.get_output_embeddings
    assert torch.equal(NextToken(model)(padded("right")), answers)


def test_next_token_refuses_what_has_no_last_token():
    next_token = NextToken(tiny.causal("gpt2"))
    empty = padded("right")
    empty["attention_mask"][1] = 0
    with pytest.raises(InputError, match="text 1 is nothing but padding"):
        next_token(empty)
    with pytest.raises(InputError, match=r"got shape \(6,\)"):
        next_token(TOKENS[0])


def test_noise_in_a_language_model_reaches_the_token_it_names():
    next_token = adapt(tiny.causal("gpt2", initializer_range=0.5))
    for side in ("right", "left"):
        inputs = padded(side)
        for nudge in (perturb.EmbeddingNoise(sigma2=4.0), perturb.HiddenNoise("h.0", 4.0), perturb.TokenReplace(37)):
            assert torch.equal(nudge.positions(inputs), inputs["attention_mask"].bool())
            assert teeter.sensitivity(next_token, inputs, nudge, budget=60).value > 0
    assert teeter.doctor(next_token, padded("left"), perturb.EmbeddingNoise()) == []


def test_text_classifier():
    model = tiny.text_classifier()
    classifier = adapt(model)
    assert isinstance(classifier, Keywords)
    assert not classifier.training
    text = tiny.tokenizer()(["the film was good", "bad"], padding=True, return_tensors="pt")
    inputs = {"input_ids": text["input_ids"], "attention_mask": text["attention_mask"]}
    assert torch.equal(classifier(inputs), model(**inputs).logits)
    assert torch.equal(classifier(inputs["input_ids"]), model(inputs["input_ids"]).logits)
    nudge = perturb.EmbeddingNoise(sigma2=9.0, skip=(2, 3))
    assert nudge.where(classifier) is model.bert.embeddings.LayerNorm
    assert 0 < teeter.sensitivity(classifier, inputs, nudge, budget=400).value < 1
    assert not any(finding.wrong for finding in teeter.doctor(classifier, inputs, nudge))


def test_image_classifier():
    model = tiny.image_classifier()
    classifier = adapt(model)
    images = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(classifier(images), model(pixel_values=images).logits)
    for inputs in (images, {"pixel_values": images}):
        assert teeter.sensitivity(classifier, inputs, perturb.PatchNoise(4, 4.0), budget=200).value > 0
    patches = perturb.HiddenNoise("embeddings.patch_embeddings", 4.0, tokens=16)
    assert teeter.sensitivity(classifier, images, patches, budget=200).value > 0


def test_what_is_adapted_and_what_is_not():
    from transformers import BertModel

    class Mine(type(tiny.text_classifier())):
        pass

    bare = BertModel(tiny.config("bert"))
    assert adapt(bare) is bare
    assert adapt(nn.Flatten()).__class__ is nn.Flatten
    assert isinstance(adapt(Mine(tiny.config("bert"))), Keywords)  # a class derived from a known one
    assert kind_of("DeiTForImageClassificationWithTeacher") == "ForImageClassification"
    assert longest_text(adapt(tiny.causal("gpt2"))) == 32
    assert longest_text(adapt(tiny.causal("roberta", is_decoder=True))) == 31
    assert longest_text(nn.Flatten()) is None


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"pip install 'teeter\[text\]'"):
        library()


def test_an_adapter_leaves_the_modes_of_parts_alone():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).train()
    model[1].eval()  # frozen
    assert Keywords(model).training and NextToken(model).training
    assert model[0].training and not model[1].training
