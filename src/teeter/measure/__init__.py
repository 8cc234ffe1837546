"""Estimators: every answer is an Estimate, a value that knows its doubt."""

from teeter.measure.blowup import Blowup, blowup
from teeter.measure.changes import kl_divergence, label_flip, logit_distance, quarter_square
from teeter.measure.doctor import Finding, doctor
from teeter.measure.estimate import Estimate
from teeter.measure.sensitivity import Sensitivity, merge, sensitivity
from teeter.measure.sharpness import parameter_norm, sharpness
from teeter.measure.tally import Tally
from teeter.measure.token_map import TokenMap, token_map

__all__ = [
    "Blowup",
    "Estimate",
    "Finding",
    "Sensitivity",
    "Tally",
    "TokenMap",
    "blowup",
    "doctor",
    "kl_divergence",
    "label_flip",
    "logit_distance",
    "merge",
    "parameter_norm",
    "quarter_square",
    "sensitivity",
    "sharpness",
    "token_map",
]
