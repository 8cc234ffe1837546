import numpy as np
import pytest
import torch
from torch import nn

from teeter import cube, perturb
from teeter.errors import InputError, UnknownName
from teeter.integrations import load_inputs, load_model


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "zoo_of_one.py").write_text(
        "import torch\n"
        "net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())\n"
        "def factory(width=2):\n    return torch.nn.Linear(3, width)\n"
        "def function(x):\n    return x.sum(-1)\n"
        "number = 7\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_models_by_name(here):
    net = load_model("zoo_of_one:net")
    assert isinstance(net, nn.Module)
    assert not net.training
    assert isinstance(load_model("zoo_of_one:factory"), nn.Linear)
    assert load_model("zoo_of_one:function")(torch.ones(2, 3)).tolist() == [3, 3]
    assert load_model("teeter.cube:parity") is cube.parity


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zoo_of_one", "written 'module:name'"),
        ("no_such_module:x", "cannot import the module 'no_such_module'"),
        ("zoo_of_one:nothing", "has no 'nothing'"),
        ("zoo_of_one:number", "is no model: it is int"),
    ],
)
def test_models_that_are_none(here, name, message):
    with pytest.raises(InputError, match=message):
        load_model(name)


def test_inputs(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    one = load_inputs(tmp_path / "a.npy")
    assert isinstance(one, torch.Tensor)
    assert one.dtype == torch.float32
    np.savez(
        tmp_path / "b.npz", input_ids=np.ones((4, 3), dtype=np.int64), attention_mask=np.ones((4, 3), dtype=np.int64)
    )
    both = load_inputs(tmp_path / "b.npz")
    assert set(both) == {"input_ids", "attention_mask"}
    np.savez(tmp_path / "c.npz", x=np.ones((4, 3), dtype=np.float32))
    assert isinstance(load_inputs(tmp_path / "c.npz"), torch.Tensor)


def test_inputs_that_are_none(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "broken.npz").write_bytes(b"PK not a zip")
    np.savez(tmp_path / "empty.npz")
    for name, message in (
        ("trap.npy", "cannot read"),
        ("broken.npz", "cannot read"),
        ("empty.npz", "holds no array"),
        ("absent.npy", "there is no file"),
        ("data.csv", "there is no file"),
        ("data.txt", ".npz, .npy or .csv file or a folder of images"),
    ):
        with pytest.raises(InputError, match=message):
            load_inputs(tmp_path / name)
    assert not (tmp_path / "sprung").exists()  # nothing in a data file is run


def test_perturbations_by_name():
    assert perturb.by_name("bit") == perturb.BitFlip()
    assert perturb.by_name("bit01") == perturb.BitFlip(values=(0, 1))
    assert perturb.by_name("token:9", skip=(1,)) == perturb.TokenReplace(9, (1,))
    assert perturb.by_name("patch:4", 2.0, True) == perturb.PatchNoise(4, 2.0, True)
    assert perturb.by_name("patch-replace:2") == perturb.PatchReplace(2)
    assert perturb.by_name("input", 3.0) == perturb.InputNoise(3.0)
    assert perturb.by_name("embedding") == perturb.EmbeddingNoise()
    assert perturb.by_name("embedding:word") == perturb.EmbeddingNoise("word")
    assert perturb.by_name("hidden:mix", 2.0) == perturb.HiddenNoise("mix", 2.0)
    assert perturb.by_name("weights", 0.1) == perturb.WeightNoise(0.1)
    for text, message in (("patch", "written 'patch:SIZE'"), ("bit:3", "written 'bit'"), ("patch:x", "a whole number")):
        with pytest.raises(InputError, match=message):
            perturb.by_name(text)
    with pytest.raises(UnknownName, match="did you mean 'patch'"):
        perturb.by_name("pach:4")
