"""The picture of `teeter measure --map`: where a model changes its mind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from teeter.errors import InputError

if TYPE_CHECKING:
    from teeter.integrations import Loaded
    from teeter.perturb import Perturbation

__all__ = ["check_places", "draw_map"]


def check_places(loaded: Loaded, nudge: Perturbation, perturb: str) -> None:
    """A map needs more than one place to nudge; asked before anything is measured."""
    if _places(loaded, nudge) == 1:
        raise InputError(
            f"--map shows at which place a nudge matters: --perturb {perturb} has one place, leave --map out"
        )


def draw_map(loaded: Loaded, nudge: Perturbation, seed: int, place: Path, progress: Callable[[int, int], None]) -> Path:
    """Colours over the image or the text where there is one, otherwise the mean at each position.

    Of many inputs, random ones: files tend to be sorted.
    """
    from teeter.data import subset
    from teeter.integrations import words
    from teeter.measure import token_map
    from teeter.perturb.images import PatchNoise, PatchReplace
    from teeter.perturb.inputs import count, field, take
    from teeter.report import heat_map, position_profile, save, token_text

    draws, most = 16, 16_000  # forwards, so that a map of long texts is of fewer of them and not of an hour
    total = count(loaded.inputs)
    numbers = subset(total, max(6, min(64, most // (draws * _places(loaded, nudge)))), seed)
    some = take(loaded.inputs, numbers)
    where = token_map(loaded.model, some, nudge, draws=draws, seed=seed, progress=progress)
    if isinstance(nudge, PatchNoise | PatchReplace):
        images = field(some, nudge.field)
        return save(lambda: heat_map(where, images, numbers=numbers.tolist(), total=total), place)
    if loaded.tokenizer is None:
        return save(lambda: position_profile(where, total=total), place)
    texts = words(loaded.tokenizer, some)
    return save(lambda: token_text(where, texts, most=6, total=total), place)


def _places(loaded: Loaded, nudge: Perturbation) -> int:
    import torch

    from teeter.perturb.inputs import take

    return nudge.positions(take(loaded.inputs, torch.arange(1))).shape[1]
