"""Everything that the next step of a run depends on, as tensors by name: out of a run, and back into it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = [
    "captured",
    "captured_randomness",
    "fingerprint",
    "kept_weights",
    "own_randomness",
    "restore",
    "restore_randomness",
    "weights_of",
]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each once where it is shared, and also those buffers a state_dict leaves out.

    >>> list(weights_of(nn.BatchNorm1d(2)))
    ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
    """
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def captured(model: nn.Module, optimizer: Optimizer, device: torch.device) -> dict[str, Tensor]:
    """Weights, the optimizer's state and the state of torch's random numbers, on the CPU and on the device."""
    tensors = {f"model.{name}": each for name, each in weights_of(model).items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": each for name, each in state.items() if isinstance(each, Tensor)}
    return tensors | captured_randomness(device)


def captured_randomness(device: torch.device) -> dict[str, Tensor]:
    """Where torch's random numbers are, on the CPU and on the device."""
    there = {"random.cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return {"random.cpu": torch.get_rng_state(), **there}


def restore_randomness(tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Put back what `captured_randomness` took out."""
    torch.set_rng_state(tensors["random.cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(tensors["random.cuda"], device)


def kept_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `weights_of` was when it was captured."""
    return {name.removeprefix("model."): each for name, each in tensors.items() if name.startswith("model.")}


def restore(tensors: Mapping[str, Tensor], model: nn.Module, optimizer: Optimizer, device: torch.device) -> None:
    """Put back what `captured` took out."""
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            weight.copy_(tensors[f"model.{name}"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, each in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            state.setdefault(int(number), {})[key] = each
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    restore_randomness(tensors, device)


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """Sixteen hexadecimal digits that stand for names, types, shapes and every bit of the values.

    >>> fingerprint({"a": torch.zeros(2)}) == fingerprint({"a": torch.zeros(2)}) != fingerprint({"a": -torch.zeros(2)})
    True
    """
    digest = hashlib.sha256()
    for name, each in sorted(tensors.items()):
        digest.update(f"{name} {each.dtype} {tuple(each.shape)};".encode())
        digest.update(each.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


@contextmanager
def own_randomness(device: torch.device, seed: int | None = None) -> Iterator[None]:
    """Within: torch's random numbers begin at the seed, or where they are; after it they are where they were.

    >>> _ = torch.manual_seed(1)
    >>> with own_randomness(torch.device("cpu"), seed=0):
    ...     inner = torch.rand(1)
    >>> float(torch.rand(1)) == float(torch.rand(1, generator=torch.Generator().manual_seed(1)))
    True
    """
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        if seed is not None:
            torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
            if device.type == "cuda":
                torch.cuda.set_rng_state(torch.Generator(device).manual_seed(seed).get_state(), device)
        yield
