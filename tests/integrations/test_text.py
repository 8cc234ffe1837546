import json

import pytest
import torch

from teeter.errors import InputError
from teeter.integrations import read_labels, read_texts, special_tokens, tokenize, tokenizer_of, words
from tests import tiny


def test_tokenize_pads_right_and_masks(tmp_path):
    tiny.tokenizer(tmp_path)
    inputs = tokenize(["the film was good", "bad"], tmp_path)
    assert inputs["input_ids"].tolist() == [[2, 4, 5, 6, 7, 3], [2, 8, 3, 0, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]
    assert tokenize(["the film was good"], tmp_path, max_length=4)["input_ids"].tolist() == [[2, 4, 5, 3]]
    reader = tiny.tokenizer()
    reader.pad_token = None  # as GPT-2's
    assert tokenize(["the film", "bad"], reader)["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    reader.model_max_length = 3
    assert tokenize(["the film was good"], reader)["input_ids"].tolist() == [[2, 4, 3]]


def test_special_tokens_are_structure_and_not_unknown_words():
    reader = tiny.tokenizer()
    assert special_tokens(reader) == (0, 2, 3)
    reader.add_special_tokens({"additional_special_tokens": ["[NEW]"]})
    assert special_tokens(reader) == (0, 2, 3, len(tiny.WORDS))
    reader.unk_token = "[SEP]"
    assert 3 in special_tokens(reader)


def test_words_are_shown_as_they_are_read():
    reader = tiny.tokenizer()
    inputs = tokenize(["the film was good", "bad"], reader)
    assert words(reader, inputs) == [["[CLS]", "the", "film", "was", "good", "[SEP]"], ["[CLS]", "bad", "[SEP]"]]
    assert words(reader, torch.tensor([[4, 0]])) == [["the", "[PAD]"]]

    class Bytes:
        def decode(self, tokens):
            return {0: " ", 1: "\n", 2: " yes"}[tokens[0]]

    assert words(Bytes(), torch.tensor([[0, 1, 2]])) == [["␣", "⏎", "yes"]]


def test_tokenizers_and_texts_that_are_none(tmp_path):
    with pytest.raises(InputError, match="has no tokenizer_config.json"):
        tokenizer_of(tmp_path)
    tiny.tokenizer(tmp_path)
    for texts in ([], "one text"):
        with pytest.raises(InputError, match="a list of at least one text"):
            tokenize(texts, tmp_path)
    with pytest.raises(InputError, match="max_length is at least 1"):
        tokenize(["good"], tmp_path, max_length=0)

    def no_tokens(texts, **named):
        return {"input_ids": [[] for _ in texts], "attention_mask": [[] for _ in texts]}

    no_tokens.model_max_length, no_tokens.pad_token_id = 10, None
    with pytest.raises(InputError, match="every text is empty"):
        tokenize([""], no_tokens)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="cannot load the tokenizer"):
        tokenizer_of(tmp_path)
    says = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(says | {"auto_map": {"AutoTokenizer": ["a.B", None]}}))
    with pytest.raises(InputError, match="wants code of its own run"):
        tokenizer_of(tmp_path)


def test_csv(tmp_path):
    place = tmp_path / "reviews.csv"
    place.write_text('text,label,note\n"good, really",1,NA\nnull,0,x\n')
    assert read_texts(place) == ["good, really", "null"]  # words that mean "missing" elsewhere are words
    assert read_texts(place, "note") == ["NA", "x"]
    with pytest.raises(InputError, match="no column 'review': name one of text, label, note"):
        read_texts(place, "review")
    for content, message in ((b"", "cannot read"), (b'a,"b\n', "cannot read"), (b"\xff\xfe\xfa", "cannot read")):
        place.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_texts(place)
    place.write_text("text\n")
    with pytest.raises(InputError, match="has no rows"):
        read_texts(place)
    with pytest.raises(InputError, match="there is no file"):
        read_texts(tmp_path / "none.csv")


def test_labels_of_a_csv(tmp_path):
    place = tmp_path / "reviews.csv"
    place.write_text("text,label,mood,stars\na,1,sad,10\nb,0,glad,9\nc,1,sad,-2\n")
    labels, classes = read_labels(place)
    assert (labels.tolist(), classes) == ([1, 0, 1], ("0", "1"))
    assert labels.dtype == torch.int64
    assert read_labels(place, "mood")[1] == ("glad", "sad")
    labels, classes = read_labels(place, "stars")
    assert (labels.tolist(), classes) == ([2, 1, 0], ("-2", "9", "10"))
    place.write_text("text,label\na,1\nb,\n")
    with pytest.raises(InputError, match="row 2 of .* has nothing in its column 'label'"):
        read_labels(place)
