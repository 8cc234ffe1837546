"""Whatever is wrong with what a measure is given is one clear line, before anything runs."""

import numpy as np
import pytest
import torch
from torch import nn

from teeter import cube, perturb
from teeter.errors import InputError
from teeter.measure import blowup, doctor, sensitivity, sharpness, token_map

X = cube.points(5)
MODEL = nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 2)).double().eval()
MEASURES = {
    "sensitivity": lambda model, inputs: sensitivity(model, inputs, perturb.BitFlip(), budget=100),
    "token_map": lambda model, inputs: token_map(model, inputs, perturb.BitFlip(), draws=1),
    "sharpness": lambda model, inputs: sharpness(model, inputs, draws=2),
    "blowup": blowup,
    "doctor": doctor,
}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (X.tolist(), "a tensor, or a mapping of tensors, .* got list"),
        (None, "got NoneType"),
        ({"input_ids": X, "words": ["a"] * 32}, "got list"),
        (np.array(["a", "b"]), "got ndarray"),
        (torch.tensor(1.0), "got one of no axis"),
    ],
    ids=["list", "none", "mapping", "words", "scalar"],
)
def test_inputs_that_are_no_tensors(measure, inputs, message):
    with pytest.raises(InputError, match=message):
        measure(MODEL, inputs)


def test_arrays_of_numpy_are_inputs_too():
    array = X.numpy()[::-1]
    array.flags.writeable = False
    given = X.flip(0)
    how = dict(budget=100, change=lambda a, b: (a - b)[:, 0])
    assert sensitivity(MODEL, array, perturb.BitFlip(), **how) == sensitivity(MODEL, given, perturb.BitFlip(), **how)
    assert sharpness(MODEL, array, draws=2) == sharpness(MODEL, given, draws=2)
    assert torch.equal(blowup(MODEL, array).factors, blowup(MODEL, given).factors)
    both = {"bits": array, "more": X}
    assert token_map(lambda x: MODEL(x["bits"]), both, perturb.BitFlip(field="bits"), draws=1).draws == 1


@pytest.mark.parametrize("measure", [sensitivity, token_map, doctor])
@pytest.mark.parametrize(
    ("perturbation", "message"),
    [
        (perturb.BitFlip, r"got the class BitFlip: write BitFlip\(\.\.\.\)"),
        ("bit", "got 'bit': teeter.perturb.by_name makes one"),
        (3, "methods positions and run, got int"),
    ],
)
def test_perturbations_that_are_none(measure, perturbation, message):
    with pytest.raises(InputError, match=message):
        measure(MODEL, X, perturbation)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (dict(seed=1.5), "a seed is an int, got 1.5"),
        (dict(seed=np.int64(1)), "a seed is an int, got "),
        (dict(draws=0), "draws is at least 1, .* got 0"),
        (dict(draws=2.5), "a whole number, got 2.5"),
        (dict(model=None), "a model is called with a batch of inputs, got NoneType"),
    ],
)
def test_numbers_and_models(how, message):
    for measure in (sensitivity, token_map):
        with pytest.raises(InputError, match=message):
            measure(**{"model": MODEL, "inputs": X, "perturbation": perturb.BitFlip(), **how})
    if "seed" in how:
        with pytest.raises(InputError, match=message):
            sharpness(MODEL, X, **how)
