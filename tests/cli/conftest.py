import sys

import pytest

from teeter import cli


@pytest.fixture
def teeter(monkeypatch, capsys, tmp_path):
    """Runs a command line in an empty folder; gives exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("TEETER_STORE", raising=False)
    monkeypatch.delenv("TEETER_TRACEBACK", raising=False)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["teeter", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return call
