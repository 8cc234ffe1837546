"""The weights of K models of one shape in one tensor, and their answers to K batches as one program."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.measure.forward import unfused
from teeter.measure.room import pairs_at_once
from teeter.models.watched import looked_into
from teeter.perturb.inputs import Inputs
from teeter.train.pieces import copies, differentiated_on_gpu, pieces
from teeter.train.stacked_encoder import check_bits, serves, stacked_encoder
from teeter.train.state import fingerprint

__all__ = ["Stack", "Stacked", "cut_answers", "flattened", "places", "plain_answers", "shape_of"]

Weights = dict[str, Tensor]

_NUMBERS, _COPIED = 256, 1 << 16  # the least that a piece of a batch holds; what a block of a GPU copies in no time
_LINE = 32  # numbers; matrix products are slow on weights that do not begin where a line of memory does


class Stacked:
    """K models of one shape that are looked at: `weights` are (K, ...) by name, in the order of the shape's own."""

    def __init__(self, shape: nn.Module, weights: Weights, fast: bool) -> None:
        self.shape, self.fast = shape, fast
        self.weights = {name: weights[name] for name, _ in shape.named_parameters()}
        self._pairs: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(next(iter(self.weights.values())))

    def __call__(self, inputs: Any) -> Tensor:
        """Each model's answers to its own inputs: (K, batch, ...)."""
        if self.fast:
            return stacked_encoder(self.shape, self.weights, inputs)
        return cut_answers(self.shape, self.weights, inputs)

    def shared(self, weights: Mapping[str, Tensor], inputs: Inputs) -> Tensor:
        """The answers to the same inputs of models like these, of any number and with any weights."""
        if self.fast and isinstance(inputs, Tensor):
            check_bits(self.shape, inputs)
            models = len(next(iter(weights.values())))
            return stacked_encoder(self.shape, dict(weights), inputs.expand(models, *inputs.shape))
        return plain_answers(self.shape, dict(weights), inputs, shared=True)

    def pairs(self, inputs: Inputs, plain: bool = False) -> int:
        """How many pairs of models and inputs there is room for at once, in `shared` or in `plain_answers`, even of a
        model that somebody looks into."""
        parts = {"": inputs} if isinstance(inputs, Tensor) else inputs
        key = plain, *((name, part.dtype, part.shape[1:]) for name, part in parts.items())
        if key not in self._pairs:
            one = {name: part.detach()[:1] for name, part in self.weights.items()}
            program = partial(plain_answers, self.shape, one, shared=True) if plain else partial(self.shared, one)
            with looked_into(self.shape) if plain else nullcontext():
                self._pairs[key] = pairs_at_once(program, inputs)
        return self._pairs[key]

    def some(self, places: Sequence[int]) -> Stacked:
        """The models at these places."""
        if list(places) == list(range(len(self))):
            return self
        index = torch.tensor(places, device=next(iter(self.weights.values())).device)
        made = Stacked(self.shape, {name: part.detach()[index] for name, part in self.weights.items()}, self.fast)
        made._pairs = self._pairs
        return made


class Stack(Stacked):
    """K models of one shape that are trained: `flat` has a row for the trained parameters of each (see `flattened`);
    `weights` are its views by name, each (K, ...), and those that are not trained.

    >>> models = [nn.Linear(3, 2) for _ in range(4)]
    >>> stack = Stack(models)
    >>> stack.flat.shape, stack(torch.ones(4, 5, 3)).shape
    (torch.Size([4, 64]), torch.Size([4, 5, 2]))
    >>> torch.allclose(stack(torch.ones(4, 5, 3))[2], models[2](torch.ones(5, 3)))
    True
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        if not models or len({id(model) for model in models}) < len(models):
            raise InputError(f"a stack holds at least one model and each of them once, got {len(models)}")
        common = shape_of(models[0])
        for model in models[1:]:
            if shape_of(model) != common:
                raise InputError(f"a stack holds models of one shape, got\n{models[0]}\nand\n{model}")
        if any(True for _ in models[0].buffers()):
            raise InputError(f"{type(models[0]).__name__} has buffers, such as running averages: train it alone")
        trained = {name: part for name, part in models[0].named_parameters() if part.requires_grad}
        if len({part.dtype for part in trained.values()}) != 1:
            raise InputError(f"a stack has weights to train, of one type; {type(models[0]).__name__} has not")
        shape = copy.deepcopy(models[0])
        if not shape.training:  # as in the loop
            shape.train()
        each = [dict(model.named_parameters()) for model in models]
        self.flat = torch.stack([flattened([own[name].detach() for name in trained]) for own in each])
        self.trained = {
            name: self.flat[:, place].view(-1, *trained[name].shape).requires_grad_()
            for name, place in places(trained).items()
        }
        still = {name: torch.stack([own[name].detach() for own in each]) for name in each[0] if name not in trained}
        super().__init__(shape, self.trained | still, serves(shape))

    def put(self, k: int, model: nn.Module) -> nn.Module:
        """Fill a model of the same shape with the weights of model k as they are now."""
        for name, part in model.named_parameters():
            part.data.copy_(self.weights[name][k])
        return model

    @torch.no_grad()
    def check(self, inputs: Any, targets: Tensor) -> None:
        """Raise unless these are batches for all models and the first answers as it does alone."""
        if not (isinstance(inputs, Tensor) and len(inputs) == len(targets) == len(self)):
            raise InputError(f"a stack of {len(self)} reads one tensor with a batch for each, and as many targets")
        alone = self.put(0, copy.deepcopy(self.shape)).eval()
        first = Stacked(self.shape, {name: part.detach()[:1] for name, part in self.weights.items()}, self.fast)
        own = alone(inputs[0])
        own = getattr(own, "logits", own)
        modes = [(part, part.training) for part in self.shape.modules()]  # parts may stay in evaluation mode
        self.shape.eval()  # both without dropout
        try:
            with torch.enable_grad():  # as in training: its batch is cut, and of one model into the most pieces
                mine = first(inputs[:1])[0].detach()
        finally:
            for part, mode in modes:
                part.training = mode
        if mine.shape != own.shape or not torch.allclose(
            mine, own, rtol=0.01, atol=0.01 * float(own.abs().max()) + 1e-6
        ):
            raise InputError(f"{type(self.shape).__name__} answers otherwise in a stack than alone: train it alone")


def flattened(parts: Sequence[Tensor], dims: int = 0) -> Tensor:
    """These in one row, each followed by zeros to the next multiple of 32 numbers; the first `dims` dimensions stay.

    >>> flattened([torch.ones(2), torch.ones(3, 11)]).nonzero().squeeze().tolist() == [0, 1, *range(32, 32 + 33)]
    True
    """
    rows = []
    for part in parts:
        row = part.flatten(dims) if part.ndim > dims else part.unsqueeze(-1)
        rows += [row, row.new_zeros(*row.shape[:-1], -row.shape[-1] % _LINE)]
    return torch.cat(rows, -1)


def places(parts: Mapping[str, Tensor]) -> dict[str, slice]:
    """Where each of these is in a row that `flattened` made of them."""
    found, end = {}, 0
    for name, part in parts.items():
        found[name] = slice(end, end + part.numel())
        end += part.numel() + -part.numel() % _LINE
    return found


def plain_answers(shape: nn.Module, weights: Weights, inputs: Any, shared: bool = False) -> Tensor:
    """Any model without buffers, batched over its weights by torch: what every faster program is tested against. Each
    model has inputs of its own, or all have the same, `shared`."""

    def alone(own: Weights, batch: Any) -> Tensor:
        answer = torch.func.functional_call(shape, own, (batch,))
        return getattr(answer, "logits", answer)

    with unfused():
        return torch.vmap(alone, in_dims=(0, None if shared else 0), randomness="different")(weights, inputs)


def cut_answers(shape: nn.Module, weights: Weights, inputs: Any) -> Tensor:
    """The same, with batches cut into pieces for the sake of their gradients (`pieces`)."""
    count = 1
    if isinstance(inputs, Tensor) and differentiated_on_gpu(inputs):
        size = sum(part.numel() for part in weights.values())
        least = max(math.ceil(_NUMBERS / inputs[0, 0].numel()), 4)  # of its inputs
        count = pieces(inputs.shape[1], max(len(inputs), size // _COPIED), least)
    if count == 1:
        return plain_answers(shape, weights, inputs)
    cut = inputs.unflatten(1, (count, -1)).flatten(0, 1)
    answers = plain_answers(shape, {name: copies(part, count) for name, part in weights.items()}, cut)
    return answers.unflatten(0, (-1, count)).flatten(1, 2)


def shape_of(model: nn.Module) -> tuple[Any, ...]:
    """What models have in common that can be stacked: all but the values of their weights.

    Not every attribute is printed with a module or changes the shape of a weight: heads, for one. What is not
    understood here is compared by identity, so that a model with it is stacked with no other.
    """
    parts = []
    for name, part in model.named_modules():
        for key, value in vars(part).items():
            if key not in _BOOKKEEPING:
                parts.append((name, key, _seen(value)))
            elif "hooks" in key and value:
                parts.append((name, key, id(part)))
        parts.append((name, type(part), part.training))
    weights = [(n, p.shape, p.dtype, p.device, p.requires_grad) for n, p in model.named_parameters()]
    return tuple(parts), tuple(weights)


_BOOKKEEPING = frozenset(vars(nn.Module()))


def _seen(value: Any) -> Any:
    """Something equal for attributes that mean the same."""
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return value
    if isinstance(value, Mapping):
        return tuple((key, _seen(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_seen, value))
    if isinstance(value, Tensor):
        return fingerprint({"": value})
    if callable(getattr(value, "to_dict", None)):
        return _seen(value.to_dict())
    return id(value)
