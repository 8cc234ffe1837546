"""Model directories: loaded as they are, or refused in one line; never run."""

import json
import pickle

import pytest
import torch

from teeter.errors import InputError
from teeter.integrations import Keywords, NextToken, encoder, pretrained
from teeter.integrations.pretrained import quiet
from tests import tiny


def edit(folder, **changes):
    place = folder / "config.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changes))


def test_each_kind_of_model(tmp_path):
    for model, kind in (
        (tiny.text_classifier(), Keywords),
        (tiny.image_classifier(), Keywords),
        (tiny.causal("gpt2"), NextToken),
    ):
        folder = tmp_path / type(model).__name__
        tiny.save(model.half(), folder)
        loaded = pretrained(folder)
        assert type(loaded) is kind
        assert not loaded.training
        assert {p.dtype for p in loaded.parameters()} == {torch.float32}
        for name, weight in model.state_dict().items():
            assert torch.equal(loaded.model.state_dict()[name], weight.float())


def test_torch_weights_are_read_as_weights_alone(tmp_path):
    model = tiny.text_classifier()
    tiny.save(model, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert torch.equal(pretrained(tmp_path).model.classifier.weight, model.classifier.weight)

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    torch.save({"classifier.weight": Trap()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot load the BertForSequenceClassification"):
        pretrained(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match="cannot load"):
        pretrained(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_bare_encoder(tmp_path):
    model = tiny.text_classifier()
    tiny.save(model, tmp_path)
    bare = encoder(tmp_path)
    assert type(bare).__name__ == "BertModel"
    assert not bare.training
    assert torch.equal(bare.embeddings.word_embeddings.weight, model.bert.embeddings.word_embeddings.weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"auto_map": {"AutoModel": "mine.Model"}}, "wants code of its own run"),
        ({"inner": [{"auto_map": {}}]}, "wants code of its own run"),
        ({"_attn_implementation": "someone/attention"}, "wants code of its own run"),
        ({"architectures": None}, "has no 'architectures'"),
        ({"architectures": ["BertForMaskedLM"]}, "ForSequenceClassification, ForImageClassification or ForCausalLM"),
        ({"architectures": ["MyForCausalLM"]}, "which transformers .* does not know"),
        ({"architectures": ["BertLMHeadModel"], "is_decoder": True}, "lacks .* weights .*: they would be random"),
        ({"hidden_size": 18}, "cannot load"),
    ],
)
def test_configurations_that_are_refused(tmp_path, changes, message):
    tiny.save(tiny.text_classifier(), tmp_path)
    edit(tmp_path, **changes)
    with pytest.raises(InputError, match=message) as refused:
        pretrained(tmp_path)
    assert "\n" not in str(refused.value)


def test_directories_that_are_none(tmp_path):
    with pytest.raises(InputError, match="it has no config.json"):
        pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{broken")
    with pytest.raises(InputError, match="cannot read"):
        pretrained(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="holds no JSON object"):
        pretrained(tmp_path)
    tiny.save(tiny.text_classifier(), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InputError, match="cannot load"):
        pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="has no weights: it needs model.safetensors"):
        pretrained(tmp_path)


def test_quiet_leaves_the_library_as_it_was():
    from transformers.utils import logging

    for bars in (True, False):
        (logging.enable_progress_bar if bars else logging.disable_progress_bar)()
        before = logging.get_verbosity()
        with quiet():
            assert not logging.is_progress_bar_enabled()
        assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (before, bars)
    logging.enable_progress_bar()
