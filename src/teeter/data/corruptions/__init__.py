"""The corruptions of CIFAR-10-C, written for batches."""

from teeter.data.corruptions.by_name import CORRUPTIONS, FAMILIES, corrupted
from teeter.data.corruptions.draws import Draws
from teeter.data.corruptions.severities import SEVERITIES

__all__ = ["CORRUPTIONS", "FAMILIES", "SEVERITIES", "Draws", "corrupted"]
