"""Which values inputs may have: looked at where that is free, on the CPU, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from teeter.errors import InputError

__all__ = ["breaks", "check_tokens"]


def breaks(values: Tensor, rule: Callable[[Tensor], Tensor]) -> bool:
    """Whether some of the values are seen to break a rule, which says True or False of each.

    Values are looked at on the CPU alone, since a GPU would have to wait for the answer, and not while a program is
    compiled or batched over inputs. Where they are not looked at, the rule is not even computed.

    >>> breaks(torch.tensor([1, 0]), lambda bits: bits.abs() == 1)
    True
    """
    if values.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    try:
        return not bool(rule(values).all())
    except RuntimeError:  # vmap over inputs: they have no values of their own yet
        return False


def check_tokens(tokens: Tensor, vocabulary: int) -> None:
    """Token numbers are those of the vocabulary.

    >>> check_tokens(torch.tensor([[0, 9]]), vocabulary=9)
    Traceback (most recent call last):
    teeter.errors.InputError: token numbers run from 0 to 8, got 0 to 9
    """
    if breaks(tokens, lambda numbers: (numbers >= 0) & (numbers < vocabulary)):
        raise InputError(
            f"token numbers run from 0 to {vocabulary - 1}, got {int(tokens.min())} to {int(tokens.max())}"
        )
