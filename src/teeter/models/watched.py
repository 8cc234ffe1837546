"""Whether a model may answer by another way than calling its parts one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["looked_into", "unwatched"]

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def unwatched(*parts: nn.Module, made_of: tuple[type[nn.Module], ...]) -> bool:
    """Whether nobody would notice that these are read and never called: no hook of theirs, nothing in their place.

    >>> part = nn.Linear(2, 2)
    >>> unwatched(part, made_of=(nn.Linear,)), unwatched(part, made_of=(nn.Embedding,))
    (True, False)
    >>> _ = part.register_forward_hook(print)
    >>> unwatched(part, made_of=(nn.Linear,))
    False
    """
    return all(
        type(part) in made_of and "forward" not in part.__dict__ and not any(getattr(part, name) for name in _HOOKS)
        for part in parts
    )


@contextmanager
def looked_into(model: nn.Module) -> Iterator[None]:
    """Within: every part has a hook, which does nothing, so that all are called as whoever looks into them sees it.

    >>> part = nn.Linear(2, 2)
    >>> with looked_into(part):
    ...     unwatched(part, made_of=(nn.Linear,))
    False
    """
    handles = [part.register_forward_pre_hook(lambda *_: None) for part in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
