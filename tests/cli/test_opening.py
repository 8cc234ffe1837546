"""What `teeter measure` and `teeter doctor` make of arrays and options."""

import json

import numpy as np
import pytest
import torch

from teeter.cli import opening

MODELS = """
import torch
from torch import nn

def wide(kind):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).to(kind).eval()

def float32():
    return wide(torch.float32)

def float64():
    return wide(torch.float64)

def bfloat16():
    return wide(torch.bfloat16)

def float16():
    return wide(torch.float16)

def embedded():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(24, 3)).double().eval()

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)))

    def forward(self, tokens):
        return self.table[tokens].sum(1)

class OneHot(Table):
    def forward(self, tokens):
        return super().forward(tokens.long())

def half(x):
    assert x.dtype == torch.uint8
    return x.flatten(1).float().mean(1) - 100
"""


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "kinds.py").write_text(MODELS)
    np.save(tmp_path / "float64.npy", rng.normal(size=(40, 1, 4, 4)))
    np.save(tmp_path / "uint8.npy", rng.integers(0, 256, (40, 1, 4, 4), dtype=np.uint8))
    np.save(tmp_path / "int64.npy", rng.integers(-9, 9, (40, 1, 4, 4)))
    np.save(tmp_path / "tokens.npy", rng.integers(0, 5, (40, 6)))
    np.save(tmp_path / "bits01.npy", rng.integers(0, 2, (40, 6)))
    np.save(tmp_path / "bits.npy", 2 * rng.integers(0, 2, (40, 6)) - 1)


@pytest.mark.parametrize("model", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("data", ["float64", "uint8", "int64"])
def test_arrays_become_what_the_model_computes_in(teeter, arrays, monkeypatch, model, data):
    kinds = []
    seen = opening._fitted
    monkeypatch.setattr(opening, "_fitted", lambda *given, **named: kinds.append(seen(*given, **named)) or kinds[-1])
    words = (f"kinds:{model}", f"{data}.npy", "--perturb", "patch:2", "--budget", "80", "--json")
    code, out, err = teeter("measure", *words)
    assert code == 0, err
    assert kinds[0].inputs.dtype == getattr(torch, model)
    assert json.loads(out)["forwards"] == 80


@pytest.mark.parametrize("model", ["embedded", "Table", "OneHot"])
def test_token_numbers_stay_whole(teeter, arrays, model):
    code, _, err = teeter("measure", f"kinds:{model}", "tokens.npy", "--perturb", "token:5", "--budget", "80")
    assert code == 0, err


def test_models_without_floating_parameters_get_arrays_as_they_are(teeter, arrays):
    assert teeter("doctor", "kinds:half", "uint8.npy")[0] == 0


def test_inputs_that_fit_in_no_type_are_one_line(teeter, arrays):
    code, _, err = teeter("measure", "kinds:float32", "tokens.npy", "--perturb", "bit")
    assert code == 2
    assert "the model does not take these inputs: RuntimeError: mat1 and mat2 shapes" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tokens.npy", "--perturb", "token:5", "--sigma2", "2"], "--sigma2 does not apply to --perturb token:5"),
        (["float64.npy", "--perturb", "weights", "--relative"], "--relative does not apply to --perturb weights"),
        (["float64.npy", "--perturb", "patch:2", "--mean", "0.5"], "--mean is for images, and does not apply to"),
        (["float64.npy", "--perturb", "patch:2", "--image-size", "4"], "--image-size is for images"),
        (["float64.npy", "--perturb", "patch:2", "--max-length", "4"], "--max-length is for texts"),
        (["bits01.npy", "--perturb", "bit"], "the inputs are bits of 0 and 1: --perturb bit01"),
        (["bits.npy", "--perturb", "bit01"], "the inputs are bits of -1 and 1: --perturb bit"),
    ],
)
def test_what_would_be_passed_over_is_refused(teeter, arrays, words, message):
    for command in ("measure", "doctor"):
        code, out, err = teeter(command, "kinds:float32", *words)
        assert (code, out) == (2, "")
        assert message in err
        assert len(err.splitlines()) == 1


def test_a_variance_without_a_perturbation_is_refused(teeter, arrays):
    code, _, err = teeter("doctor", "kinds:float32", "float64.npy", "--sigma2", "2")
    assert (code, err) == (2, "teeter: --sigma2 does not apply without --perturb\n")


def test_the_variance_that_was_used_is_told(teeter, arrays):
    words = ("--budget", "80", "--json")
    noise = json.loads(teeter("measure", "kinds:float32", "float64.npy", "--perturb", "patch:2", *words)[1])
    assert (noise["sigma2"], noise["relative"]) == (1.0, False)
    swap = json.loads(teeter("measure", "kinds:embedded", "tokens.npy", "--perturb", "token:5", *words)[1])
    assert swap["sigma2"] is None
