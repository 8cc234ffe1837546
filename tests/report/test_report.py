"""The page needs nothing beside it, and says what the store says."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.figure import Figure

from teeter import cube
from teeter.errors import InputError
from teeter.measure import Estimate
from teeter.report import about_tier, claims_table, cube_figure, drawable, render, save, svg, write_page
from teeter.report.page import _VERDICTS
from teeter.report.terminal import _told
from teeter.runs import Store
from teeter.studies import STUDIES, TIERS, Claim


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    filled = Store(tmp_path_factory.mktemp("store"))
    for study in STUDIES.values():
        study.execute("smoke", filled)
    return filled


class Balance(HTMLParser):
    """Collects ids and addresses, and notes tags that are closed out of turn."""

    EMPTY = {"meta", "link", "hr", "br", "use", "path", "image", "rect", "circle", "line"}

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.addresses, self.wrong = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action"):
                self.addresses.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.EMPTY and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)


def test_page_is_whole_and_needs_no_network(store):
    text = render(store)
    checker = Balance()
    checker.feed(text)
    assert checker.wrong == []
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert all(address.startswith(("#", "data:")) for address in checker.addresses)
    assert {a[1:] for a in checker.addresses if a.startswith("#")} <= set(checker.ids)
    assert "<script" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_page_shows_every_claim_with_its_verdict(store):
    text, missed = render(store), 0
    for study in STUDIES.values():
        outcome = study.best(store)
        assert outcome is not None
        for judgement in outcome.judgements:
            assert f"<td>{html.escape(judgement.claim.claim)}</td>" in text
            missed += judgement.verdict == "not reproduced"
    assert text.count("✗ not reproduced</td>") == missed >= 4
    assert "99.6 % interval" in text
    assert text.count("<svg") == len(STUDIES)
    assert "Provenance" in text
    assert "torch" in text
    assert "<h3>Table 2</h3>" in text
    assert "<td>PARITY</td><td>published</td><td>5.0e-02</td>" in text


def test_every_section_of_a_lesser_tier_says_so(store):
    text = render(store)
    assert text.count("<p><strong>The smoke tier only shows that the study runs") == len(STUDIES)
    assert "It is on digits, the paper tier on cifar10.</strong>" in text


def test_claims_are_counted_by_tier(tmp_path):
    mixed, functions = Store(tmp_path), STUDIES["hahn2024/functions"]
    studies = [replace(functions, name=f"a/{tier}", tiers=_shifted(functions, tier)) for tier in TIERS]
    for study, tier in zip(studies, TIERS, strict=True):
        study.execute(tier, mixed)
    text = render(mixed, studies)
    heads = re.findall(r"<strong>([0-9]+) claims at the (\w+) tier</strong>: ✓ 5 reproduced.*?\.(.*?)</p>", text)
    assert [(int(count), tier) for count, tier, _ in heads] == [(len(functions.claims), tier) for tier in TIERS[::-1]]
    assert [said.strip()[:13] for *_, said in heads] == ["", "This tier is ", "This tier onl"]
    assert text.count("<p><strong>The small tier is a smaller experiment of the same kind, and the verdicts") == 1


def _shifted(study, only):
    """The smoke runs as one tier, and others that are never run."""
    return {tier: study.tiers["smoke" if tier == only else "paper"] for tier in TIERS}


def test_lesser_tiers():
    assert about_tier(STUDIES["vasudeva2025/cifar10"], "paper") == ""
    assert about_tier(STUDIES["vasudeva2025/language"], "small").endswith("are on that.")  # the same data
    assert about_tier(STUDIES["vasudeva2025/language"], "smoke").endswith("on made, the paper tier on mrpc and qqp.")
    assert about_tier(STUDIES["vasudeva2025/fashion"], "small").endswith("are on that.")  # the same data


def test_the_page_says_how_verdicts_are_reached():
    assert "meets the value with its tolerance" in _VERDICTS
    for low, high, rule, verdict in (
        (0.95, 1.05, {}, "reproduced"),
        (0.8, 1.2, {}, "undecided"),
        (1.1, 1.2, {}, "not reproduced"),
        (1.1, 1.2, {"tolerance": 0.15}, "reproduced"),
        (1.1, 1.2, {"tolerance": 0.15, "strict": True}, "undecided"),
        (0.8, 1.2, {"resolution": 0.3}, "reproduced"),
    ):
        claim = Claim("", 1.0, lambda table, low=low, high=high: Estimate((low + high) / 2, low, high, 9), **rule)
        assert claim.judge(pd.DataFrame({"a": [1]})).verdict == verdict


def test_page_is_the_same_every_time(store):
    assert render(store) == render(store)


def test_page_of_an_empty_store_says_what_is_not_run(tmp_path):
    text = render(Store(tmp_path))
    assert "<strong>0 claims</strong>." in text
    assert all(name in text for name in STUDIES)


def test_writing_replaces_the_old_page_in_one_step(store, tmp_path, monkeypatch):
    place = write_page(store, tmp_path / "site")
    before = place.read_text()

    def broken(store):
        raise RuntimeError("no page today")

    monkeypatch.setattr("teeter.report.page.render", broken)
    with pytest.raises(RuntimeError):
        write_page(store, tmp_path / "site")
    assert place.read_text() == before
    assert [path.name for path in place.parent.iterdir()] == ["index.html"]


def test_svg_is_valid_and_its_ids_are_its_own(store):
    study = next(iter(STUDIES.values()))
    outcome = study.best(store)
    assert outcome is not None
    one, two = (svg(lambda: study.figure(outcome.table), name) for name in ("a/b", "c"))
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    ElementTree.fromstring(one)


def test_an_unknown_picture_format_is_named(tmp_path):
    with pytest.raises(InputError, match="must end in one of"):
        save(Figure, tmp_path / "picture.docx")


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    assert drawable(tmp_path / "new" / "deep" / "a.png") == tmp_path / "new" / "deep" / "a.png"
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="file is no folder"):
        drawable(tmp_path / "file" / "a.png")
    with pytest.raises(InputError, match="it is a folder"):
        drawable(tmp_path / "folder.png")
    monkeypatch.setattr("teeter.report.drawing.os.access", lambda place, how: False)
    with pytest.raises(InputError, match="may not be written to"):
        drawable(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("f", "n"), [(cube.majority, 7), (cube.mean, 6), (lambda x: x[:, 0] * (2 + x[:, 1:].sum(-1)), 6)]
)
def test_cube_pictures_show_mean_and_all_degrees(f, n):
    result = cube.analyse(cube.truth_table(f, n))
    drawing = cube_figure(result, "title")
    left, right = drawing.axes
    assert [bar.get_height() for bar in left.patches] == pytest.approx(result.profile.tolist())
    (shape,) = right.patches if len(right.patches) == 1 else [None]
    heights = shape.get_data().values if hasattr(shape, "get_data") else [b.get_height() for b in right.patches]
    assert sum(heights) == pytest.approx(1)
    assert f"mean {result.average_sensitivity:.4g}" in [text.get_text() for text in right.texts]


def test_measured_in_words():
    assert _told(None) == ""
    assert _told(Estimate.exact(0.25)) == "0.25"
    assert _told(Estimate(0.25, 0.2, 0.3, 10)) == "0.25 [0.2, 0.3]"


def test_terminal_table_has_a_line_for_each_claim(store):
    for study in STUDIES.values():
        outcome = study.best(store)
        assert outcome is not None
        assert claims_table(outcome).row_count == len(study.claims)


def test_claims_that_no_run_speaks_of_come_last(tmp_path):
    """In the order of the study otherwise, on the page and in the terminal."""
    functions = STUDIES["hahn2024/functions"]
    first, second, third = functions.claims[:3]
    silent = replace(second, claim="of other runs", measure=lambda table: None)
    study = replace(functions, claims=[silent, third, first])
    study.execute("smoke", Store(tmp_path))
    text = render(Store(tmp_path), [study])
    places = [text.index(f"<td>{claim.claim}") for claim in (third, first, silent)]
    assert places == sorted(places)
    outcome = study.outcome("smoke", Store(tmp_path))
    assert [str(cell) for cell in claims_table(outcome).columns[0].cells][-1] == "of other runs"
