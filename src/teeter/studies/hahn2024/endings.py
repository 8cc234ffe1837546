"""What a run came to, in one row: why it is discarded if it is, and all that was measured of it at the end."""

from __future__ import annotations

from typing import Any

from teeter.studies.hahn2024.learning import CONVERGED, Learner
from teeter.studies.hahn2024.lengths import variance
from teeter.train import Trained

__all__ = ["ending"]

_TRAINING = ("step", "loss", "rate")  # columns of a row that no measure gave


def ending(spec: Learner, made: Trained) -> dict[str, Any]:
    """`fate`, whether that is "converged", and the measures of the last row, whichever there are.

    "diverged": the last row is of before, so that there are no measures and each is None; "not learned": no better than
    half of the best constant's error, which `unexplained` is in units of; "not exact": better, but above 1e-3.
    """
    last = made.rows[-1] if made.rows else {}
    kept: dict[str, Any] = {name: value for name, value in last.items() if name not in _TRAINING}
    if made.stopped == "diverged":
        return {"converged": False, "fate": "diverged", **dict.fromkeys([*kept, "unexplained"])}
    unexplained = last["mse"] / variance(spec.function, spec.n)
    fate = "converged" if last["mse"] <= CONVERGED else "not learned" if unexplained >= 0.5 else "not exact"
    return {"converged": fate == "converged", "fate": fate, **kept, "unexplained": unexplained}
