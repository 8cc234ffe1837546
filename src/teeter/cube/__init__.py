"""Exact mathematics of functions on {±1}^n, from their 2^n values."""

from teeter.cube.analysis import Analysis, analyse
from teeter.cube.functions import (
    FUNCTIONS,
    address,
    dictator,
    first,
    function,
    inner_product,
    majority,
    mean,
    parity,
    random_function,
    sparse_parity,
    threshold,
    tribes,
)
from teeter.cube.sensitivity import average_sensitivity, flip_counts, local_sensitivity, max_sensitivity
from teeter.cube.spectrum import degree, degree_profile, flip_probability, influences, noise_stability
from teeter.cube.table import points, truth_table
from teeter.cube.transform import inverse_walsh, walsh, walsh_

__all__ = [
    "FUNCTIONS",
    "Analysis",
    "address",
    "analyse",
    "average_sensitivity",
    "degree",
    "degree_profile",
    "dictator",
    "first",
    "flip_counts",
    "flip_probability",
    "function",
    "influences",
    "inner_product",
    "inverse_walsh",
    "local_sensitivity",
    "majority",
    "max_sensitivity",
    "mean",
    "noise_stability",
    "parity",
    "points",
    "random_function",
    "sparse_parity",
    "threshold",
    "tribes",
    "truth_table",
    "walsh",
    "walsh_",
]
