"""Estimators: every answer is an Estimate, a value that knows its doubt."""

from teeter.measure.estimate import Estimate, mean_of_inputs

__all__ = ["Estimate", "mean_of_inputs"]
