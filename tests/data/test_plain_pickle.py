"""Pickles are taken apart, never run: what the standard library would make of plain data, and nothing else."""

import collections
import io
import pickle
import pickletools
import struct
import subprocess
import time

import numpy as np
import pytest

from teeter.data.plain_pickle import read_plain_pickle
from teeter.errors import InputError

ROWS = np.arange(12, dtype=np.uint8).reshape(3, 4)
PLAIN = {
    "data": ROWS,
    "columns": np.asfortranarray(ROWS),
    "labels": [1, 2, 3, 300, 70_000, -1, 2**40, -(2**80)],
    "texts": ["a", "ä", "x" * 300],
    "bytes": b"\x00\xff",
    "nothing": (None, True, False, 0.5, (), (1,), (1, 2, 3, 4)),
    "nested": {"empty": {}, "list": []},
    "same": ROWS,
}


def same(one, other):
    if isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in other)
    return type(one) is type(other) and one == other


@pytest.fixture
def read(tmp_path):
    def call(content):
        (tmp_path / "batch").write_bytes(content)
        return read_plain_pickle(tmp_path / "batch")

    return call


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_data_is_what_the_standard_library_makes_of_it(protocol, read):
    content = pickle.dumps(PLAIN, protocol=protocol)
    assert same(read(content), pickle.loads(content))
    assert same(read(pickletools.optimize(content)), PLAIN)


def test_a_file_as_python_2_wrote_it(read):
    """Text and bytes were one, and the modules of numpy had other names."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    kind = (
        b"cnumpy\ndtype\n"
        + text(b"u1")
        + b"K\0K\1\x87R(K\3"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    )
    made = b"cnumpy.core.multiarray\n_reconstruct\nq\1cnumpy\nndarray\nK\0\x85" + text(b"b") + b"\x87R"
    content = bytes(range(250, 256))
    array = made + b"(K\1K\2K\3\x86" + kind + b"\x89T" + struct.pack("<i", 6) + content + b"tb"
    labels = b"]q\2(K\6K\ne"
    batch = b"\x80\2}q\0(" + text(b"data") + array + text(b"labels") + labels + b"u."
    expected = {"data": np.frombuffer(content, dtype=np.uint8).reshape(2, 3), "labels": [6, 10]}
    assert same(read(batch), expected)
    assert same(pickle.loads(batch, encoding="latin1"), expected)  # the standard library reads the same in it


@pytest.mark.parametrize(
    "content", [b"(lp0\nI1\naI2\na.", b"(dp0\nS'a'\nI1\ns.", b"(S'a'\n(I1\nI2\nlt.", b"(S'a'\nI1\nd."]
)
def test_the_oldest_instructions(content, read):
    assert same(read(content), pickle.loads(content))


class Trap:
    def __init__(self, what):
        self.what = what

    def __reduce__(self):
        return self.what


def test_nothing_is_run(read, tmp_path):
    sprung = tmp_path / "sprung"
    for function, arguments in (
        (open, (str(sprung), "w")),
        (subprocess.check_output, (["touch", str(sprung)],)),
        (eval, (f"open({str(sprung)!r}, 'w')",)),
        (np.save, (str(sprung), 1)),
        (np.memmap, (str(sprung), "u1", "w+", 0, 1)),
        (collections.OrderedDict, ()),
    ):
        for protocol in range(6):
            for value in (Trap((function, arguments)), {"data": ROWS, "labels": [Trap((function, arguments))]}):
                content = pickle.dumps(value, protocol=protocol)
                with pytest.raises(InputError, match="is refused and nothing of it was run: it names"):
                    read(content)
    assert not list(tmp_path.glob("sprung*"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cnumpy\nndarray\n.", "numpy.ndarray stands where a value should"),
        (b"cnumpy\nndarray\n)\x81.", "the instruction NEWOBJ is more than plain data needs"),
        (b"\x80\2}Q.", "the instruction BINPERSID"),
        (b"(ios\nsystem\n.", "the instruction INST"),
        (b"]K\1\x85R.", "calls what is no function of numpy's"),
        (b"U\x0bnumpy dtypeK\1\x85R.", "calls what is no function of numpy's"),
        (b"]}b.", "fills a list with what does not go into it"),
        (b"}K\1a.", "fills a dict with"),
        (b"]K\1K\2s.", "fills a list with"),
        (b"}U\1a\x85K\1s.", "a dict has a key that is no text but a tuple"),
        (b"}cnumpy\nndarray\nK\1s.", "a dict has a key that is no text but a _Name"),
        (b"cnumpy\ndtype\nU\2u1\x85R.", "makes bytes of a _Made"),
        (b"c_codecs\nencode\nX\1\0\0\0aX\4\0\0\0zlib\x86R.", "makes bytes of a _Made"),
    ],
)
def test_more_than_data_is_refused(content, message, read):
    with pytest.raises(InputError, match=f"is refused and nothing of it was run: .*{message}"):
        read(content)


def test_arrays_of_something_else_than_bytes(read):
    for values in (np.ones(3), np.array([1, None], dtype=object), np.array(["a"])):
        with pytest.raises(InputError, match="an array of something else than bytes"):
            read(pickle.dumps({"data": values}, protocol=4))


def test_damage(read, tmp_path):
    whole = pickle.dumps({"data": ROWS, "labels": [1, 2]}, protocol=2)
    for content in (
        b"",
        b"!",
        b".",
        b"K\1K\2.",
        b"e.",
        b"h\5.",
        whole[:-30],
        whole[:20],
        b"]h\0a.",
        b"]q\0h\0a.",
        b"(K\1d.",
    ):
        with pytest.raises(InputError, match="batch is damaged or cut short"):
            read(content)
    shape = whole.index(b"K\3K\4\x86")
    with pytest.raises(InputError, match=r"an array of shape \(3, 5\) in 12 bytes"):
        read(whole[:shape] + b"K\3K\5\x86" + whole[shape + 5 :])
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_plain_pickle(tmp_path / "nothing")


def nested(depth):
    """A pair of pairs of pairs ... of one text, each written once and pointed at twice."""
    parts = [b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(depth)]
    return b"\x80\2U\1aq\0" + b"".join(parts)


def test_a_value_that_is_pointed_at_over_and_over_is_read_once(read):
    start = time.perf_counter()
    value, depth = read(nested(100) + b"."), 0
    while isinstance(value, tuple):
        assert value[0] is value[1]
        value, depth = value[0], depth + 1
    assert (value, depth) == ("a", 100)
    with pytest.raises(InputError, match="a dict has a key that is no text but a tuple"):
        read(b"}" + nested(100) + b"K\1s.")  # to hash it would take as long
    with pytest.raises(InputError, match="damaged or cut short"):
        read(array(nested(100)))  # as a shape
    assert time.perf_counter() - start < 1


def array(shape, content=b"U\6abcdef", after=b"."):
    kind = b"cnumpy\ndtype\nU\2u1K\0K\1\x87R(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R(K\1"
    return made + shape + kind + b"\x89" + content + b"tb" + after


def test_the_work_is_in_proportion_to_the_file(read):
    text = b"T" + struct.pack("<i", 1_000_000) + b"x" * 1_000_000 + b"q\7"
    shape = b"J" + struct.pack("<i", 1_000_000) + b"\x85"
    many = b"".join(array(shape, b"h\7", after=b"a") for _ in range(3000))
    marks = b"K\1" * 100_000
    start = time.perf_counter()
    read(b"\x80\2" + text + b"]" + many + b"\x86.")  # 3,000 arrays of the same megabyte
    read(b"\x80\2(" + marks + b"(tK\1" * 100_000 + b"t.")  # many marks above a long stack
    with pytest.raises(InputError, match="not that of 6 bytes"):
        read(array(b"(\x8b" + struct.pack("<i", 100_000) + b"\1" * 100_000 + b"q\1" + b"h\1" * 100_000 + b"t"))
    assert time.perf_counter() - start < 10


def test_every_cut_of_a_file_is_an_error(read):
    buffer = io.BytesIO()
    pickle.dump({"data": ROWS, "labels": [1, 2]}, buffer, protocol=2)
    whole = buffer.getvalue()
    for end in range(len(whole)):
        with pytest.raises(InputError):
            read(whole[:end])
