"""`teeter data`: which data sets there are, which of them are here, and how the others come."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from teeter.cli.app import JsonOption, app, print_json
from teeter.cli.fetching import fetching
from teeter.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from teeter.data import DataSet
    from teeter.data.holdings import Whereabouts

__all__ = ["data_corruptions", "data_get", "data_list"]

_WIDE = 120  # columns of a terminal, from which a table of all there is to say is readable

data_app = typer.Typer(help="The data sets: which are here, and how the others come.")
app.add_typer(data_app, name="data")


@data_app.command("list")
def data_list(as_json: JsonOption = False) -> None:
    """All data sets: whether they are here or can be had, their size and licence. Fetches nothing."""
    from teeter.data import DATA, whereabouts
    from teeter.data.environment import data_folder

    seen = [(entry, whereabouts(entry)) for entry in DATA.values()]
    if as_json:
        print_json({"data": [_record(entry, where) for entry, where in seen]})
        return
    console = Console()
    console.print(_table(seen, console.width), crop=False)
    if console.width < _WIDE:
        print("licences, and descriptions in full: in a wider terminal, or with --json")
    for entry, where in seen:
        if not where.here and where.needs is not None:  # below the table, where names of files are not cut
            print(f"{entry.name} needs {where.needs}")
    if (folder := data_folder()) is not None and not folder.is_dir():
        print(f"TEETER_DATA names {folder}, and there is no such folder")


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="A name from `teeter data list`.")], as_json: JsonOption = False
) -> None:
    """Fetch a data set, once, and say what it holds. Safe to interrupt, and to run twice at once."""
    from teeter.data import find, obtain, whereabouts

    entry = find(name)
    with fetching():
        place, holds = obtain(entry)
    if as_json:
        print_json({**_record(entry, whereabouts(entry)), "holds": holds})
        return
    print(place)
    if entry.made_from is not None and whereabouts(entry).state == "generated":
        print("generated as they are asked for (teeter.data.cifar10_c), and kept there; so far:")
    if "files" in holds:
        print(f"{holds['files']} files, {_size(holds['bytes'])}")
        for path, size in holds["largest"].items():
            print(f"  {path}  {_size(size)}")
        return
    for split, part in holds.items():
        print(f"{split}: {_split_words(part)}")


@data_app.command("corruptions")
def data_corruptions(
    picture: Annotated[Path, typer.Argument(help="The file to draw to: .png, .svg or .pdf.")],
    image: Annotated[int, typer.Option("--image", help="Number of the test image of CIFAR-10.")] = 44,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same noise.")] = 0,
) -> None:
    """Draw one test image of CIFAR-10 under all corruptions of CIFAR-10-C, at every severity."""
    from teeter.data import cifar10
    from teeter.report import contact_sheet, drawable, save

    drawable(picture)
    with fetching():
        images = cifar10("test").images
        if not 0 <= image < len(images):
            raise InputError(f"the test images are numbered from 0 to {len(images) - 1}, got {image}")
        place = save(lambda: contact_sheet(images[image], seed=seed), picture)
    print(place)


def _table(seen: list[tuple[DataSet, Whereabouts]], width: int) -> Table:
    """A line for each, the description cut to what room there is; in a wide one in full, and with the licence."""
    from rich import box
    from rich.table import Table

    wide = width >= _WIDE
    table = Table(box=box.HEAVY_HEAD if wide else box.SIMPLE_HEAD)
    facts = [(entry.name, _words(where), _size(entry.size)) for entry, where in seen]
    widths = [max(map(len, column)) for column in zip(*facts, strict=True)]
    for label, least in zip(("name", "here?", "size"), widths, strict=True):
        table.add_column(label, no_wrap=True, min_width=least)
    if wide:
        table.add_column("licence", overflow="fold")
    table.add_column("description", overflow="fold")
    room = max(12, width - sum(widths) - 13)  # 13 blanks between four columns
    for (entry, where), (name, state, size) in zip(seen, facts, strict=True):
        colour = "green" if where.here else "red" if where.state == "absent" or where.needs else "yellow"
        last = [entry.licence, entry.description] if wide else [shorten(entry.description, room, placeholder=" …")]
        table.add_row(name, f"[{colour}]{state}", size, *last)
    return table


def _split_words(part: dict[str, Any]) -> str:
    if "pictures" in part:
        return f"{part['pictures']:,} pictures in {part['classes']:,} classes"
    classes = ", ".join(f"{name} {number}" for name, number in part["classes"].items())
    source = f", from {Path(part['file']).name}" if "file" in part else ""
    if "pairs" in part:
        lost = f"; {part['left_out']:,} lines were no pair and are left out" if part["left_out"] else ""
        return f"{part['pairs']:,} pairs of texts{source}{lost}\n  {classes}"
    count, *shape = part["shape"]
    mean, std = (", ".join(f"{value:.4f}" for value in part[name]) for name in ("mean", "std"))
    return f"{count:,} images of {' x '.join(map(str, shape))}{source}; mean {mean}, std {std}\n  {classes}"


def _record(entry: DataSet, where: Whereabouts) -> dict[str, Any]:
    facts = {"name": entry.name, "state": where.state, "here": where.here, "needs": where.needs}
    facts |= {"place": None if where.place is None else str(where.place), "bytes": entry.size}
    return {**facts, "licence": entry.licence, "splits": list(entry.splits), "description": entry.description}


def _words(where: Whereabouts) -> str:
    if where.here:
        return "your files" if where.state == "yours" else where.state
    if where.needs is not None:
        return "no, see below"
    return where.state if where.state == "generated" else f"by {where.state}"


def _size(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size} GB"
