"""Readers of pairs of texts: how runs are matched, and what the claims say of runs that were made by hand."""

import dataclasses
import io

import matplotlib
import pandas as pd
import pytest
from matplotlib.text import Text

from teeter.report.drawing import LOOK
from teeter.studies.over_runs import mean
from teeter.studies.vasudeva2025 import language as study
from teeter.studies.vasudeva2025 import reading
from teeter.studies.vasudeva2025.language_rows import NAMES, NUDGES, at_end, pick
from teeter.studies.vasudeva2025.matching import matches


def course(accuracies, values, data="mrpc", seed=0, frequent=0.6):
    run = pd.DataFrame({"accuracy": accuracies, "sensitivity": values}).assign(data=data, seed=seed, frequent=frequent)
    return run.assign(step=10 * run.index)


def test_runs_are_matched_by_hand():
    slow = course([0.5, 0.7, 0.795, 0.8, 0.78], [1, 2, 3, 4, 5])
    fast = course([0.6, 0.77, 0.99, 1.0, 1.0], [10, 20, 30, 40, 50])
    (found,) = matches(slow, fast)
    assert (found.level, found.values, found.accuracies) == (0.8, (4, 20), (0.8, 0.77))
    assert found.off == pytest.approx(0.03) and found.above == pytest.approx(0.2)
    assert found.fair
    (turned,) = matches(fast, slow.iloc[::-1])  # in whatever order
    assert turned.values == (20, 4)
    (last,) = matches(fast, fast)
    assert last.values == (50, 50)  # the last of those at the level
    (far,) = matches(slow, course([0.5, 0.99], [1, 2]))
    assert far.off == pytest.approx(0.19) and not far.fair
    (dull,) = matches(course([0.64], [1]), course([0.64], [2]))
    assert dull.off == 0 and not dull.fair  # no more than a constant answer would
    assert matches(slow, course([0.8], [1], seed=1)) == []


def value_of(model, data, place, sigma2, split, what, variant, layers, relative):
    """As the paper and its released code have it, with both places alike."""
    late = {"text-lstm": (0.5, 2.0), "gpt2": (0.8, 1.2)}.get(model, (1.0, 1.0))
    start = {"roberta": 5.0, "roberta-relu": 2.0}.get(model, 1.0)
    base = study.PUBLISHED.get((data, model), 0.05)
    if what == "whole":
        return study.WHOLE.get((data, model), 0.05)
    factor = {"early": late[0], "late": late[1], "start": start}.get(what, 1.0)
    return base * factor * (1 + 0.01 * (layers - 4) * (model == "roberta"))


def everything(value=value_of, accuracy=0.95, tier="paper"):
    """Runs that the given tier would make, at three steps."""
    rows = []
    for spec in study.STUDY.specs(tier):
        common = dataclasses.asdict(spec) | {"finished": True, "frequent": 0.6, "relative": False}
        for step, right in ((0, 0.5), (spec.steps // 2, 0.8), (spec.steps, accuracy)):
            at = common | {"step": step, "seen": 32 * step, "accuracy": right}
            meanwhile, last, maps = study.looked_at(spec)
            kinds = [(n, "whole" if n.whole else "token", 0) for n in (last if step == spec.steps else meanwhile)]
            if step == spec.steps:
                parts = [(what, 0) for what in ("start", "text", "early", "late", "pooled")]
                kinds += [(n, *part) for n in maps for part in [*parts, *(("position", k) for k in (1, 2, 3))]]
            for n, what, position in kinds:
                noise = {"place": n.place, "sigma2": n.sigma2, "split": n.split, "relative": n.relative}
                size = value(spec.model, spec.data, what=what, variant=spec.variant, layers=spec.layers, **noise)
                size *= 1 + 0.01 * (spec.seed - 1)
                doubt = {"low": 0.999 * size, "high": 1.001 * size}
                rows.append(at | noise | doubt | {"what": what, "position": position, "sensitivity": size})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def paper():
    return everything()


def verdicts(table):
    return {claim.claim: claim.judge(table).verdict for claim in study.CLAIMS}


def test_what_the_paper_says_is_reproduced_where_it_is_true(paper):
    assert {words for words, verdict in verdicts(paper).items() if verdict != "reproduced"} == set()


def changed(**only):
    """As in the paper, but for one thing."""

    def value(model, data, place, sigma2, split, what, variant, layers, relative):
        now = dict(place=place, sigma2=sigma2, split=split, what=what, variant=variant, layers=layers)
        now |= {"relative": relative}
        size = value_of(model, data, **now)
        hit = model in only["models"] and all(now[name] == each for name, each in only.get("where", {}).items())
        return only["to"](size) if hit else size

    return value


WORSE = [
    ({"models": ["text-lstm"], "to": lambda v: 0.5 * v}, "MRPC, LSTM: sensitivity at the end, as in the text"),
    ({"models": ["text-lstm"], "to": lambda v: 1e-4}, "LSTM above RoBERTa before training"),
    ({"models": ["text-lstm"], "to": lambda v: 1e-4}, "LSTM above RoBERTa-ReLU at matched training accuracy"),
    ({"models": ["gpt2"], "to": lambda v: 0.2}, "LSTM above GPT-2 at matched training accuracy"),
    ({"models": ["gpt2"], "to": lambda v: 1e-4}, "GPT-2 above RoBERTa at matched training accuracy"),
    (
        {"models": ["gpt2"], "where": {"relative": True}, "to": lambda v: 0.2},
        "LSTM above GPT-2 at matched training accuracy, noise relative",
    ),
    (
        {"models": ["gpt2"], "where": {"relative": True}, "to": lambda v: 1e-4},
        "GPT-2 above RoBERTa at matched training accuracy, noise relative",
    ),
    ({"models": ["roberta-relu"], "to": lambda v: 2 * v}, "RoBERTa above RoBERTa-ReLU at matched training accuracy"),
    (
        {"models": ["roberta"], "where": {"sigma2": 4.0}, "to": lambda v: 0.5},
        "LSTM above RoBERTa at matched training accuracy, variance 4",
    ),
    (
        {"models": ["roberta"], "where": {"split": "valid"}, "to": lambda v: 0.5},
        "LSTM above RoBERTa at matched training accuracy, validation set",
    ),
    (
        {"models": ["text-lstm"], "where": {"place": "before", "variant": "text"}, "to": lambda v: 1e-4},
        "LSTM above RoBERTa at matched training accuracy, both before LayerNorm",
    ),
    (
        {"models": ["text-lstm"], "where": {"variant": "released"}, "to": lambda v: 1e-4},
        "LSTM above RoBERTa at matched training accuracy, as released",
    ),
    (
        {"models": ["roberta"], "where": {"place": "before"}, "to": lambda v: 0.2 * v},
        "QQP, RoBERTa: noise before LayerNorm against after it (no prediction; yardstick: even)",
    ),
    (
        {"models": ["text-lstm"], "where": {"what": "late"}, "to": lambda v: 0.1 * v},
        "LSTM: last quarter of the tokens above the first",
    ),
    (
        {"models": ["text-lstm"], "where": {"what": "late", "sigma2": 4.0}, "to": lambda v: 0.1 * v},
        "LSTM: last quarter of the tokens above the first, variance 4",
    ),
    (
        {"models": ["gpt2"], "where": {"what": "early"}, "to": lambda v: 2 * v},
        "the last quarter weighs more in GPT-2 than in RoBERTa",
    ),
    (
        {"models": ["roberta"], "where": {"what": "late"}, "to": lambda v: 3 * v},
        "RoBERTa: last quarter of the tokens against the first",
    ),
    (
        {"models": ["roberta"], "where": {"what": "start"}, "to": lambda v: 0.1 * v},
        "RoBERTa: <s> above all other tokens",
    ),
    (
        {"models": ["roberta-relu"], "where": {"what": "start"}, "to": lambda v: 9 * v},
        "<s> weighs less in RoBERTa-ReLU than in RoBERTa",
    ),
    (
        {"models": ["roberta"], "where": {"layers": 12}, "to": lambda v: 0.5},
        "LSTM above RoBERTa at matched training accuracy, at every depth",
    ),
    (
        {"models": ["roberta"], "where": {"layers": 8}, "to": lambda v: 0.5 * v},
        "RoBERTa: fewest layers below more layers, at matched training accuracy",
    ),
    (
        {"models": ["text-lstm"], "where": {"layers": 12}, "to": lambda v: 3 * v},
        "LSTM: least sensitive depth over most, throughout training (Figure 23: the same; rule: at least a half)",
    ),
    (
        {"models": ["roberta"], "where": {"what": "whole"}, "to": lambda v: 2 * v},
        "QQP, RoBERTa: sensitivity at the end, all tokens at once",
    ),
    (
        {"models": ["roberta"], "where": {"what": "pooled", "place": "before"}, "to": lambda v: 2 * v},
        "QQP, RoBERTa: sensitivity at the end, as released",
    ),
]


@pytest.mark.parametrize(("only", "words"), WORSE, ids=[words for _, words in WORSE])
def test_and_not_where_it_is_not(only, words):
    (claim,) = (claim for claim in study.CLAIMS if claim.claim == words)
    assert claim.judge(everything(changed(**only))).verdict == "not reproduced"


(ALIKE,) = (claim for claim in study.CLAIMS if "throughout" in claim.claim)


def deepest(table, step, factor):
    """The LSTMs of 12 layers differ at that step."""
    here = (table["model"] == "text-lstm") & (table["layers"] == 12) & (table["step"] == step)
    table = table.copy()
    table.loc[here, "sensitivity"] *= factor
    return table


def test_depths_are_alike_throughout_training_or_not(paper):
    assert ALIKE.judge(paper).estimate == mean([1.0, 1.0, 1.0])  # of QQP alone, where there are depths
    # As they were at the end, and four times as sensitive in the middle: 1 + 1 against 4 + 1.
    midway = ALIKE.judge(deepest(paper, 2_000, 4.0))
    assert midway.estimate.value == pytest.approx(2 / 5) and midway.verdict == "not reproduced"
    less = ALIKE.judge(deepest(paper, 2_000, 0.5))
    assert less.estimate.value == pytest.approx(1.5 / 2) and less.verdict == "reproduced"
    assert ALIKE.judge(deepest(paper, 0, 100.0)).verdict == "reproduced"  # they have not learned anything
    one = paper.copy()
    late = (one["seed"] == 1) & (one["layers"] == 8) & (one["step"] == 2_000)
    one.loc[late, "accuracy"] = 0.6  # then that seed is judged by its last step
    assert ALIKE.judge(deepest(one, 2_000, 4.0)).estimate.value == pytest.approx((0.4 + 1 + 0.4) / 3)
    assert ALIKE.judge(deepest(one, 2_000, 4.0)).verdict == "undecided"


def test_depths_of_which_one_never_learns_are_not_judged(paper):
    stuck = paper.copy()
    stuck.loc[stuck["layers"] == 12, "accuracy"] = 0.6
    broken = paper.assign(finished=paper["layers"] != 12)
    for table in (stuck, broken, paper.assign(sensitivity=0.0)):
        judged = ALIKE.judge(table)
        assert judged.verdict == "undecided" and judged.estimate.n == 0
    assert ALIKE.judge(paper.loc[paper["layers"] == 4]).verdict == "not run at this tier"


def test_measurements_that_overlap_tell_no_order(paper):
    doubtful = paper.assign(low=0.0)
    for words, verdict in verdicts(doubtful).items():
        assert (verdict == "undecided") == (
            "above RoBERTa" in words or "above GPT-2" in words or "fewest" in words[:20]
        )
    one, other = (pick(paper, model).query("data == 'qqp' and seed == 0") for model in ("text-lstm", "roberta"))
    assert (study.above(one, other), study.above(other, one)) == ([True], [False])
    assert study.above(one, other.assign(high=0.5)) == []


def test_runs_that_do_not_match_decide_nothing(paper):
    table = paper.copy()
    table.loc[table["model"] == "text-lstm", "accuracy"] = 0.6  # it has learned nothing
    found = {words: verdict for words, verdict in verdicts(table).items() if words.startswith("LSTM above")}
    assert {verdict for words, verdict in found.items() if "matched" in words} == {"undecided"}
    assert {verdict for words, verdict in found.items() if "before training" in words} == {"reproduced"}


def test_three_seeds_of_one_data_set_are_too_few_for_an_order(paper):
    found = verdicts(paper.loc[(paper["data"] == "mrpc") & (paper["layers"] == 4)])
    assert found["LSTM above RoBERTa at matched training accuracy"] == "undecided"
    assert {verdict for words, verdict in found.items() if "QQP" in words} == {"not run at this tier"}
    assert found["RoBERTa: fewest layers below more layers, at matched training accuracy"] == "not run at this tier"
    assert found["MRPC, LSTM: sensitivity at the end, as in the text"] == "reproduced"


def test_of_made_up_pairs_nothing_is_said_of_mrpc():
    found = verdicts(everything(tier="smoke"))
    assert {verdict for words, verdict in found.items() if words.startswith(("MRPC", "QQP"))} == {"undecided"}


def test_runs_that_diverged_do_not_count(paper):
    table = paper.copy()
    table.loc[(table["model"] == "text-lstm") & (table["seed"] == 0), "finished"] = False
    assert len(at_end(table, "text-lstm")) == 4
    assert {seed for _, seed in at_end(table, "text-lstm").index} == {1, 2}


def test_a_choice_of_rows(paper):
    here = pick(paper, "roberta", "before")
    assert {(row.data, row.seed, row.step) for row in here.itertuples()} == {
        (data, seed, step)
        for data, steps in (("mrpc", 6_000), ("qqp", 4_000))
        for seed in range(3)
        for step in (0, steps // 2, steps)
    }
    assert set(pick(paper, "roberta", "before", 4.0)["step"]) == {6_000, 4_000}  # at the last step alone
    assert set(pick(paper, "roberta", layers=12)["data"]) == {"qqp"}
    assert set(pick(paper, "text-lstm", variant="released")["variant"]) == {"released"}


def test_the_small_tier():
    """Both sets, every order three seeds and three depths, and no number of the paper's: its models were larger."""
    specs = study.STUDY.specs("small")
    table = pd.DataFrame(map(dataclasses.asdict, specs))
    assert table.groupby(["data", "length", "variant", "layers"]).size().to_dict() == {
        ("mrpc", 64, "text", 2): 12,
        ("mrpc", 64, "released", 2): 3,
        ("qqp", 32, "text", 2): 12,
        ("qqp", 32, "released", 2): 3,
        ("qqp", 32, "text", 3): 6,
        ("qqp", 32, "text", 4): 6,
    }
    assert {(spec.dim, spec.pairs, spec.steps) for spec in specs} == {(32, 1_500, 300)}
    found = verdicts(everything(tier="small"))
    numbers = [words for words in found if "sensitivity at the end" in words]
    assert {found.pop(words) for words in numbers} == {"not run at this tier"} and len(numbers) == 14
    assert set(found.values()) == {"reproduced"}


def test_the_paper_tier():
    specs = study.STUDY.specs("paper")
    table = pd.DataFrame(map(dataclasses.asdict, specs))
    assert table.groupby(["data", "variant", "layers"]).size().to_dict() == {
        ("mrpc", "text", 4): 12,
        ("mrpc", "released", 4): 3,
        ("qqp", "text", 4): 12,
        ("qqp", "released", 4): 3,
        ("qqp", "text", 8): 6,
        ("qqp", "text", 12): 6,
    }
    assert set(table["model"]) == {"text-lstm", "roberta", "roberta-relu", "gpt2"}
    assert set(table.loc[table["layers"] > 4, "model"]) == {"text-lstm", "roberta"}
    assert {(spec.dim, spec.rate, spec.pairs) for spec in specs} == {(256, 1e-4, 10_000)}
    assert {(spec.data, spec.length, spec.steps) for spec in specs} == {("mrpc", 128, 6_000), ("qqp", 64, 4_000)}
    assert len(reading.looks_at(4_000)) == len(reading.looks_at(6_000)) == 17
    assert [spec.seed for spec in specs[:30]] == sorted(spec.seed for spec in specs[:30])  # a whole picture first
    assert {spec.layers for spec in specs[:30]} == {4}
    assert (reading.BATCH, reading.HEADS, reading.WEIGHT_DECAY, reading.DRAWS) == (32, 8, 1e-4, 3)
    assert {(nudge.sigma2, nudge.whole) for nudge in NUDGES} == {(15.0, False), (4.0, False), (0.5, True)}
    for kind in (False, True):
        assert {nudge.place for nudge in NUDGES if nudge.relative == kind} == {"after", "before"}
    for spec in specs:
        meanwhile, last, maps = study.looked_at(spec)
        assert set(maps) <= set(last) and set(meanwhile) <= set(last)
        assert (last == NUDGES) == (spec.layers == 4 and spec.variant == "text")
        assert bool(maps) == (spec.layers == 4)


def drawn(table):
    """The figure as the report has it, on paper: warnings are errors."""
    with matplotlib.rc_context(LOOK):
        figure = study.draw(table)
        figure.savefig(io.BytesIO(), format="png", dpi=60)
        return figure


def panels(figure):
    """By their titles, in order; those with none have the row above's."""
    found = [(axes.get_title(loc="left"), axes) for axes in figure.axes]
    return [(title, {float(f"{line.get_ydata()[-1]:.3g}") for line in axes.lines}) for title, axes in found]


def test_all_that_is_measured_is_drawn():
    marks = {
        0.77: {"sigma2": 4.0, "split": "train", "what": "token"},
        0.66: {"split": "valid"},
        0.55: {"sigma2": 4.0, "what": "position"},
        0.44: {"what": "position", "sigma2": 15.0, "place": "after"},
        0.33: {"layers": 8},
        0.22: {"layers": 12},
    }

    def value(model, data, **now):
        fits = [mark for mark, where in marks.items() if all(now[name] == each for name, each in where.items())]
        return fits[0] if fits and model == "text-lstm" else value_of(model, data, **now)

    table = everything(value)
    found = panels(drawn(table.loc[table["data"] == "qqp"]))
    assert [title for title, _ in found] == [
        *("variance 15", "variance 4", "validation set", "training accuracy"),
        *("QQP, variance 15", "variance 4", "QQP, LSTM and RoBERTa by depth", "training accuracy", "QQP", ""),
    ]
    holds = [{mark for mark in marks if mark in values} for _, values in found[:8]]
    assert holds == [set(), {0.77}, {0.66}, set(), {0.44}, {0.55}, {0.33, 0.22}, set()]
    assert study.PUBLISHED["qqp", "text-lstm"] in found[6][1]  # 4 layers
    assert found[3][1] == found[7][1] == {0.95}


def test_as_released_is_that_of_every_model_that_has_it(paper):
    """Pooled, and RoBERTa's before LayerNorm."""
    sizes = {"text-lstm": 0.111, "roberta": 0.0222, "roberta-relu": 0.00333}
    table = paper.loc[paper["data"] == "mrpc"].copy()
    for model, size in sizes.items():
        how = (table["variant"] == "released") if model == "text-lstm" else (table["place"] == "before")
        table.loc[how & (table["model"] == model) & (table["what"] == "pooled"), "sensitivity"] = size
    axes = drawn(table).axes[-1]
    lines = [label.get_text() for label in axes.get_yticklabels()]
    bars = [line for line in axes.lines if line.get_marker() == "|"]
    at = [
        (line.get_color(), *line.get_xdata())
        for line in bars
        if round(line.get_ydata()[0]) == lines.index("as released")
    ]
    assert at == [(f"C{list(NAMES).index(model)}", pytest.approx(size)) for model, size in sizes.items()]


def test_figures_are_legible_in_print(paper):
    few = paper.loc[(paper["data"] == "mrpc") & (paper["layers"] == 4)]
    nothing = paper.loc[paper["data"] == "qqp"].assign(finished=False)
    for table in (paper, few, nothing, everything(tier="small"), everything(tier="smoke")):
        figure = drawn(table)
        width, height = figure.get_size_inches()
        assert width == 6.4 and height <= 9.5
        assert min(words.get_fontsize() for words in figure.findobj(Text) if words.get_text()) >= 7
        legend = figure.legends[0].get_window_extent()
        assert figure.bbox.x0 <= legend.x0 and legend.x1 <= figure.bbox.x1
    assert all("depth" not in title for title, _ in panels(drawn(few)))
