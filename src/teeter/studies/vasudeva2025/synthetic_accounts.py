"""Which tokens a layer of self-attention comes to read, by two accounts: low sensitivity, and the mean direction.

The first says the kind whose reader is the less sensitive; the second what SGD moves U W_V^T along (see `synthetic`).
"""

from __future__ import annotations

import math
from typing import TypeAlias

from teeter.studies.vasudeva2025.synthetic_tables import PUBLISHED, both

__all__ = ["APART", "LENGTH", "SIZES", "Setting", "followed", "mean_direction", "safer"]

Setting: TypeAlias = tuple[int, int, int, int]  # (n_sparse, n_frequent, n_difference, m), as the tables have it
LENGTH = 50
APART: Setting = (1, 17, 3, 20)  # where low sensitivity and the mean direction part
SIZES: dict[Setting, int] = {setting: size for setting, size, _ in PUBLISHED} | {APART: 69}  # of the vocabulary


def safer(setting: Setting) -> str:
    """The kind of tokens whose reader is the less sensitive.

    >>> safer((3, 5, 1, 16)), safer((1, 17, 7, 20))
    ('sparse', 'frequent')
    """
    found = both(setting, SIZES[setting], LENGTH)
    return min(found, key=lambda kind: found[kind])


def mean_direction(setting: Setting) -> dict[str, float]:
    """The cosines of the mean of label times tokens with v_sp, v_freq and v_irrel.

    >>> {kind: round(cosine, 3) for kind, cosine in mean_direction((1, 17, 7, 20)).items()}
    {'sparse': 0.538, 'frequent': 0.843, 'irrelevant': 0.0}
    """
    n_sparse, n_frequent, n_difference, m = setting
    ahead = 2 * ((n_frequent + n_difference) // 2) - n_frequent
    sparse, frequent = float(n_sparse), ahead / math.sqrt(m)
    norm = math.hypot(sparse, frequent)
    return {"sparse": sparse / norm, "frequent": frequent / norm, "irrelevant": 0.0}


def followed(setting: Setting) -> float:
    """Accuracy on altered sentences of a model that reads along the mean direction, one half for a tie.

    >>> followed((3, 5, 1, 16)), followed((1, 17, 7, 20)), followed((1, 32, 7, 36))
    (0.0, 1.0, 0.5)
    """
    towards = mean_direction(setting)
    ahead = towards["frequent"] - towards["sparse"]
    return 0.5 if abs(ahead) < 1e-12 else float(ahead > 0)
