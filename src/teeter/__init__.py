"""teeter measures how easily a neural network changes its mind.

>>> import teeter
>>> teeter.cube.average_sensitivity(teeter.cube.truth_table(teeter.cube.majority, 3))
1.5
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from teeter import counter, cube, data, integrations, measure, models, perturb, report, runs, studies, train
    from teeter.errors import InputError, TeeterError, TooLarge, UnknownName
    from teeter.measure import Estimate, blowup, doctor, parameter_norm, sensitivity, sharpness, token_map

__version__ = "0.1.0"

# Public name -> the module it lives in; a room is its own module. Nothing is imported before it is used,
# so `import teeter` and `teeter --help` do not wait for torch.
_HOME = {
    **{room: f"teeter.{room}" for room in ("counter", "cube", "data", "integrations", "measure", "models")},
    **{room: f"teeter.{room}" for room in ("perturb", "report", "runs", "studies", "train")},
    **{name: "teeter.errors" for name in ("InputError", "TeeterError", "TooLarge", "UnknownName")},
    **{name: "teeter.measure" for name in ("Estimate", "blowup", "doctor", "parameter_norm")},
    **{name: "teeter.measure" for name in ("sensitivity", "sharpness", "token_map")},
}

__all__ = [
    "Estimate",
    "InputError",
    "TeeterError",
    "TooLarge",
    "UnknownName",
    "blowup",
    "counter",
    "cube",
    "data",
    "doctor",
    "integrations",
    "measure",
    "models",
    "parameter_norm",
    "perturb",
    "report",
    "runs",
    "sensitivity",
    "sharpness",
    "studies",
    "token_map",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'teeter' has no attribute '{name}'")
    module = importlib.import_module(_HOME[name])
    return module if _HOME[name] == f"teeter.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
