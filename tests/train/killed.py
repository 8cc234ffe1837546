"""A short run of each kind, and, as a program, one that ends itself: `python killed.py KIND FOLDER WHEN`."""

import os
import signal
import sys

import torch
from torch import nn

from teeter import cube, perturb
from teeter.models import Encoder
from teeter.train import BitStream, Recipe, measures, shuffled, train

STEPS = 48
BITS = cube.points(5).float()


class Counting:
    """A penalty that depends on how often it was asked, as one with a schedule does."""

    def __init__(self):
        self.calls = 0

    def __call__(self, model, inputs, outputs):
        self.calls += 1
        return 1e-3 * self.calls * outputs.square().mean()

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"]


def dropout():
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))


def batch_norm():
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))


def encoder():
    return Encoder(length=5, dim=8)


KINDS = {  # model, optimizer, schedule, penalty
    "dropout": (dropout, "adam", "cosine", None),
    "batch-norm": (batch_norm, "sgd", "constant", None),
    "encoder": (encoder, "adamw", "linear", Counting),
}


def run(kind, folder=None, progress=None, **more):
    """The same run at every call."""
    make, optimizer, schedule, penalty = KINDS[kind]
    torch.manual_seed(0)
    model = make()
    stream = BitStream(cube.majority, 5, 16, seed=1)
    if kind == "batch-norm":
        stream = shuffled(BITS, cube.majority(BITS), 16, seed=1)
    recipe = Recipe(STEPS, 16, optimizer, rate=0.01, schedule=schedule, warmup=5, clip=1.0)
    what = {
        "accuracy": measures.accuracy(BITS, cube.majority(BITS)),
        "test_loss": measures.loss(BITS, cube.majority(BITS)),
        "sensitivity": measures.sensitivity(BITS, perturb.BitFlip(), budget=100),
        "noise": lambda model: torch.rand(()),  # draws, and is not to move what dropout draws
    }
    given = dict(measures=what, every=10, keep=7, penalty=penalty and penalty(), seed=2) | more
    return train(model, stream, recipe, folder=folder, progress=progress, **given)


def end(*_):
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    torch.set_num_threads(1)
    kind, folder, when = sys.argv[1:]
    if when.isdecimal():  # at that step
        run(kind, folder, lambda step, steps, row: end() if step == int(when) else None)
    written = {"flushing": os.fsync, "renaming": os.replace}[when]
    count = 0

    def third(*given):
        """The third time, with the new checkpoint written but not in its place."""
        global count
        count += 1
        return end() if count == 3 else written(*given)

    setattr(os, written.__name__, third)
    run(kind, folder)
