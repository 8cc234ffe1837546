"""Estimators: every answer is an Estimate, a value that knows its doubt."""

from teeter.measure.changes import kl_divergence, label_flip, logit_distance, quarter_square
from teeter.measure.estimate import Estimate
from teeter.measure.sensitivity import Sensitivity, merge, sensitivity
from teeter.measure.tally import Tally
from teeter.measure.token_map import TokenMap, token_map

__all__ = [
    "Estimate",
    "Sensitivity",
    "Tally",
    "TokenMap",
    "kl_divergence",
    "label_flip",
    "logit_distance",
    "merge",
    "quarter_square",
    "sensitivity",
    "token_map",
]
