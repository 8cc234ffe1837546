"""Whatever is in a file of numpy's name, it is an array or an InputError, and nothing of it is run."""

import zipfile

import numpy as np
import pytest

from teeter.data.arrays import read_array, read_arrays
from teeter.data.kept import read_kept
from teeter.errors import InputError
from teeter.integrations import load_inputs

VALUES = np.arange(12, dtype=np.uint8).reshape(3, 4)
HEADER = b"\x93NUMPY\x01\x00\x76\x00"


def test_arrays(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    assert np.array_equal(read_array(tmp_path / "a.npy"), VALUES)
    mapped = read_array(tmp_path / "a.npy", mapped=True)
    assert isinstance(mapped, np.memmap) and np.array_equal(mapped, VALUES)
    np.savez_compressed(tmp_path / "b.npz", one=VALUES, two=VALUES[0])
    found = read_arrays(tmp_path / "b.npz")
    assert list(found) == ["one", "two"]
    assert np.array_equal(found["one"], VALUES) and np.array_equal(found["two"], VALUES[0])


def whole(tmp_path, save, *values):
    with (tmp_path / "whole").open("wb") as file:
        save(file, *values)
    return (tmp_path / "whole").read_bytes()


class Trap:
    def __reduce__(self):
        return print, ("sprung",)


def bad(tmp_path):
    """Contents that are neither a whole .npy nor a whole .npz file."""
    one, several = whole(tmp_path, np.save, VALUES), whole(tmp_path, np.savez, VALUES)
    with zipfile.ZipFile(tmp_path / "whole", "w") as file:
        file.writestr("notes.npy", "not an array")
    odd = (tmp_path / "whole").read_bytes()
    broken = bytearray(whole(tmp_path, np.savez_compressed, np.zeros(5000)))
    broken[60:90] = bytes(30)
    return {
        "empty": b"",
        "text": b"1 2 3",
        "pickle": whole(tmp_path, np.save, np.array([Trap()], dtype=object)),
        "cut": one[:-5],
        "cut in the header": one[:30],
        "header of no Python": HEADER + b"{'descr': (((((".ljust(117) + b"\n",
        "header of another thing": HEADER + b"[1, 2]".ljust(117) + b"\n",
        "header without end": HEADER + b"{'descr': '|u1', 'fortran_order': False, 'shape': (3".ljust(117) + b"\n",
        "header of bytes": HEADER + b"\xff" * 118,
        "shape below nothing": one.replace(b"(3, 4)", b"(-3,4)"),
        "shape beyond all": one.replace(b"(3, 4)", b"(9**9)"),
        "an unknown type": one.replace(b"|u1", b"|z9"),
        "PK alone": b"PK\3\4",
        "no zip": b"PK no zip",
        "zip cut": several[:-30],
        "zip of something else": odd,
        "zip damaged": bytes(broken),
    }


NAMES = [
    *("empty", "text", "pickle", "cut", "cut in the header", "header of no Python", "header of another thing"),
    *("header without end", "header of bytes", "shape below nothing", "shape beyond all", "an unknown type"),
    *("PK alone", "no zip", "zip cut", "zip of something else", "zip damaged"),
]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_array(name, tmp_path, capsys):
    content = bad(tmp_path)[name]
    for file, reads in (("a.npy", [read_array, lambda p: read_array(p, mapped=True)]), ("a.npz", [read_arrays])):
        (tmp_path / file).write_bytes(content)
        for read in (*reads, load_inputs):
            with pytest.raises(InputError, match=f"cannot read {tmp_path / file}: ."):
                read(tmp_path / file)
    assert read_kept(tmp_path / "a.npy", (3, 4)) is None
    assert capsys.readouterr().out == ""


def test_a_file_under_the_other_s_name(tmp_path):
    (tmp_path / "a.npz").write_bytes(whole(tmp_path, np.save, VALUES))
    (tmp_path / "a.npy").write_bytes(whole(tmp_path, np.savez, VALUES))
    for read in (read_arrays, load_inputs):
        with pytest.raises(InputError, match="a.npz: it holds one array without a name and should be called .npy"):
            read(tmp_path / "a.npz")
    for read in (read_array, load_inputs):
        with pytest.raises(InputError, match="a.npy: it holds several arrays and should be called .npz"):
            read(tmp_path / "a.npy")
    assert read_kept(tmp_path / "a.npy", (3, 4)) is None


def test_what_is_not_there(tmp_path):
    for read in (read_array, read_arrays):
        with pytest.raises(InputError, match="cannot read .*nothing: No such file or directory$"):
            read(tmp_path / "nothing")


def test_arrays_that_are_no_tensors(tmp_path):
    np.save(tmp_path / "texts.npy", np.array(["a", "b"]))
    with pytest.raises(InputError, match="cannot read .*texts.npy: "):
        load_inputs(tmp_path / "texts.npy")
