"""Sentence pairs from small files in the real layouts, and from the real ones where TEETER_DATA has them."""

import os
from pathlib import Path

import pytest
import torch

from teeter.data import TextPairs, mrpc, qqp, read_pairs
from teeter.data.own import Absent
from teeter.errors import InputError, UnknownName

ORIGINAL = (
    "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    '1\t7\t8\tHe said "no.\tHe said no.\r\n'
    "0\t9\t10\tA\u2028b\tC\r\n"
)
SUBSET = b"1\tWhy?\tHow so?\t18\n0\tWho \xe2\x80\tWhen?\t211\n"
GLUE_MRPC = ORIGINAL.removeprefix("\ufeff").replace("\r", "")
GLUE_QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n" + "".join(
    f"{i}\t{2 * i}\t{2 * i + 1}\tq{i}\tr{i}\t{i % 2}\n" for i in range(200)
)
GLUE_TEST = "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tA\tB\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))

    def write(name, content):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place

    return write


@pytest.mark.parametrize(
    ("file", "content", "split"),
    [
        ("mrpc/msr_paraphrase_train.txt", ORIGINAL, "train"),
        ("mrpc/msr_paraphrase_test.txt", ORIGINAL, "test"),
        ("MRPC/train.tsv", GLUE_MRPC, "train"),
        ("MRPC/dev.tsv", GLUE_MRPC, "dev"),
    ],
)
def test_mrpc_layouts(file, content, split, own):
    own(file, content)
    pairs = mrpc(split)
    assert pairs.first == ('He said "no.', "A\u2028b")  # quotes and rare line ends are text
    assert pairs.second == ("He said no.", "C")
    assert pairs.labels.tolist() == [1, 0] and pairs.labels.dtype == torch.int64
    assert pairs.classes == ("different", "paraphrase")
    assert (len(pairs), pairs.left_out) == (2, 0)


@pytest.mark.parametrize(("file", "split"), [("qqp/train10k.tsv", "train"), ("qqp/test10k.tsv", "test")])
def test_qqp_without_a_header(file, split, own):
    own(file, SUBSET)
    pairs = qqp(split)
    assert (pairs.first, pairs.second) == (("Why?", "Who \ufffd"), ("How so?", "When?"))
    assert (pairs.labels.tolist(), pairs.classes) == ([1, 0], ("different", "duplicate"))


def test_qqp_as_glue_has_it(own):
    cut_in_two = "200\t400\t401\tq\nand on\tr\t1\n"
    own("QQP/dev.tsv", GLUE_QQP + cut_in_two)
    pairs = qqp("dev")
    assert (len(pairs), pairs.left_out) == (200, 2)
    assert (len(pairs[:50]), pairs[:50].left_out) == (50, 2)
    assert (pairs.first[3], pairs.second[3], int(pairs.labels[3])) == ("q3", "r3", 1)


def test_the_first_file_that_is_there(own):
    own("mrpc/train.tsv", GLUE_MRPC.replace("1\t7", "0\t7"))
    assert mrpc().labels.tolist() == [0, 0]
    own("MRPC/msr_paraphrase_train.txt", ORIGINAL)
    assert mrpc().labels.tolist() == [1, 0]
    own("qqp/train10k.tsv", SUBSET)
    assert len(qqp()) == 2
    own("QQP/train.tsv", GLUE_QQP)
    assert len(qqp()) == 200  # the full one
    own("qqp/test.tsv", "id\tquestion1\tquestion2\n")
    own("qqp/test10k.tsv", SUBSET)
    assert len(qqp("test")) == 2  # the one with labels


def test_mrpc_without_its_header(own):
    place = own("mrpc/msr_paraphrase_train.txt", ORIGINAL.split("\n", 1)[1])
    pairs = mrpc()
    assert (pairs.first, pairs.second) == (('He said "no.', "A\u2028b"), ("He said no.", "C"))
    for line in ("1\t7\tHe said\tHe did\n", "1\tHe said\tHe did\t7\t8\n", "1\t7\t8\ta\tb\tc\n"):
        place.write_text(line)
        with pytest.raises(InputError, match=f"has no header and {line.count(chr(9)) + 1} columns: MRPC's are"):
            mrpc()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "does not hold pairs with labels 0 or 1: there are no lines"),
        ("1\ta\tb\n1\tc\n", "line 2 is none"),
        ("1\ta\tb\n2\tc\td\n", "line 2 is none"),
        ("a\tb\n", r"has no column 'is_duplicate', but 'a, b'"),
        (b"\xff\xfea\x00", "has no column"),
        ("id\tquestion1\tquestion2\n0\ta\tb\n", r"has no labels \(GLUE keeps"),
    ],
)
def test_files_that_hold_no_pairs(content, message, own):
    place = own("qqp/train.tsv", content)
    with pytest.raises(InputError, match=message):
        qqp()
    with pytest.raises(InputError, match=str(place)):
        read_pairs("qqp", place)


def test_glue_keeps_the_labels_of_its_test_file(own):
    own("mrpc/test.tsv", GLUE_TEST)
    with pytest.raises(Absent, match="test.tsv has no labels"):
        mrpc("test")


def test_what_is_not_there(own, monkeypatch):
    own("mrpc/other.txt", "")
    with pytest.raises(InputError, match="registry: put msr_paraphrase_train.txt or train.tsv into .*/mrpc$"):
        mrpc()
    with pytest.raises(InputError, match="cannot read .*mrpc: Is a directory"):
        read_pairs("mrpc", Path(os.environ["TEETER_DATA"]) / "mrpc")
    monkeypatch.delenv("TEETER_DATA")
    with pytest.raises(InputError, match="set TEETER_DATA to a folder of yours and put test10k.tsv .* into qqp in it"):
        qqp("test")
    with pytest.raises(UnknownName, match="no split named 'tset': did you mean 'test'"):
        qqp("tset")
    with pytest.raises(UnknownName, match="no data set of pairs named 'mrcp': did you mean 'mrpc'"):
        read_pairs("mrcp", "x")


TWO = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("second", "labels", "message"),
    [
        (("c",), TWO, "2 first and 1 second"),
        (("c", "d"), TWO.int(), "2 pairs have as many int64 labels, got torch.int32"),
        (("c", "d"), TWO[:1], r"got torch.int64 \(1,\)"),
        (("c", "d"), TWO + 1, "from 0 to 1, got 2"),
        (("c", "d"), -TWO, "from 0 to 1, got -1"),
    ],
)
def test_pairs_that_are_none(second, labels, message):
    with pytest.raises(InputError, match=message):
        TextPairs(("a", "b"), second, labels, ("no", "yes"))


def test_the_real_files():
    """The sizes that V gives for MRPC (appendix D); QQP here is the balanced subset of 10,000 and 10,000."""
    root = os.environ.get("TEETER_DATA")
    if not root or not (Path(root) / "mrpc" / "msr_paraphrase_train.txt").is_file():
        pytest.skip("TEETER_DATA names no folder with mrpc and qqp in it")
    for split, counts in (("train", [1323, 2753]), ("test", [578, 1147])):
        pairs = mrpc(split)
        assert pairs.labels.bincount().tolist() == counts
        assert pairs.left_out == 0
        assert max(text.count("\ufffd") + text.count("\r") for text in pairs.first + pairs.second) == 0
    assert mrpc().first[0].startswith('Amrozi accused his brother, whom he called "the witness",')
    for split in ("train", "test"):
        pairs = qqp(split)
        assert pairs.labels.bincount().tolist() == [5000, 5000]
        assert pairs.left_out == 0
