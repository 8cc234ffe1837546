import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from teeter.errors import InputError
from teeter.integrations import fill, read_weights


def test_both_kinds_of_file(tmp_path):
    source = nn.Linear(3, 2)
    save_file(source.state_dict(), tmp_path / "w.safetensors")
    torch.save(source.state_dict(), tmp_path / "w.pth")
    for name in ("w.safetensors", "w.pth"):
        assert torch.equal(fill(nn.Linear(3, 2), tmp_path / name).weight, source.weight)


def test_files_that_are_none(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    torch.save({"weight": Trap()}, tmp_path / "trap.pth")
    (tmp_path / "broken.safetensors").write_bytes(b"nonsense")
    torch.save([torch.ones(2)], tmp_path / "list.pth")
    for name, message in (
        ("trap.pth", "cannot read weights"),
        ("broken.safetensors", "cannot read weights"),
        ("list.pth", "holds no weights by name"),
        ("absent.pth", "there is no file"),
    ):
        with pytest.raises(InputError, match=message) as refused:
            read_weights(tmp_path / name)
        assert "\n" not in str(refused.value)
    assert not (tmp_path / "sprung").exists()
    torch.save(nn.Linear(4, 2).state_dict(), tmp_path / "other.pth")
    with pytest.raises(InputError, match="does not fit the Linear: .*size mismatch"):
        fill(nn.Linear(3, 2), tmp_path / "other.pth")
