"""`teeter measure --map`: which inputs it shows, and what it refuses before any work."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from teeter import cube
from teeter.data import subset


@pytest.fixture
def drawn(monkeypatch):
    """What the pictures are made from."""
    seen = {}

    def note(kind):
        return lambda where, *given, **named: seen.update({kind: (where, *given), **named}) or Figure()

    for kind in ("heat_map", "token_text", "position_profile"):
        monkeypatch.setattr(f"teeter.report.{kind}", note(kind))
    return seen


def test_a_map_of_texts_shows_their_words(teeter, reviews, drawn):
    assert teeter("measure", *reviews, "--perturb", "embedding", "--budget", "200", "--map", "map.png")[0] == 0
    where, texts = drawn["token_text"]
    assert (drawn["most"], drawn["total"]) == (6, 40)
    assert len(where.mean) == len(texts) == 40
    for text in texts:
        assert text[0] == "[CLS]"
        assert text[-1] == "[SEP]"  # and no padding


def test_a_map_of_sorted_images_is_of_random_ones(teeter, tmp_path, drawn):
    images = np.arange(300, dtype="float32").reshape(300, 1, 1, 1) + np.zeros((1, 1, 4, 4), "float32")
    np.save(tmp_path / "images.npy", images)
    (tmp_path / "sum_model.py").write_text("def total(x):\n    return x.sum((1, 2, 3)) - 2400\n")
    words = ["sum_model:total", "images.npy", "--perturb", "patch:2", "--budget", "100", "--seed", "3"]
    assert teeter("measure", *words, "--map", "map.png")[0] == 0
    _, shown = drawn["heat_map"]
    assert drawn["total"] == 300
    assert drawn["numbers"] == subset(300, 64, seed=3).tolist() == shown[:, 0, 0, 0].tolist()
    assert min(drawn["numbers"]) < 75 and max(drawn["numbers"]) > 225


def test_a_map_of_all_strings_of_bits_is_of_random_ones(teeter, tmp_path, drawn):
    np.save(tmp_path / "bits.npy", cube.points(8).numpy())
    (tmp_path / "gate_model.py").write_text("def gate(x):\n    return x[:, 0] * (x[:, 7] < 0) + (x[:, 7] > 0)\n")
    words = ["gate_model:gate", "bits.npy", "--perturb", "bit", "--budget", "100", "--map", "map.png"]
    assert teeter("measure", *words)[0] == 0
    (where,) = drawn["position_profile"]
    assert where.mean.shape == (64, 8)
    assert drawn["total"] == 256
    assert 0.2 < float(where.mean[:, 0].mean()) < 0.8  # none of the first 64 would open the gate


@pytest.mark.parametrize("perturb", ["weights", "input"])
def test_a_map_of_one_place_is_refused_before_measuring(teeter, tmp_path, monkeypatch, perturb):
    monkeypatch.setattr("teeter.measure.sensitivity", lambda *given, **named: pytest.fail("it measured"))
    np.save(tmp_path / "a.npy", np.ones((9, 3), "float32"))
    (tmp_path / "plain_model.py").write_text("import torch\nmodel = torch.nn.Linear(3, 2)\n")
    code, out, err = teeter("measure", "plain_model:model", "a.npy", "--perturb", perturb, "--map", "m.png")
    assert (code, out) == (2, "")
    assert err == (
        f"teeter: --map shows at which place a nudge matters: --perturb {perturb} has one place, leave --map out\n"
    )


def test_a_map_that_cannot_be_written_is_refused_before_loading(teeter, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = teeter("measure", "none:none", "none.npy", "--perturb", "bit", "--map", "file/m.png")
    assert (code, out) == (2, "")
    assert "cannot draw to 'file/m.png'" in err
