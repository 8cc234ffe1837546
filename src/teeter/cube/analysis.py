"""Everything exact about one function, computed once and shared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from teeter.cube.memory import require
from teeter.cube.sensitivity import local_sensitivity_of
from teeter.cube.spectrum import degree_of, degree_profile_of, influences_of, rounding, stability_of
from teeter.cube.table import dimension, is_signed, single
from teeter.cube.transform import walsh

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True)
class Analysis:
    """The exact analysis of one function on n bits."""

    n: int
    signed: bool
    local: Tensor  # s(x, f) at every input
    spectrum: Tensor  # f^(S)
    profile: Tensor  # W_0 .. W_n

    @cached_property
    def average_sensitivity(self) -> float:
        return float(self.local.mean(dtype=torch.float64))

    @cached_property
    def max_sensitivity(self) -> float:
        return float(self.local.max())

    @cached_property
    def influences(self) -> Tensor:
        return influences_of(self.spectrum)

    @cached_property
    def degree(self) -> int:
        return degree_of(self.spectrum, rounding(self.spectrum, self.spectrum.dtype))

    def noise_stability(self, rho: float) -> float:
        return stability_of(self.profile, rho)

    def flip_probability(self, rho: float) -> float | None:
        """None where f has other values than ±1."""
        return (1 - self.noise_stability(rho)) / 2 if self.signed else None


def analyse(table: Tensor) -> Analysis:
    """Sensitivity at every input, spectrum and degree profile, from the 2^n values alone.

    >>> from teeter import cube
    >>> result = analyse(cube.truth_table(cube.majority, 5))
    >>> result.average_sensitivity, result.max_sensitivity
    (1.875, 3.0)
    """
    values = single(table)
    n = dimension(values)
    signed = is_signed(values)
    tables = 3 if signed else 7  # at the worst moment, beside the table itself
    require(tables * values.numel() * values.itemsize, f"the analysis of n = {n} bits", values.device)
    spectrum = walsh(values)
    return Analysis(n, signed, local_sensitivity_of(values, signed), spectrum, degree_profile_of(spectrum))
