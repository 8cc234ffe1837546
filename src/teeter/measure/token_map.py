"""Where does an answer change? The rate at every token of every input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from teeter.errors import InputError
from teeter.measure.changes import label_flip
from teeter.measure.door import admit, check_perturbation
from teeter.measure.estimate import Estimate
from teeter.measure.forward import Batches
from teeter.measure.run import Run
from teeter.measure.schedule import Triples
from teeter.measure.tally import Tally
from teeter.perturb import Inputs, Perturbation
from teeter.perturb.inputs import device_of

__all__ = ["TokenMap", "token_map"]


@dataclass(frozen=True)
class TokenMap:
    """The mean change at every (input, token), NaN where there is no token, from `draws` draws each."""

    mean: Tensor
    draws: int
    rate: bool  # changes were truth values

    @property
    def counts(self) -> Tensor:
        """How many draws each mean rests on."""
        return torch.where(self.mean.isnan(), 0, self.draws)

    def by_input(self) -> Tensor:
        """Each input's mean over its tokens."""
        return self.mean.nanmean(-1)

    def by_position(self, align: Literal["left", "right"] = "left", confidence: float = 0.95) -> list[Estimate | None]:
        """The mean over inputs at each position, counted from the first token or, aligned right, from the last.

        Inputs shorter than a position do not count there; a position that fewer than two inputs reach has no estimate.
        Aligned right, the last entry is every input's last token.
        """
        if align not in ("left", "right"):
            raise InputError(f"positions align 'left' or 'right', got '{align}'")
        mean = self.mean if align == "left" else _pushed_right(self.mean)
        answers: list[Estimate | None] = []
        for column in mean.T:
            here = column[~column.isnan()]
            tally = Tally(here, torch.ones_like(here), self.rate, draws=self.draws * len(here))
            answers.append(tally.estimate(confidence) if len(here) > 1 else None)
        return answers


def token_map(
    model: Callable[[Any], Any],
    inputs: Inputs,
    perturbation: Perturbation,
    *,
    change: Callable[[Tensor, Tensor], Tensor] = label_flip,
    draws: int = 32,
    seed: int = 0,
    batch: int | str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> TokenMap:
    """The mean change at every token of every input, `draws` draws each.

    >>> from teeter import cube, perturb
    >>> token_map(cube.first, cube.points(3), perturb.BitFlip(), draws=1).mean.mean(0)
    tensor([1., 0., 0.], dtype=torch.float64)
    """
    inputs = admit(model, inputs, draws=draws, seed=seed)
    check_perturbation(perturbation)
    positions = perturbation.positions(inputs).to(device_of(inputs))
    place = positions.nonzero()
    if len(place) == 0:
        raise InputError("no input has a token to perturb: all of them are padding or skipped")
    run = Run(model, inputs, perturbation, change, seed)
    sums = torch.zeros(positions.shape, dtype=torch.float64, device=positions.device)
    total = len(place) * draws

    def work(start: int, stop: int) -> None:
        number = torch.arange(start, stop, device=place.device)
        index, token = place[number // draws].unbind(-1)
        changed = run.changes(Triples(index, token, number % draws))
        sums.index_put_((index, token), changed.to(sums), accumulate=True)
        if progress is not None:
            progress(stop, total)

    Batches(batch, positions.device).run(0, total, work)
    run.check()
    return TokenMap(torch.where(positions, sums / draws, torch.nan).cpu(), draws, run.tally.rate)


def _pushed_right(mean: Tensor) -> Tensor:
    """Every row's tokens moved to its end, in their order."""
    order = (~mean.isnan()).long().argsort(dim=-1, stable=True)  # absent ones first
    return mean.gather(-1, order)
