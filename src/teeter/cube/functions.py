"""Functions on {±1}^n, the inputs along the last axis: x of shape (..., n) to values of shape (...).

Some are functions of x alone (`parity(x)`); those with a parameter are made first (`sparse_parity(3)(x)`).
A bit of -1 stands for "one", or "true", as in O'Donnell (2014, Analysis of Boolean Functions); MAJORITY is
the exception, since H counts the entries equal to +1. FUNCTIONS lists all of them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from teeter import counter
from teeter.errors import InputError, UnknownName

__all__ = [
    "FUNCTIONS",
    "address",
    "dictator",
    "first",
    "function",
    "inner_product",
    "majority",
    "mean",
    "parity",
    "random_function",
    "sparse_parity",
    "threshold",
    "tribes",
]

CubeFunction = Callable[[Tensor], Tensor]


def _sign(condition: Tensor, like: Tensor) -> Tensor:
    """-1 where the condition holds, +1 elsewhere."""
    return 1 - 2 * condition.to(like.dtype)


def parity(x: Tensor) -> Tensor:
    """PARITY, the product of all bits: as_n = n (H section 3).

    >>> parity(torch.tensor([[1, -1, -1], [1, 1, -1]]))
    tensor([ 1, -1])
    """
    return x.prod(-1).to(x.dtype)


def majority(x: Tensor) -> Tensor:
    """MAJORITY: +1 if more than n/2 entries are +1, else -1, so that a tie gives -1 (H section 3).

    >>> majority(torch.tensor([[1, 1, -1], [1, -1, -1]])), majority(torch.tensor([1, -1]))
    (tensor([ 1, -1]), tensor(-1))
    """
    return _sign(x.sum(-1) <= 0, x)


def first(x: Tensor) -> Tensor:
    """FIRST: the first bit, as_n = 1 (H section 3)."""
    _need_bits([0], x.shape[-1])
    return x[..., 0]


def mean(x: Tensor) -> Tensor:
    """MEAN: the mean of the bits, real-valued, as_n = 1/n (H section 3)."""
    return x.mean(-1) if x.is_floating_point() else x.double().mean(-1)


def inner_product(x: Tensor) -> Tensor:
    """Inner product mod 2 of the two halves, with -1 as the bit 1; a bent function, so n is even.

    >>> inner_product(torch.tensor([-1, -1, -1, 1]))
    tensor(-1)
    """
    n = x.shape[-1]
    if n % 2:
        raise InputError(f"inner_product needs an even number of bits, got n = {n}: try n = {n + 1}")
    return _sign((x[..., : n // 2] < 0) & (x[..., n // 2 :] < 0), x).prod(-1).to(x.dtype)


def address(x: Tensor) -> Tensor:
    """The first k bits are an address (least significant first, -1 is 1) into the 2^k bits after them.

    >>> address(torch.tensor([-1, 1, 1, -1, 1, 1]))
    tensor(-1)
    """
    n = x.shape[-1]
    fitting = {k + 2**k: k for k in range(6)}
    if n not in fitting:
        raise InputError(f"address needs n = k + 2^k bits, got n = {n}: try one of {sorted(fitting)}")
    k = fitting[n]
    weights = 2 ** torch.arange(k, device=x.device)
    where = ((x[..., :k] < 0) * weights).sum(-1) + k
    return x.gather(-1, where.unsqueeze(-1)).squeeze(-1)


def dictator(i: int) -> CubeFunction:
    """x to x_i, counting from 0."""
    return sparse_parity([i])


def sparse_parity(support: int | Sequence[int]) -> CubeFunction:
    """k-PARITY: the product of k bits (the first k, or those listed), as_n = k (H section 3).

    >>> sparse_parity(2)(torch.tensor([1, -1, -1])), sparse_parity([1, 2])(torch.tensor([1, -1, -1]))
    (tensor(-1), tensor(1))
    """
    places = list(range(support)) if isinstance(support, int) else list(support)
    if isinstance(support, int) and support < 0:
        raise InputError(f"sparse_parity takes k >= 0 or a list of bits, got {support}")
    if len(set(places)) < len(places):
        raise InputError(f"sparse_parity takes each bit once, got {places}")

    def f(x: Tensor) -> Tensor:
        _need_bits(places, x.shape[-1])
        return x[..., places].prod(-1).to(x.dtype)

    return f


def threshold(k: int) -> CubeFunction:
    """-1 if at least k bits are -1, else +1 (so k = 1 is OR and k = n is AND, with -1 as true).

    >>> threshold(2)(torch.tensor([[1, -1, -1], [1, 1, -1]]))
    tensor([-1,  1])
    """
    return lambda x: _sign((x < 0).sum(-1) >= k, x)


def tribes(width: int) -> CubeFunction:
    """OR of ANDs over consecutive tribes of `width` bits, -1 as true (Ben-Or & Linial 1985).

    >>> tribes(2)(torch.tensor([[-1, -1, 1, 1], [-1, 1, 1, -1]]))
    tensor([-1,  1])
    """
    if width < 1:
        raise InputError(f"tribes takes a width of at least 1, got {width}")

    def f(x: Tensor) -> Tensor:
        n = x.shape[-1]
        if n % width:
            raise InputError(f"tribes of width {width} do not divide n = {n} bits: n must be a multiple of {width}")
        unanimous = (x.unflatten(-1, (n // width, width)) < 0).all(-1)
        return _sign(unanimous.any(-1), x)

    return f


def random_function(seed: int) -> CubeFunction:
    """A uniformly random ±1 function, the value at each x a hash of (seed, n, x), so any subset can be evaluated."""

    def f(x: Tensor) -> Tensor:
        n = x.shape[-1]
        if n > 52:
            raise InputError(f"random_function takes at most 52 bits, got n = {n}")
        powers = 2.0 ** torch.arange(n, device=x.device, dtype=torch.float64)
        index = ((x < 0).double() @ powers).long()
        return _sign(counter.bits(seed, torch.full_like(index, n), index) < 0, x)

    return f


def _need_bits(places: Sequence[int], n: int) -> None:
    outside = [i for i in places if not 0 <= i < n]
    if outside:
        raise InputError(f"bit {outside[0]} does not exist among n = {n} bits, which are counted from 0")


# By name: functions as they are, and makers with the k that is used where none is given.
PLAIN: dict[str, CubeFunction] = {
    "parity": parity,
    "majority": majority,
    "first": first,
    "mean": mean,
    "address": address,
    "inner_product": inner_product,
}
MADE: dict[str, tuple[Callable[[int], CubeFunction], int]] = {
    "sparse_parity": (sparse_parity, 3),
    "dictator": (dictator, 0),
    "threshold": (threshold, 2),
    "tribes": (tribes, 2),
}
FUNCTIONS = (*PLAIN, *MADE, "random_function")


def function(name: str, *, k: int | None = None, seed: int = 0) -> CubeFunction:
    """A function by name: `function("sparse-parity", k=3)`; hyphens and capitals do not matter."""
    plain = name.strip().lower().replace("-", "_")
    if plain not in FUNCTIONS:
        raise UnknownName("function", name, FUNCTIONS)
    if plain in MADE:
        make, default = MADE[plain]
        return make(default if k is None else k)
    if k is not None:
        raise InputError(f"{plain} takes no k; {', '.join(MADE)} do")
    return PLAIN[plain] if plain in PLAIN else random_function(seed)
