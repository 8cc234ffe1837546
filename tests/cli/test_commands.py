"""The command line as a user meets it: output, exit codes, one-line errors."""

import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest

from teeter import cli
from teeter.data import FetchFailed, MissingClient
from teeter.errors import InputError, RunsFailed
from teeter.studies import STUDIES


def test_help_and_version(teeter):
    code, out, _ = teeter()
    assert code == 0
    assert "cube" in out
    assert teeter("--version")[:2] == (0, "0.1.0\n")
    for words in (
        ["--help"],
        ["study", "--help"],
        ["study", "run", "--help"],
        ["cube", "--help"],
        ["report", "--help"],
    ):
        assert teeter(*words)[0] == 0


def test_cube_json(teeter):
    code, out, _ = teeter("cube", "majority", "--n", "5", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["average_sensitivity"] == 1.875
    assert facts["max_sensitivity"] == 3
    assert facts["degree"] == 5
    assert facts["influences"] == [0.375] * 5
    assert facts["flip_probability"] == pytest.approx((1 - facts["noise_stability"]) / 2)
    assert json.loads(teeter("cube", "mean", "--n", "4", "--json")[1])["flip_probability"] is None


@pytest.mark.parametrize(("words", "k"), [([], 3), (["--k", "2"], 2)])
def test_cube_says_which_k(teeter, words, k):
    assert json.loads(teeter("cube", "sparse-parity", "--n", "5", *words, "--json")[1])["k"] == k
    assert f"sparse-parity, k = {k}, on n = 5 bits" in teeter("cube", "sparse-parity", "--n", "5", *words)[1]
    assert json.loads(teeter("cube", "parity", "--n", "5", "--json")[1])["k"] is None


def test_cube_words_and_picture(teeter, tmp_path):
    code, out, err = teeter("cube", "sparse-parity", "--n", "6", "--k", "2", "--plot", "deep/picture.svg")
    assert code == 0
    assert "average sensitivity" in out
    assert "picture: deep/picture.svg" in err
    assert (tmp_path / "deep" / "picture.svg").read_text().startswith("<?xml")
    assert "1  1  0  0  0  0" in out  # the influences
    assert "for every bit" in teeter("cube", "parity", "--n", "4")[1]
    for name in ("mean", "random-function"):
        assert teeter("cube", name, "--n", "6", "--plot", f"{name}.png")[0] == 0
        assert (tmp_path / f"{name}.png").stat().st_size > 1000


def test_study_list(teeter):
    code, out, _ = teeter("study", "list", "--json")
    listed = json.loads(out)
    assert code == 0
    assert [entry["name"] for entry in listed] == list(STUDIES)
    assert set(listed[0]) == {"name", "paper", "where", "title"}


@pytest.mark.parametrize("columns", ["24", "80", "100", "130"])
def test_names_are_never_cut(teeter, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    first = {line.split()[0] for line in teeter("study", "list")[1].splitlines() if line.strip()}
    assert set(STUDIES) <= first


def test_study_run_show_report(teeter, tmp_path):
    assert "no tier is complete" in teeter("study", "show", "hahn2024/functions")[1]
    code, out, _ = teeter("study", "run", "hahn2024/functions", "--tier", "smoke", "--store", "here", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(answer) == {"study", "tier", "runs", "of", "seconds", "claims"}
    assert answer["runs"] == answer["of"] == len(STUDIES["hahn2024/functions"].specs("smoke"))
    assert (answer["study"], answer["tier"]) == ("hahn2024/functions", "smoke")
    assert all(set(c) == {"claim", "published", "measured", "low", "high", "verdict"} for c in answer["claims"])
    code, out, _ = teeter("study", "run", "hahn2024/functions", "--tier", "smoke", "--store", "here")
    assert "PARITY" in out
    assert "5 reproduced" in out
    code, out, err = teeter("study", "show", "hahn2024/functions", "--store", "here", "--plot", "fig.pdf")
    assert code == 0
    assert "5 reproduced" in out
    assert (tmp_path / "fig.pdf").exists()
    code, out, _ = teeter("report", "--store", "here", "--out", "site")
    assert (code, out) == (0, "site/index.html\n")
    page = (tmp_path / "site" / "index.html").read_text()
    assert "hahn2024/functions" in page
    assert "<h2>Not run</h2>" in page


def test_a_study_in_slices_and_packed(teeter, tmp_path):
    how = ("study", "run", "hahn2024/functions", "--tier", "smoke", "--store", "here")
    assert teeter(*how, "--seconds", "0")[1] == "0 of 40 runs are done: the same command goes on\n"
    assert teeter("study", "pack", "hahn2024/functions", "--store", "there")[0] == 2
    assert "5 reproduced" in teeter(*how)[1]
    code, out, _ = teeter("study", "pack", "hahn2024/functions", "--store", "here")
    assert code == 0 and Path(tmp_path, out.strip()).match("here/hahn2024/functions/runs-*.jsonl.gz")
    assert len(list((tmp_path / "here" / "hahn2024" / "functions").iterdir())) == 1
    assert "5 reproduced" in teeter("study", "show", "hahn2024/functions", "--store", "here")[1]


def test_several_studies_at_once(teeter):
    names = ("hahn2024/functions", "vasudeva2025/synthetic-tables")
    how = ("study", "run", *names, "--tier", "smoke", "--store", "here")
    code, out, _ = teeter(*how, "--seconds", "0")
    assert (code, out.splitlines()) == (
        0,
        [f"{name}: 0 of {n} runs are done: the same command goes on" for name, n in zip(names, (40, 7), strict=True)],
    )
    code, out, _ = teeter(*how, "--workers", "2", "--json")
    answer = json.loads(out)
    assert code == 0 and set(answer) == {"tier", "seconds", "studies"}
    assert [(each["study"], each["runs"]) for each in answer["studies"]] == [(names[0], 40), (names[1], 7)]
    out = teeter(*how)[1]
    assert all(f"{name} (smoke)" in out for name in names)


def test_all_of_a_paper_but_what_has_no_data_here(teeter, monkeypatch, tmp_path):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    few = {name: STUDIES[name] for name in ("vasudeva2025/language", "vasudeva2025/synthetic-tables")}
    monkeypatch.setattr("teeter.studies.STUDIES", few)
    order = ("study", "run", "vasudeva2025", "--tier", "small", "--store", "here")
    code, out, err = teeter(*order)
    assert code == 0
    assert "vasudeva2025/language is left out: mrpc is in no package registry" in err
    assert "vasudeva2025/synthetic-tables (small)" in out and "language" not in out
    without, other = json.loads(teeter(*order, "--json")[1])["studies"]
    assert without["runs"] == 0 and without["left_out"].startswith("mrpc is in no package registry")
    assert other["runs"] == other["of"] and "left_out" not in other


def test_nothing_but_studies_without_data(teeter, monkeypatch, tmp_path):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    order = ("study", "run", "vasudeva2025/svhn", "--tier", "paper", "--store", "here")
    code, out, err = teeter(*order)
    assert (code, out) == (2, "") and "SVHN is in no package registry" in err.splitlines()[-1]
    code, out, err = teeter(*order, "vasudeva2025/imagenet")
    assert (code, out) == (2, "")
    assert [line.partition(": ")[0] for line in err.splitlines() if "left out" in line or "teeter:" in line] == [
        "vasudeva2025/svhn is left out",
        "vasudeva2025/imagenet is left out",
        "teeter",
    ]
    assert "none of these studies can be run here" in err.splitlines()[-1]


def test_half_a_tier_has_no_verdicts(teeter):
    how = ("study", "run", "hahn2024/functions", "--tier", "smoke", "--store", "here", "--json")
    code, out, _ = teeter(*how, "--seconds", "0")
    answer = json.loads(out)
    assert (code, answer["runs"]) == (0, 0)
    assert {claim["verdict"] for claim in answer["claims"]} == {"incomplete: 0 of 40 runs"}
    assert "incomplete" not in teeter(*how)[1]


def test_a_lesser_tier_says_so(teeter):
    how = ("vasudeva2025/svhn", "--store", "here")
    for words in (("study", "run", *how, "--tier", "smoke"), ("study", "show", *how)):
        said = " ".join(teeter(*words)[1].split())
        assert "only shows that the study runs: its verdicts mean nothing. It is on digits, the paper tier on" in said


def test_store_from_the_environment(teeter, monkeypatch, tmp_path):
    monkeypatch.setenv("TEETER_STORE", str(tmp_path / "elsewhere"))
    assert teeter("study", "run", "hahn2024/functions", "--tier", "smoke")[0] == 0
    assert (tmp_path / "elsewhere" / "hahn2024" / "functions").is_dir()


def test_demo(teeter, monkeypatch, tmp_path):
    for study in STUDIES.values():
        monkeypatch.setitem(study.tiers, "small", study.tiers["smoke"])
    code, out, _ = teeter("demo", "--out", "shown")
    assert code == 0
    assert out.splitlines()[-1] == "report: shown/index.html"
    assert "✓" in out
    assert "<svg" in (tmp_path / "shown" / "index.html").read_text()


def test_a_demo_without_the_data_that_no_registry_has(teeter, monkeypatch, tmp_path):
    monkeypatch.setenv("TEETER_DATA", str(tmp_path))
    language = dataclasses.replace(STUDIES["vasudeva2025/language"], demo="small")
    functions = dataclasses.replace(STUDIES["hahn2024/functions"], demo="smoke")
    monkeypatch.setattr("teeter.studies.STUDIES", {each.name: each for each in (language, functions)})
    code, out, err = teeter("demo", "--out", "shown")
    assert code == 0
    assert "vasudeva2025/language is left out: mrpc is in no package registry: put msr_paraphrase_train.txt" in err
    assert "hahn2024/functions (smoke)" in out and out.splitlines()[-1] == "report: shown/index.html"


def test_demo_goes_on_where_data_cannot_be_had(teeter, monkeypatch, tmp_path):
    functions = STUDIES["hahn2024/functions"]

    def cannot(problem):
        def run(spec):
            raise problem

        return dataclasses.replace(functions, name="hahn2024/other", run=run, demo="smoke")

    quick = dataclasses.replace(functions, demo="smoke")
    for problem in (MissingClient("there is no npm"), FetchFailed("npm could not\nget it")):
        monkeypatch.setattr("teeter.studies.STUDIES", {"a": cannot(problem), "b": quick})
        code, out, err = teeter("demo", "--out", "shown")
        assert code == 0
        assert "5 reproduced" in out
        assert out.splitlines()[-1] == "report: shown/index.html"
        said = [line for line in err.splitlines() if "left out" in line]
        assert said == [f"hahn2024/other is left out: {' '.join(str(problem).split())}"]
    monkeypatch.setattr("teeter.studies.STUDIES", {"a": cannot(InputError("wrong")), "b": quick})
    assert teeter("demo", "--out", "shown")[0] == 2  # what is no matter of data is not passed over


def test_a_store_that_cannot_be_written_is_said_before_any_worker_starts(teeter, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("teeter.studies.execute_all", lambda *given: pytest.fail("begun"))
    code, out, err = teeter("study", "run", "hahn2024/functions", "--store", "file/store", "--workers", "2")
    assert (code, out) == (2, "")
    assert err == "teeter: Not a directory: file/store/hahn2024/functions\n"


def test_a_study_that_shares_runs(teeter, tmp_path):
    """It is run, shown, packed and reported like any other, from where the other's runs are."""
    name, home = "vasudeva2025/random-noise", tmp_path / "here" / "vasudeva2025" / "cifar10"
    assert teeter("study", "pack", name, "--store", "here")[0] == 2
    code, out, _ = teeter("study", "run", name, "--tier", "smoke", "--store", "here", "--json")
    assert (code, json.loads(out)["runs"], len(list(home.iterdir()))) == (0, 2, 2)
    assert [place.name for place in home.parent.iterdir()] == ["cifar10"]
    code, out, _ = teeter("study", "pack", name, "--store", "here")
    assert code == 0 and Path(tmp_path, out.strip()).match("here/vasudeva2025/cifar10/runs-*.jsonl.gz")
    assert "not run" in teeter("study", "show", name, "--store", "here", "--plot", "fig.png")[1]
    assert (tmp_path / "fig.png").exists()
    teeter("study", "run", "vasudeva2025/cifar10", "--tier", "smoke", "--store", "here")
    assert teeter("report", "--store", "here", "--out", "site")[0] == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert "2 runs of <code>vasudeva2025/cifar10</code>" in page
    counts = [int(each) for each in re.findall("<th>runs</th><td>([0-9]+)</td>", page)]
    assert sum(counts) == 5  # each run once, whichever studies look at it


def test_cite(teeter):
    everything = teeter("cite")[1]
    assert everything.count("@") == 3
    assert "2402.09963" in everything
    one = teeter("cite", "vasudeva2025/synthetic-tables")[1]
    assert "2403.06925" in one
    assert "2402.09963" not in one
    assert teeter("cite", "hahn2024")[1].count("@") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cube", "party", "--n", "3"], "no function named 'party': did you mean 'parity'?"),
        (["cube", "foo", "--n", "3"], "random-function, sparse-parity"),
        (["cube", "parity", "--n", "3", "--m", "2"], "Try 'teeter cube --help'."),
        (["study", "run"], "Try 'teeter study run --help'."),
        (["study", "--m"], "Try 'teeter study --help'."),
        (["cube", "parity", "--n", "48"], "needs 2.0 PiB of memory"),
        (["cube", "parity", "--n", "2000"], "more than any memory holds"),
        (["cube", "first", "--n", "0"], "bit 0 does not exist"),
        (["cube", "parity", "--n", "3", "--k", "2"], "parity takes no k"),
        (["cube", "parity", "--n", "3", "--plot", "picture.pgf"], "must end in one of .svg, .png, .pdf"),
        (["study", "show", "hahn2024/functions", "--plot", "x.doc"], "must end in one of"),
        (["cube", "parity", "--n", "-1"], "n = -1"),
        (["cube", "parity", "--n", "three"], "valid int"),
        (["cube", "parity"], "--n"),
        (["cube", "address", "--n", "4"], "try one of [1"),
        (["cube", "parity", "--n", "3", "--plot", "picture.xyz"], "must end in one of"),
        (["cube", "parity", "--n", "3", "--rho", "2"], "rho"),
        (["study", "run", "hahn2024/functons"], "did you mean 'hahn2024/functions'?"),
        (["study", "run", "hahn2024/functions", "--tier", "huge"], "no tier named 'huge'"),
        (["study", "show", "nothing"], "no study named 'nothing'"),
        (["study", "show", "hahn2024/functions", "--plot", "x.svg"], "nothing to draw"),
        (["study", "frobnicate"], "frobnicate"),
        (["report", "--out", "site"], "no store at teeter-runs"),
        (["cite", "hahn2042"], "did you mean 'hahn2024'?"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(teeter, tmp_path, words, message):
    code, out, err = teeter(*words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    if words[1] != "show":
        assert out == ""


def test_trouble_with_files_is_one_line(teeter, tmp_path):
    (tmp_path / "file").write_text("")
    for words in (
        ["study", "run", "hahn2024/functions", "--store", "file"],
        ["report", "--store", ".", "--out", "file"],
        ["demo", "--out", "file/below"],
    ):
        code, _, err = teeter(*words)
        assert code == 2
        assert err.startswith("teeter: ")  # before any work
        assert len(err.splitlines()) == 1


def test_interruption_says_that_work_is_kept(teeter, monkeypatch):
    def interrupted(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("teeter.studies.several.execute", interrupted)
    code, _, err = teeter("study", "run", "hahn2024/functions")
    assert code == 130
    assert "finished runs are kept" in err


def test_a_bug_is_one_line_too_unless_asked_for(teeter, monkeypatch):
    def broken(names):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("teeter.studies.chosen", broken)
    code, _, err = teeter("study", "run", "hahn2024/functions")
    assert code == 2
    assert err == "teeter: ZeroDivisionError: oops (a bug in teeter; TEETER_TRACEBACK=1 shows where)\n"
    monkeypatch.setenv("TEETER_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["teeter", "study", "run", "x"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_runs_that_fail_are_one_line_and_the_others_are_kept(teeter, monkeypatch):
    study = STUDIES["hahn2024/functions"]

    def run(spec):
        if spec.n == 2:
            raise RuntimeError("lightning\nand thunder")
        return study.run(spec)

    monkeypatch.setitem(STUDIES, study.name, dataclasses.replace(study, run=run))
    order = ("study", "run", study.name, "--tier", "smoke", "--store", "here")
    with pytest.warns(RuntimeWarning, match="n=2.* failed: RuntimeError: lightning$"):
        code, out, err = teeter(*order)
    failed = sum(spec.n == 2 for spec in study.specs("smoke"))
    assert out == f"{40 - failed} of 40 runs are done: the same command goes on\n"
    words = f"teeter: {failed} of {len(study.specs('smoke'))} groups of runs failed, the first with "
    assert code == 2 and err.splitlines()[-1].startswith(f"{words}RuntimeError: lightning; what did not is kept")
    monkeypatch.setenv("TEETER_TRACEBACK", "1")
    with pytest.raises(RunsFailed), pytest.warns(RuntimeWarning, match="lightning"):
        teeter(*order)
    monkeypatch.setitem(STUDIES, study.name, study)
    code, out, _ = teeter(*order, "--json")  # behind what the one before had said
    assert code == 0 and json.loads(out[out.index("{") :])["runs"] == len(study.specs("smoke"))
