"""Runs triples through a model and keeps what is needed of its clean answers.

Nothing here waits for the device: values stay on it, and what must be checked is checked when the estimate is looked
at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from teeter.errors import InputError, NotFinite
from teeter.measure.changes import answers, label_flip, one_sign
from teeter.measure.forward import Batches, hookable, outputs
from teeter.measure.schedule import Triples
from teeter.measure.tally import Tally
from teeter.perturb import Inputs, Noise, Perturbation
from teeter.perturb.inputs import count, device_of, take

__all__ = ["Run"]

_NOISE = 3  # keeps the noise's hash apart from those of the schedule


class Run:
    """Evaluates triples, counts changes by input in `tally`, and remembers the inputs it has met."""

    def __init__(
        self,
        model: Callable[[Any], Any],
        inputs: Inputs,
        perturbation: Perturbation,
        change: Callable[[Tensor, Tensor], Tensor],
        seed: int,
    ) -> None:
        self.model, self.inputs, self.perturbation, self.change = model, inputs, perturbation, change
        self.seed = (seed << 2) + _NOISE
        self.device = device_of(inputs)
        n = count(inputs)
        self.tally = Tally.empty(n, self.device)
        self.met = self.drawn = self.aside = 0  # forwards: clean, nudged, and for other ends
        self.knows_all = False
        self._known = torch.zeros(n, dtype=torch.bool, device=self.device)
        self._clean: Tensor | None = None  # answers for label flips, outputs for all else
        self._margin: Tensor | None = None
        self._shape: tuple[int, ...] = ()
        self._finite: dict[str, Tensor] = {}  # by who gave the numbers

    @property
    def forwards(self) -> int:
        return self.met + self.drawn + self.aside

    def meet(self, fresh: Tensor) -> None:
        """The clean forward of inputs not met before."""
        if len(fresh) == 0:
            return
        with torch.no_grad(), hookable():
            output = self._outputs(self.model(take(self.inputs, fresh)), len(fresh))
        self._keep(fresh, output)
        self.met += len(fresh)

    def given(self, clean: Tensor, looked_at: int, batches: Batches) -> None:
        """Take the clean outputs of all inputs as known, after a look at a few of them."""
        n = len(self._known)
        clean = outputs(clean, n)
        some = torch.arange(0, n, max(n // looked_at, 1), device=self.device)[:looked_at]
        batches.run(0, len(some), lambda a, b: self.meet(some[a:b]))
        assert self._clean is not None
        theirs, ours = clean[some.to(clean.device)], self._clean[some.to(self._clean.device)]
        theirs = answers(theirs) if self.change is label_flip else theirs
        close = (
            theirs.shape == ours.shape and torch.isclose(theirs.to(ours), ours, rtol=0.01, atol=0.01).double().mean()
        )
        if tuple(clean.shape[1:]) != self._shape or close < 0.9:
            raise InputError("the clean outputs given are not what the model answers on these inputs: leave them out")
        self._keep(torch.arange(n, device=self.device), clean.to(self._clean.device))
        self.knows_all = True

    def _keep(self, index: Tensor, output: Tensor) -> None:
        kept, margin = (answers(output) if self.change is label_flip else output), _margin(output)
        if self._clean is None or self._margin is None:
            self._shape = tuple(output.shape[1:])
            self._clean = kept.new_empty(len(self._known), *kept.shape[1:])
            self._margin = margin.new_full((len(self._known),), torch.nan)
        where = index.to(output.device)
        self._clean.index_copy_(0, where, kept.to(self._clean.dtype))
        self._margin.index_copy_(0, where, margin)
        self._known.index_fill_(0, index, True)  # unlike an assignment, nothing to send to the device

    def changes(self, triples: Triples) -> Tensor:
        """What each triple changed, also counted in the tally."""
        index = triples.input
        if not self.knows_all:
            self.meet(index[~self._known[index]].unique() if triples.fresh is None else triples.fresh)
        assert self._clean is not None
        with torch.no_grad(), hookable():
            where = (part.to(self.device) for part in (index, triples.token, triples.draw))
            answer = self.perturbation.run(self.model, take(self.inputs, index), Noise(self.seed, *where))
            after = self._outputs(answer, len(index))
            if tuple(after.shape[1:]) != self._shape:
                before = (len(index), *self._shape)
                raise InputError(f"clean outputs are {before} and perturbed ones {tuple(after.shape)}")
            before = self._clean[index.to(after.device)]
            changed = answers(after) != before if self.change is label_flip else self.change(before, after)
        if not isinstance(changed, Tensor) or changed.shape != (len(index),):
            got = f"shape {tuple(changed.shape)}" if isinstance(changed, Tensor) else type(changed).__name__
            raise InputError(f"a change is one value for each of {len(index)} inputs, got {got}")
        if changed.is_floating_point():
            self._watch("change", changed)
        self.tally.add(index, changed, triples.weight)
        self.drawn += len(index)
        return changed

    def margin(self, index: Tensor) -> Tensor:
        """How far ahead of the next answer the clean one is, for inputs that were met."""
        assert self._margin is not None
        return self._margin[index.to(self._margin.device)].to(self.device)

    def check(self) -> None:
        """Raise if any output or change so far was not a number."""
        for who, finite in self._finite.items():
            if not bool(finite):
                raise NotFinite(f"the {who} returned NaN or infinity")

    def notes(self) -> tuple[str, ...]:
        if self._clean is None or self._margin is None:
            return ()
        known = self._known.to(self._clean.device)
        met, flips = self._clean[known], self.change is label_flip
        if self._shape in ((), (1,)):  # only for flips is a scalar's answer its sign
            said = one_sign(met, self._margin[known]) if flips else None
            return (f"every clean output {said}",) if said else ()
        found = met if flips else answers(met)
        return ("every clean answer is the same class",) if bool((found == found[0]).all()) else ()

    def _outputs(self, answer: Any, rows: int) -> Tensor:
        logits = outputs(answer, rows, check=False)
        self._watch("model", logits)
        return logits

    def _watch(self, who: str, numbers: Tensor) -> None:
        finite = torch.isfinite(numbers).all()
        self._finite[who] = self._finite[who] & finite if who in self._finite else finite


def _margin(output: Tensor) -> Tensor:
    if output.ndim == 1 or output.shape[1] == 1:
        return output.reshape(len(output)).float().abs()
    first, second = output.float().topk(2, dim=-1).values.unbind(-1)
    return first - second
