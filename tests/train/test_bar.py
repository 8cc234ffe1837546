"""What a user sees while a model is trained."""

import io

import rich.console
from torch import nn

from teeter import cube
from teeter.train import BitStream, Recipe, bar, train


def shown(monkeypatch, terminal):
    out, console = io.StringIO(), rich.console.Console

    def made(stderr):
        assert stderr
        return console(file=out, force_terminal=terminal, width=100)

    monkeypatch.setattr(rich.console, "Console", made)
    with bar() as progress:
        train(nn.Linear(3, 1), BitStream(cube.first, 3, 8, seed=0), Recipe(20, 8), every=10, progress=progress)
    return out.getvalue()


def test_a_bar_with_the_latest_values(monkeypatch):
    text = shown(monkeypatch, terminal=True)
    assert "20/20" in text
    assert "loss" in text


def test_nothing_where_there_is_no_terminal(monkeypatch):
    assert shown(monkeypatch, terminal=False) == ""
