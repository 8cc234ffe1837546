"""One file, there whole or not at all."""

import os
import time

import pytest
import torch

from teeter.errors import InputError
from teeter.train import read_checkpoint, write_checkpoint
from teeter.train.checkpoint import NAME


def test_what_was_written_is_read(tmp_path):
    weight = torch.randn(3, 4)
    tensors = {
        "weight": weight,
        "tied": weight,  # shares its memory
        "part": weight.T[1:],  # is not contiguous
        "half": torch.tensor(1.5, dtype=torch.bfloat16),
        "random": torch.get_rng_state(),
        "none": torch.zeros(2, 0),
        "nan": torch.tensor([float("nan"), float("-inf"), -0.0], dtype=torch.float64),
    }
    facts = {"step": 3, "rows": [{"loss": 0.1 + 0.2, "infinite": float("inf"), "none": None}], "name": "±1"}
    write_checkpoint(tmp_path / "new" / "folder", tensors, facts)
    found = read_checkpoint(tmp_path / "new" / "folder")
    assert found.facts == facts
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name].nan_to_num(), tensor.nan_to_num())
    assert read_checkpoint(tmp_path) is None


def test_a_failed_write_leaves_the_one_before(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, {"a": torch.ones(1)}, {})

    def fails(*given):
        raise OSError("no space left")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(OSError, match="no space left"):
                write_checkpoint(tmp_path, {"a": torch.zeros(1)}, {})
    assert read_checkpoint(tmp_path).tensors["a"] == 1
    assert [place.name for place in tmp_path.iterdir()] == [NAME]


def test_what_the_killed_left_is_swept_when_it_is_old(tmp_path):
    old, new, other = (tmp_path / name for name in (f".{NAME}.1.part", f".{NAME}.2.part", ".mine.part"))
    for place in (old, new, other):
        place.touch()
    for place in (old, other):
        os.utime(place, (time.time() - 7200,) * 2)
    write_checkpoint(tmp_path, {}, {})
    assert sorted(place.name for place in tmp_path.iterdir()) == sorted([new.name, other.name, NAME])


def test_damage_is_an_error_that_names_the_file(tmp_path):
    from safetensors.torch import save_file

    place = write_checkpoint(tmp_path, {"a": torch.ones(100)}, {"step": 1})
    whole = place.read_bytes()
    for damaged in (b"", whole[:40], whole[:-8], b"\xff" * 100):
        place.write_bytes(damaged)
        with pytest.raises(InputError, match="checkpoint.safetensors is damaged"):
            read_checkpoint(tmp_path)
    for header in (None, {"facts": "{"}):
        save_file({"a": torch.ones(1)}, place, metadata=header)
        with pytest.raises(InputError, match="is damaged"):
            read_checkpoint(tmp_path)


def test_a_file_is_not_a_folder(tmp_path):
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(InputError, match="kept in a folder, got the file"):
        write_checkpoint(place, {}, {})
