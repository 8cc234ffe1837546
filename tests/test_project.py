"""The project's own files agree with each other."""

import runpy
import tomllib
from pathlib import Path

import yaml

import teeter
from teeter.runs import Store
from teeter.studies import STUDIES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_version_is_one():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["project"]["version"] == citation["version"] == teeter.__version__


def test_torch_is_pinned():
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()


def test_public_names_exist():
    for name in teeter.__all__:
        assert getattr(teeter, name) is not None
    assert set(teeter.__all__) <= set(dir(teeter))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(teeter, "nonsense")


def test_hooks_are_local():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {entry["repo"] for entry in hooks["repos"]} == {"local"}


def test_changelog_has_its_extra_heading():
    assert "### Numbers changed" in (ROOT / "CHANGELOG.md").read_text()


WAITING = {
    "hahn2024/causal",
    "hahn2024/length-generalization",
    "hahn2024/parts",
    "hahn2024/recurrent",
    "vasudeva2025/cifar10",
    "vasudeva2025/depth-heads",
    "vasudeva2025/dropout",
    "vasudeva2025/early-warning",
    "vasudeva2025/enlarged",
    "vasudeva2025/flatness",
    "vasudeva2025/imagenet",
    "vasudeva2025/language",
    "vasudeva2025/optimizer",
    "vasudeva2025/random-noise",
    "vasudeva2025/regularisers",
    "vasudeva2025/robustness",
    "vasudeva2025/sparse-parity",
    "vasudeva2025/variance",
}  # studies whose paper tier has not been run yet: they are shown at the small one


def test_every_study_comes_with_results():
    """So that a clone shows them without running anything; a new revision needs new results."""
    build, outcomes = runpy.run_path(str(ROOT / "docs" / "build.py")), []
    assert STUDIES.keys() >= WAITING | build["ELSEWHERE"]
    for study in STUDIES.values():
        page = ROOT / "docs" / "studies" / f"{study.name.replace('/', '-')}.md"
        if study.name in build["ELSEWHERE"]:
            assert not page.exists()
            continue
        outcome = study.best(Store(ROOT / "results"))
        assert outcome is not None, study.name
        assert outcome.tier == ("small" if study.name in WAITING else "paper"), study.name
        assert page.read_text() == build["study_page"](outcome), "make docs"
        outcomes.append(outcome)
    assert (ROOT / "docs/studies/README.md").read_text() == build["index"](outcomes), "make docs"
