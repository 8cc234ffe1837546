"""Noise on the training inputs themselves, their labels kept (V section 7.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError
from teeter.perturb import InputNoise, Inputs, Perturbation
from teeter.perturb.inputs import count
from teeter.train.draws import draw

__all__ = ["add_noise"]

_CHOICE = (1 << 63) + (1 << 62)  # which rows: a hash of its own


def add_noise(
    inputs: Inputs,
    index: Tensor | None = None,
    *,
    seed: int,
    epoch: int,
    perturbation: Perturbation | None = None,
    share: float = 1.0,
) -> Inputs:
    """A batch with noise on its inputs: what happens to one is a pure function of (seed, epoch, its index).

    `index` holds the number of each input in the data set, or else they are numbered as they come; where there are no
    epochs, the step will do for one. Without a `perturbation` it is V's: Gaussian noise of variance 0.1 on the whole
    image. Any other that nudges the inputs will do, at one token each: PatchNoise, TokenReplace, BitFlip.

    Each input is nudged with probability `share`. V does not say whether the images as they are stay in the training
    set; with a share of one half, batches are what a set of all images and one noisy copy of each would give.

    >>> images = torch.zeros(1000, 1, 4, 4)
    >>> round(float(add_noise(images, seed=0, epoch=0).var()), 1)
    0.1
    >>> half = add_noise(images, seed=0, epoch=0, share=0.5)
    >>> 450 < int((half == 0).all(-1).all(-1).all(-1).sum()) < 550
    True
    """
    if not 0 <= share <= 1:
        raise InputError(f"share is the chance of an input to be nudged, between 0 and 1, got {share}")
    rows = count(inputs)
    index = torch.arange(rows) if index is None else index
    if index.shape != (rows,):
        raise InputError(f"{rows} inputs have as many indices, got {tuple(index.shape)}")
    how = InputNoise(0.1) if perturbation is None else perturbation
    noise, there = draw(how, inputs, index, seed=seed, step=epoch)
    nudged = how.run(lambda batch: batch, inputs, noise)
    chosen = there & (counter.uniform(_CHOICE + seed, epoch, noise.input) < share)
    if isinstance(inputs, Tensor):
        return _where(chosen, nudged, inputs)
    return {name: part if nudged[name] is part else _where(chosen, nudged[name], part) for name, part in inputs.items()}


def _where(chosen: Tensor, nudged: Tensor, clean: Tensor) -> Tensor:
    return torch.where(chosen.view(-1, *[1] * (clean.ndim - 1)), nudged, clean)
