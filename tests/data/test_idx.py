import gzip
import struct

import pytest
import torch

from teeter.data import read_idx
from teeter.errors import InputError

SMALL = bytes([0, 0, 8, 2]) + struct.pack(">2I", 2, 3) + bytes(range(6))


@pytest.mark.parametrize(
    ("code", "letter", "dtype"),
    [
        (0x08, "B", torch.uint8),
        (0x09, "b", torch.int8),
        (0x0B, "h", torch.int16),
        (0x0C, "i", torch.int32),
        (0x0D, "f", torch.float32),
        (0x0E, "d", torch.float64),
    ],
)
def test_every_type(code, letter, dtype, tmp_path):
    numbers = [100, 2, 0, 1, 127, 5]
    (tmp_path / "file").write_bytes(bytes([0, 0, code, 1]) + struct.pack(f">I6{letter}", 6, *numbers))
    values = read_idx(tmp_path / "file")
    assert values.dtype == dtype
    assert values.tolist() == numbers


def test_compressed_or_not_whatever_the_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(SMALL)
    (tmp_path / "compressed").write_bytes(gzip.compress(SMALL, mtime=0))
    for name in ("plain.gz", "compressed"):
        assert read_idx(str(tmp_path / name)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_no_images_at_all(tmp_path):
    (tmp_path / "file").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", 0, 28, 28))
    assert read_idx(tmp_path / "file").shape == (0, 28, 28)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an idx file: it begins with nothing"),
        (b"\0\0\x08", "not an idx file"),
        (b"\x89PNG" + SMALL, "it begins with 89 50 4e 47"),
        (b"\0\0\x07" + SMALL[3:], "it begins with 00 00 07 02"),
        (SMALL[:9], "cut short: 9 bytes, and its header alone has 12"),
        (SMALL[:-1], r"cut short: 17 bytes, expected 18 for the sizes \(2, 3\)"),
        (SMALL + b"!", "something after its end: 19 bytes, expected 18"),
        (gzip.compress(SMALL, mtime=0)[:-9], "damaged or cut short"),
        (gzip.compress(SMALL, mtime=0)[:15] + b"\xff" * 30, "damaged or cut short"),
        (gzip.compress(SMALL, mtime=0) + b"junk", "damaged or cut short"),
    ],
)
def test_damaged_files(data, message, tmp_path):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_idx(tmp_path / "file")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_idx(tmp_path / "nothing")
