"""How a model computes: in fewer bits, or compiled. Faster, and what that does to the answer is measured too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.backends import cudnn

from teeter.errors import InputError
from teeter.measure.forward import Batches
from teeter.perturb.inputs import Inputs, count
from teeter.products import precision_of_float32

__all__ = ["ARITHMETICS", "Compiled", "check_arithmetic", "computing_in"]

ARITHMETICS = ("float32", "tf32", "bf16")


def check_arithmetic(kind: str | None, device: torch.device) -> None:
    if kind is not None and kind not in ARITHMETICS:
        raise InputError(f"the arithmetic is {', '.join(ARITHMETICS)} or None, got '{kind}'")
    if kind == "tf32" and device.type != "cuda":
        raise InputError(f"tf32 is arithmetic of NVIDIA GPUs, and the inputs are on the {device.type.upper()}")


@contextmanager
def computing_in(kind: str | None, device: torch.device) -> Iterator[None]:
    """Within: matrix products in float32 to the last bit (by oneDNN where `teeter.products` is asked for that), in
    tf32, or in bf16 by autocast; None leaves all as it is.

    >>> with computing_in("bf16", torch.device("cpu")):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """
    if kind is None:
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision_of_float32(device.type) if kind == "float32" else "high")
    try:
        with (
            cudnn.flags(
                cudnn.enabled, cudnn.benchmark, deterministic=cudnn.deterministic, allow_tf32=kind != "float32"
            ),
            torch.autocast(device.type, torch.bfloat16, enabled=kind == "bf16"),
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class Compiled:
    """A model that full batches go through compiled and all others as it is: a compiler needs seconds for every
    size it meets, and there is one size that most rows come in."""

    def __init__(self, model: Callable[[Any], Any], batches: Batches) -> None:
        self.model, self.batches = model, batches
        self.fast = torch.compile(model, dynamic=False)

    def __call__(self, inputs: Inputs) -> Any:
        full = not self.batches.growing and count(inputs) == self.batches.size
        return (self.fast if full else self.model)(inputs)
