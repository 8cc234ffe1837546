"""Each illness is found, and the healthy are left in peace."""

import pytest
import torch
from torch import nn

from teeter import cube, perturb
from teeter.measure import doctor

X = cube.points(5, dtype=torch.float32)


def healthy():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).eval()


def said(model, inputs=X, *given, **named):
    return [str(finding) for finding in doctor(model, inputs, *given, **named)]


def test_the_healthy_are_left_in_peace():
    assert said(healthy(), X, perturb.BitFlip(), torch.arange(32) % 3) == []
    assert said(cube.parity, X, perturb.BitFlip()) == []
    images = torch.randn(8, 1, 4, 4)
    head = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).eval()
    assert said(head, images, perturb.PatchNoise(2)) == []
    assert said(head, images, perturb.PatchReplace(2)) == []


class Jitter(nn.Module):
    def forward(self, x):
        return x[:, :2] + torch.rand(len(x), 2)


class Company(nn.Module):
    def forward(self, x):
        return x[:, :2] - x[:, :2].mean(0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Linear(5, 2), nn.Dropout()), "wrong: the model is in training mode and has Dropout"),
        (nn.Sequential(nn.Linear(5, 2), nn.BatchNorm1d(2)), "wrong: the model is in training mode and has BatchNorm1d"),
        (Jitter().eval(), "not deterministic"),
        (Company().eval(), "depends on the others in its batch"),
        (lambda x: x[:, 0] * torch.nan, "NaN or infinity"),
        (lambda x: torch.ones(len(x), 3), "wrong: all outputs are the same"),
        (lambda x: torch.stack([x[:, 0], x[:, 0] + 5], 1), "note: every answer is the same class"),
        (lambda x: x.unsqueeze(-1), "or \\(\\d+, classes\\) numbers"),
        (lambda x: x.sum(-1).sigmoid(), r"note: on the inputs looked at, every output lies in \[0, 1\]"),
        (lambda x: x.sum(-1, keepdim=True) + 50, "every output has the same sign"),
        (
            nn.Linear(5, 2).double(),
            "these inputs \\(weights of torch.float64, inputs of torch.float32\\): RuntimeError",
        ),
        (lambda x: x[:, 9], "wrong: the model does not run on these inputs: IndexError"),
        (nn.Linear(5, 2), "note: the model is in training mode, though nothing in it depends on that"),
    ],
)
def test_illnesses_of_models(model, message):
    import re

    assert any(re.search(message, line) for line in said(model))


def test_illnesses_of_labels():
    for labels, message in ((torch.tensor([0.5]), "not whole"), (torch.tensor([0, 3]), "from 0 to 3, the model has 3")):
        assert any(message in line for line in said(healthy(), X, None, labels))
    assert said(cube.parity, X, None, torch.tensor([-1, 1])) == []


def test_illnesses_of_perturbations():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.table, self.unused = nn.Embedding(9, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.table(x).mean(1)

    text = torch.tensor([[1, 2, 0], [0, 0, 0], [3, 1, 2]])
    model = Table().eval()
    assert said(model, text, perturb.EmbeddingNoise()) == []
    assert any("never ran" in line for line in said(model, text, perturb.HiddenNoise("unused")))
    assert said(model, text, perturb.TokenReplace(9, skip=(0,)))[0] == "note: 1 of 3 inputs have no token to perturb"
    assert said(model, text, perturb.TokenReplace(9, skip=(0, 1, 2, 3)))[0].startswith("wrong: 3 of 3")

    assert "a vocabulary of 300 tokens is larger" in said(model, text, perturb.TokenReplace(300))[0]

    class Broken(perturb.InputNoise):
        def run(self, model, inputs, noise):
            return model(inputs[:, :3])

    assert "wrong: the model does not run on perturbed inputs: RuntimeError" in said(healthy(), X, Broken())[0]

    class Heavy(perturb.InputNoise):
        def run(self, model, inputs, noise):
            return model(-inputs)

    assert any("change at a noise of zero" in line for line in said(healthy(), X, Heavy()))
