"""The page needs nothing beside it, and says what the store says."""

import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from teeter import cube
from teeter.errors import InputError
from teeter.measure import Estimate
from teeter.report import claims_table, cube_figure, render, save, svg, write_page
from teeter.report.terminal import _told
from teeter.runs import Store
from teeter.studies import STUDIES


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
