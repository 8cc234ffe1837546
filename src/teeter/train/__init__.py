"""Training: the one loop, its recipe, its streams, and what is measured along the way."""

from teeter.train import measures
from teeter.train.augmentation import add_noise
from teeter.train.bar import bar
from teeter.train.checkpoint import Checkpoint, read_checkpoint, same_run, write_checkpoint
from teeter.train.loop import Progress, Trained, train
from teeter.train.losses import LOSSES
from teeter.train.many import Job, train_many
from teeter.train.measures import Measure
from teeter.train.optimizers import OPTIMIZERS
from teeter.train.penalty import SensitivityPenalty, ramp
from teeter.train.recipe import SCHEDULES, Recipe, rate_at
from teeter.train.run import Diverged, Penalty
from teeter.train.stack import Stack
from teeter.train.stack_loop import train_stack
from teeter.train.stack_streams import StackStream, bit_streams, together
from teeter.train.streams import Augment, BitStream, Counted, Drawn, Stream, shuffled, whole

__all__ = [
    "Augment",
    "BitStream",
    "Checkpoint",
    "Diverged",
    "Counted",
    "Drawn",
    "Job",
    "LOSSES",
    "Measure",
    "OPTIMIZERS",
    "Penalty",
    "Progress",
    "Recipe",
    "SCHEDULES",
    "SensitivityPenalty",
    "Stack",
    "StackStream",
    "Stream",
    "Trained",
    "add_noise",
    "bar",
    "bit_streams",
    "measures",
    "ramp",
    "rate_at",
    "read_checkpoint",
    "same_run",
    "shuffled",
    "together",
    "train",
    "train_many",
    "train_stack",
    "whole",
    "write_checkpoint",
]
