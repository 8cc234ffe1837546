import pytest
import torch

import teeter
from teeter import cube
from teeter.errors import InputError
from teeter.models import MODELS, Recurrent
from teeter.perturb import BitFlip, EmbeddingNoise

from .training import falls, losses, reached, size

CELLS = ["lstm", "gru"]


def test_sizes():
    # tokens 2 x 128; a layer has, for each of its 4 gates (a GRU: 3), two matrices and two biases: 2 x 128^2 + 2 x 128
    assert size(MODELS["lstm"]()) == 256 + 2 * 4 * 33_024 + 129 == 264_577
    assert size(MODELS["gru"]()) == 256 + 2 * 3 * 33_024 + 129 == 198_529


@pytest.mark.parametrize("cell", CELLS)
def test_any_length_and_a_seed(cell):
    def run(seed, n):
        torch.manual_seed(seed)
        return Recurrent(cell, dim=8)(cube.points(n))

    for n in (1, 3, 9):
        assert run(0, n).shape == (2**n,)
    assert torch.equal(run(0, 3), run(0, 3))
    assert not torch.equal(run(0, 3), run(1, 3))


def test_a_gru_by_hand():
    torch.manual_seed(0)
    model = Recurrent("gru", dim=3, layers=1).double()
    w, v = model.cells.weight_ih_l0.chunk(3), model.cells.weight_hh_l0.chunk(3)
    b, c = model.cells.bias_ih_l0.chunk(3), model.cells.bias_hh_l0.chunk(3)
    state = torch.zeros(3, dtype=torch.float64)
    bits = torch.tensor([[1, -1, -1]])
    for bit in bits[0]:
        x = model.embedding.weight[0 if bit == 1 else 1]
        reset, update = (torch.sigmoid(w[i] @ x + b[i] + v[i] @ state + c[i]) for i in (0, 1))
        new = torch.tanh(w[2] @ x + b[2] + reset * (v[2] @ state + c[2]))
        state = (1 - update) * new + update * state
    assert torch.allclose(model(bits), model.head(state), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_gradient_reaches_every_parameter(cell):
    torch.manual_seed(0)
    model = Recurrent(cell, dim=4).double()
    assert reached(model, model(cube.points(4)).square().mean()) == []


@pytest.mark.parametrize("cell", CELLS)
def test_it_learns_parity(cell):
    torch.manual_seed(0)
    model = Recurrent(cell, dim=16, layers=1)
    bits = cube.points(4, dtype=torch.float32)
    target = cube.parity(bits)
    seen = losses(model, lambda _: (model(bits) - target).square().mean(), lr=3e-2)
    assert falls(seen, to=0.1)
    estimate = teeter.sensitivity(model.eval(), bits, BitFlip(), design="paper", draws=1)
    assert estimate.value == 1  # as_4 = 4


@pytest.mark.parametrize("cell", CELLS)
def test_noise_and_sharpness(cell):
    torch.manual_seed(0)
    model = Recurrent(cell, dim=8).eval()
    bits = cube.points(4, dtype=torch.int64)
    assert teeter.sensitivity(model, bits, EmbeddingNoise(sigma2=1e-10), budget=400).value < 0.05
    assert teeter.sharpness(model, bits, draws=3).value > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Recurrent("rnn"), "'lstm' or 'gru', got 'rnn'"),  # pyright: ignore
        (lambda: Recurrent("gru", layers=0), "layers is a whole number of at least 1, got 0"),
        (lambda: Recurrent("gru", dim=0), "dim is a whole number of at least 1, got 0"),
        (lambda: Recurrent("gru", dim=2)(torch.zeros(2, 3)), "\\+1 and -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
