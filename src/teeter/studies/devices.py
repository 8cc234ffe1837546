"""Where studies run, and in what arithmetic the small transformers of them are trained there."""

from __future__ import annotations

import torch

__all__ = ["ARITHMETIC", "device_here"]

ARITHMETIC = {"cuda": "tf32", "cpu": "float32"}


def device_here() -> torch.device:
    """The GPU, where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
