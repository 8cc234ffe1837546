"""The idx format of MNIST: a magic number, the sizes, then the values, the highest byte of each first."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from teeter.errors import InputError

__all__ = ["read_idx"]

_GZIP = b"\x1f\x8b"
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path | str) -> Tensor:
    """The values of an idx file, compressed with gzip or not, in the type and shape its header gives.

    The header is two zero bytes, one byte for the type, one for the number of dimensions, and four for each size.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "digits-idx2-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 2,  0, 0, 0, 2,  0, 0, 0, 3,  1, 2, 3, 4, 5, 6]))
    >>> read_idx(path)
    tensor([[1, 2, 3],
            [4, 5, 6]], dtype=torch.uint8)
    """
    data = _content(Path(path))
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise InputError(f"{path} is not an idx file: it begins with {data[:4].hex(' ') or 'nothing'}")
    kind, dimensions = np.dtype(_TYPES[data[2]]), data[3]
    start = 4 + 4 * dimensions
    if len(data) < start:
        raise InputError(f"{path} is cut short: {len(data)} bytes, and its header alone has {start}")
    shape = struct.unpack(f">{dimensions}I", data[4:start])
    expected = start + math.prod(shape) * kind.itemsize
    if len(data) != expected:
        what = "is cut short" if len(data) < expected else "has something after its end"
        raise InputError(f"{path} {what}: {len(data)} bytes, expected {expected} for the sizes {shape} in its header")
    values = np.frombuffer(data, dtype=kind, offset=start).astype(kind.newbyteorder("="))
    return torch.from_numpy(values.reshape(shape))


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputError(f"{path} is damaged or cut short ({problem}): fetch it again") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
