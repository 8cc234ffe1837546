"""`teeter measure` and `teeter doctor` on arrays, texts and images."""

import json

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import save_file
from transformers import ViTImageProcessorPil

from teeter import cube, products
from teeter.cli.measuring import _bar, _share
from teeter.integrations import load, load_model
from teeter.measure import Sensitivity, sensitivity
from teeter.perturb import TokenReplace
from tests import tiny


@pytest.fixture
def bits(tmp_path):
    np.save(tmp_path / "bits.npy", cube.points(8).numpy())
    return "bits.npy"


def test_measure(teeter, bits, tmp_path):
    code, out, _ = teeter("measure", "teeter.cube:majority", bits, "--perturb", "bit", "--budget", "4000", "--json")
    facts = json.loads(out)
    assert code == 0
    exact = cube.average_sensitivity(cube.truth_table(cube.majority, 8)) / 8
    assert facts["low"] <= exact <= facts["high"]
    assert facts["stopped"] == "budget"
    assert facts["forwards"] == 4000
    code, out, err = teeter(
        "measure", "teeter.cube:majority", bits, "--perturb", "bit", "--half-width", "0.05", "--map", "map.svg"
    )
    assert code == 0
    assert "stopped: narrow enough" in out
    assert "picture: map.svg" in err
    assert (tmp_path / "map.svg").exists()


def test_measure_images(teeter, tmp_path):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(size=(40, 1, 8, 8)).astype("float32"))
    (tmp_path / "corner_model.py").write_text("def corner(x):\n    return x[:, 0, :4, :4].sum((1, 2))\n")
    words = ["corner_model:corner", "images.npy", "--perturb", "patch:4", "--budget", "400", "--map", "map.png"]
    assert teeter("measure", *words)[0] == 0
    assert (tmp_path / "map.png").stat().st_size > 2000


def test_measure_asks_for_the_products_it_is_told(teeter, tmp_path, monkeypatch):
    """Of the model and of its picture, by oneDNN (see `teeter.products`)."""
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(size=(4, 1, 8, 8)).astype("float32"))
    (tmp_path / "telling_model.py").write_text(
        "import torch\n"
        "def telling(x):\n"
        "    with open('told', 'a') as file:\n"
        "        print(torch.get_float32_matmul_precision(), file=file)\n"
        "    return x.sum((1, 2, 3))\n"
    )
    monkeypatch.setattr(products, "by_onednn", lambda: True)
    monkeypatch.setattr(products, "onednn_computes_float32", lambda: True)
    words = ["telling_model:telling", "images.npy", "--perturb", "patch:4", "--budget", "40"]
    for more in ([], ["--map", "map.svg"]):  # a first look at what the model is comes before either
        assert teeter("measure", *words, *more)[0] == 0
        assert (tmp_path / "told").read_text().split()[-1] == "medium"


def test_doctor(teeter, bits, tmp_path):
    assert teeter("doctor", "teeter.cube:majority", bits, "--perturb", "bit")[:2] == (0, "nothing wrong\n")
    (tmp_path / "flat_model.py").write_text("import torch\ndef flat(x):\n    return torch.ones(len(x))\n")
    code, out, _ = teeter("doctor", "flat_model:flat", bits, "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["wrong"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["teeter.cube:majority", "bits.npy", "--perturb", "bits"], "did you mean 'bit'?"),
        (["teeter.cube:majority", "none.npy", "--perturb", "bit"], "there is no file 'none.npy'"),
        (["majority", "bits.npy", "--perturb", "bit"], "written 'module:name'"),
        (["teeter.cube:majority", "bits.npy", "--perturb", "patch:3"], "images are floats of shape"),
        (["teeter.cube:majority", "bits.npy", "--perturb", "input", "--sigma2", "-1"], "sigma2 is a variance"),
        (["teeter.cube:majority", "bits.npy", "--perturb", "bit", "--map", "x.doc"], "must end in one of"),
    ],
)
def test_measure_errors_are_one_line(teeter, bits, words, message):
    code, out, err = teeter("measure", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_measure_texts(teeter, reviews, tmp_path):
    words = ["measure", *reviews, "--perturb", "token", "--budget", "600", "--json"]
    code, out, err = teeter(*words, "--map", "map.svg", "--design", "broad")
    facts = json.loads(out)
    assert code == 0
    assert err == "picture: map.svg\n"  # no bar where there is no terminal, no remarks of other libraries
    assert facts["inputs"] == 40
    assert 0 < facts["low"] < facts["value"] < facts["high"] < 1
    assert facts["design"] == "broad"
    loaded = load("model", "reviews.csv")
    by_hand = sensitivity(loaded.model, loaded.inputs, TokenReplace(len(tiny.WORDS), (0, 2, 3)), budget=600, seed=0)
    assert facts["value"] == by_hand.value
    everywhere = json.loads(teeter(*words, "--special-tokens")[1])
    assert everywhere["value"] != facts["value"]
    assert json.loads(teeter(*words, "--limit", "10", "--max-length", "4")[1])["inputs"] == 10
    code, out, _ = teeter("doctor", *reviews, "--perturb", "embedding", "--limit", "20")
    assert (code, out) == (0, "nothing wrong\n")


def test_measure_a_folder_of_images(teeter, tmp_path):
    tiny.save(tiny.image_classifier(), tmp_path / "vit")
    ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(tmp_path / "vit")
    (tmp_path / "photos").mkdir()
    for i in range(12):
        pixels = np.random.default_rng(i).integers(0, 256, (30, 20 + i, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    words = ["vit", "photos", "--perturb", "patch:4", "--sigma2", "9"]
    code, out, err = teeter("measure", *words, "--budget", "400", "--map", "map.png", "--json")
    assert (code, err) == (0, "picture: map.png\n")
    assert json.loads(out)["value"] > 0
    sized = ["--image-size", "16", "--mean", "0.5,0.5,0.5", "--std", "0.2,0.2,0.2"]
    assert json.loads(teeter("measure", *words, "--budget", "400", "--json", *sized)[1])["inputs"] == 12
    for more, message in (
        (["--mean", "a,b,c", "--std", "1"], "numbers with commas between them, got 'a,b,c'"),
        (["--mean", "0.5"], "mean and std go together"),
        (["--image-size", "8"], "the model does not take these inputs: ValueError"),
        (["--device", "cuda:99"], "there is no device 'cuda:99'"),
        (["--limit", "0"], "limit is at least 1"),
        (["--design", "wide"], "got 'wide'"),
    ):
        for command in ("measure", "doctor"):
            if (command, more[0]) != ("doctor", "--design"):
                code, out, err = teeter(command, *words, *more)
                assert (code, out) == (2, "")
                assert message in err
                assert len(err.splitlines()) == 1


def test_errors_of_the_model_itself_keep_their_words(teeter, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    (tmp_path / "fails_itself.py").write_text(
        "from teeter.errors import InputError\ndef f(x):\n    raise InputError('mine')\n"
    )
    assert teeter("measure", "fails_itself:f", "a.npy", "--perturb", "input")[2] == "teeter: mine\n"


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ((None, None, 1000), 0.4),
        ((0.1, None, None), 0.25),
        ((None, 0.05, None), 0.25),
        ((0.1, 0.05, 500), 0.8),
        ((None, None, None), 0.0625),
        ((None, 1.0, None), 1.0),
    ],
)
def test_how_much_of_the_way_is_done(given, share):
    assert _share(Sensitivity(0.5, 0.4, 0.6, 9, forwards=400), *given) == pytest.approx(share)


def test_a_design_that_runs_to_its_end_has_no_share():
    assert _share(Sensitivity(0.5, 0.4, 0.6, 9, forwards=400, design="paper"), None, None, None) is None


def test_the_bar_shows_the_interval_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with _bar("measuring") as tell:
        tell("0.5 [0.4, 0.6]", 0.25)
    out, err = capsys.readouterr()
    assert out == ""
    assert "0.5 [0.4, 0.6]" in err
    assert "25%" in err


CLASSIFIER = """
import torch
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)).eval()
"""


def idx(values):
    header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    return header + values.astype(np.uint8).tobytes()


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """A data set of the user's own under the name of a known one."""
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (300, 28, 28))
    for split in ("train", "t10k"):
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx(pixels))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(idx(np.arange(300) % 10))
    monkeypatch.setenv("TEETER_DATA", str(tmp_path / "data"))
    (tmp_path / "mine.py").write_text(CLASSIFIER)
    return pixels


def test_measure_a_data_set_by_name(teeter, digits):
    words = ("measure", "mine:model", "mnist:test", "--perturb", "patch:4", "--budget", "600", "--json")
    code, out, err = teeter(*words, "--mean", "0.13", "--std", "0.31", "--arithmetic", "bf16", "--design", "adaptive")
    facts = json.loads(out)
    assert code == 0, err
    assert facts["inputs"] == 300
    assert facts["arithmetic"] == "bf16"
    assert facts["effect"]["low"] < facts["effect"]["value"] + 1e-9
    assert facts["design"] == "adaptive"
    loaded = load("mine:model", "mnist", limit=20, mean=(0.13,), std=(0.31,))
    assert loaded.inputs.shape == (20, 1, 28, 28)
    assert float(loaded.inputs.min()) == pytest.approx(-0.13 / 0.31)
    assert float(load("mine:model", "mnist").inputs.max()) == 1.0
    code, out, _ = teeter(*words[:-1], "--arithmetic", "bf16")
    assert "bf16 adds" in out


def test_measure_a_model_of_the_zoo(teeter, digits, tmp_path):
    words = ("measure", "cnn", "mnist:test", "--perturb", "patch:4", "--budget", "200", "--json")
    code, out, err = teeter(*words)
    assert code == 0, err
    random = json.loads(out)
    save_file(load_model("cnn", seed=5).state_dict(), tmp_path / "cnn.safetensors")
    filled = json.loads(teeter(*words, "--weights", "cnn.safetensors")[1])
    assert filled["low"] <= filled["value"] <= filled["high"]
    assert filled["value"] != random["value"] or filled["high"] != random["high"]
    assert (random["weights"], random["notes"]) == (None, ["cnn is untrained: its weights are random"])
    assert (filled["weights"], filled["notes"]) == ("cnn.safetensors", [])
    few = json.loads(teeter(*words, "--set", "classes=2")[1])
    assert few["value"] != random["value"]
    for wrong, message in (("classes", "a size is set as name=value"), ("kind=2", "no option of cnn named 'kind'")):
        code, _, err = teeter(*words, "--set", wrong)
        assert code == 2
        assert message in err
    code, _, err = teeter(*words, "--weights", "none.safetensors")
    assert (code, err.strip()) == (2, "teeter: there is no file 'none.safetensors'")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mnist", "--mean", "0.1,0.1,0.1", "--std", "1,1,1"), "needs as many channels"),
        (("mnist:validation",), "no split named 'validation'"),
        (("cifar",), "a data set (cifar10, digits, fashion-mnist, imagenet, mnist, mnist-below-5, svhn), got 'cifar'"),
        (("mnist", "--arithmetic", "tf32"), "tf32 is arithmetic of NVIDIA GPUs"),
    ],
)
def test_data_sets_that_are_not_to_be_had(teeter, digits, words, message):
    code, _, err = teeter("measure", "mine:model", words[0], "--perturb", "patch:4", *words[1:])
    assert code == 2
    assert message in " ".join(err.split())
