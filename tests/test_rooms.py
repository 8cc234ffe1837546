"""Imports point one way: a room may use only the rooms above it in this list, and models and data not each other."""

import ast
from pathlib import Path

import pytest

import teeter

PACKAGE = Path(teeter.__file__).parent
ORDER = [
    "errors",
    "memory",
    "products",
    "counter",
    "cube",
    "kernels",
    "models",
    "data",
    "perturb",
    "measure",
    "train",
    "runs",
    "integrations",
    "studies",
    "report",
    "cli",
    "__main__",
]
STRANGERS = {("models", "data"), ("data", "models")}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_used(source: str) -> set[str]:
    """Every teeter.X that a file imports, by whatever spelling, or reaches through the package itself."""
    used = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            used |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("teeter.")}
            assert not any(alias.name == "teeter" and alias.asname for alias in node.names), "teeter has one name"
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            if node.module == "teeter":
                used |= {teeter._HOME.get(alias.name, alias.name).split(".")[-1] for alias in node.names}
            elif (node.module or "").startswith("teeter."):
                used.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "teeter":
            used.add(node.attr)
    return used & {*ORDER}


def forbidden(room: str, source: str) -> set[str]:
    allowed = set(ORDER[: ORDER.index(room) + 1])
    return {used for used in rooms_used(source) if used not in allowed or (room, used) in STRANGERS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_to_rooms_above(path):
    assert room_of(path) in ORDER, "a new room needs its place in the order"
    assert forbidden(room_of(path), path.read_text()) == set()


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("cube", "import teeter.measure"),
        ("cube", "from teeter import studies"),
        ("runs", "from teeter.studies.study import Study"),
        ("measure", "def f():\n    from teeter.train import loop"),
        ("data", "from teeter.models import MODELS"),
        ("models", "from teeter import data"),
        ("cube", "import teeter\nteeter.report.page"),
        ("cube", "from teeter import Estimate"),
    ],
)
def test_the_check_sees_every_spelling(room, source):
    assert forbidden(room, source)


def test_no_drawer_without_a_name():
    nameless = {"utils", "helpers", "common", "misc", "manager", "base"}
    assert [path for path in FILES if path.stem in nameless] == []
