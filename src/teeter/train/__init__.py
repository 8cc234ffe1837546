"""Training: penalties on sensitivity, and noise on the training inputs."""

from teeter.train.augmentation import add_noise
from teeter.train.penalty import SensitivityPenalty, ramp

__all__ = ["SensitivityPenalty", "add_noise", "ramp"]
