"""Ctrl-C: after the step, while measuring, before anything, twice, and in another thread."""

import signal
import threading

import pytest
import torch

from teeter.train import Recipe, train
from tests.train.test_loop import network, squares


def test_interrupted_between_steps(tmp_path):
    """A real signal in the middle of a step: the step is finished first."""
    sent = []

    def penalty(model, inputs, outputs):
        if len(sent) < 7:
            sent.append(len(sent))
            if len(sent) == 7:
                signal.raise_signal(signal.SIGINT)
        return outputs.sum() * 0

    made = train(network(), squares, Recipe(30, 10), every=5, folder=tmp_path, penalty=penalty)
    assert (made.stopped, made.steps) == ("interrupted", 7)
    assert [row["step"] for row in made.rows] == [0, 5]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    rest = train(network(), squares, Recipe(30, 10), every=5, folder=tmp_path, penalty=penalty)
    whole = train(network(), squares, Recipe(30, 10), every=5, penalty=penalty)
    assert (rest.rows, rest.stopped) == (whole.rows, "done")
    torch.testing.assert_close(list(rest.model.parameters()), list(whole.model.parameters()), rtol=0, atol=0)


@pytest.mark.parametrize("how", ["raises", "answers"])
def test_interrupted_while_measuring(how, tmp_path):
    """A measure that is cut short, or that answers with what it has, makes no row; the resumed run makes it."""
    calls = []

    def slow(model):
        calls.append(1)
        if len(calls) == 3:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if how == "raises":
                    raise
                return -1.0
        return 1.0

    made = train(network(), squares, Recipe(12, 10), every=4, folder=tmp_path, measures={"slow": slow})
    assert (made.stopped, made.steps, [row["step"] for row in made.rows]) == ("interrupted", 8, [0, 4])
    assert not made.model.training
    rest = train(network(), squares, Recipe(12, 10), every=4, folder=tmp_path, measures={"slow": slow})
    assert [(row["step"], row["slow"]) for row in rest.rows] == [(0, 1.0), (4, 1.0), (8, 1.0), (12, 1.0)]
    assert rest.rows == train(network(), squares, Recipe(12, 10), every=4, measures={"slow": slow}).rows


def test_interrupted_before_anything():
    def stop(*given):
        raise KeyboardInterrupt

    made = train(network(), squares, Recipe(5, 10), measures={"stop": stop})
    assert (made.rows, made.steps, made.stopped) == ([], 0, "interrupted")
    made = train(network(), squares, Recipe(5, 10), progress=stop)
    assert (len(made.rows), made.steps, made.stopped) == (1, 0, "interrupted")


def test_a_second_interrupt_does_not_wait():
    def penalty(model, inputs, outputs):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return outputs.sum()

    with pytest.raises(KeyboardInterrupt):
        train(network(), squares, Recipe(5, 10), penalty=penalty)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_another_thread():
    """Where the keyboard is not heard, and signals cannot be set."""
    made = []
    thread = threading.Thread(target=lambda: made.append(train(network(), squares, Recipe(3, 10))))
    thread.start()
    thread.join()
    assert made[0].stopped == "done"


# What goes wrong
