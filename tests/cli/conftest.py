import sys

import pytest

from teeter import cli
from tests import tiny


@pytest.fixture
def teeter(monkeypatch, capsys, tmp_path):
    """Runs a command line in an empty folder; gives exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("TEETER_STORE", raising=False)
    monkeypatch.delenv("TEETER_TRACEBACK", raising=False)
    monkeypatch.setenv("TEETER_KEEP_MEMORY", "0")  # which would be asked of all tests that come after

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["teeter", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return call


@pytest.fixture
def reviews(tmp_path):
    """A small text classifier and forty texts, as they are named on a command line."""
    tiny.save(tiny.text_classifier(), tmp_path / "model")
    tiny.tokenizer(tmp_path / "model")
    rows = [f"{' '.join(tiny.WORDS[4 + (i * j + j) % 10] for j in range(1 + i % 5))},{i % 2}" for i in range(40)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]))
    return ["model", "reviews.csv"]
