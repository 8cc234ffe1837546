import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from transformers import ViTImageProcessorPil

from teeter import cube, perturb
from teeter.data import subset
from teeter.errors import InputError, UnknownName
from teeter.integrations import Keywords, load, load_inputs, load_model
from tests import tiny


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "zoo_of_one.py").write_text(
        "import torch\n"
        "net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())\n"
        "def factory(width=2):\n    return torch.nn.Linear(3, width)\n"
        "def function(x):\n    return x.sum(-1)\n"
        "number = 7\n"
        "def broken():\n    raise KeyError('weights')\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_models_by_name(here):
    net = load_model("zoo_of_one:net")
    assert isinstance(net, nn.Module)
    assert not net.training
    assert isinstance(load_model("zoo_of_one:factory"), nn.Linear)
    assert load_model("zoo_of_one:function")(torch.ones(2, 3)).tolist() == [3, 3]
    assert load_model("teeter.cube:parity") is cube.parity


def test_models_of_the_zoo_by_name(tmp_path):
    before = torch.get_rng_state()
    first, again, other = load_model("cnn"), load_model("cnn"), load_model("cnn", seed=1)
    assert torch.equal(torch.get_rng_state(), before)  # nobody else's random numbers are touched
    assert not first.training
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(first(images), again(images))
    assert not torch.equal(first(images), other(images))
    save_file(other.state_dict(), tmp_path / "cnn.safetensors")
    assert torch.equal(load_model("cnn", tmp_path / "cnn.safetensors")(images), other(images))
    with pytest.raises(InputError, match="does not fit the"):
        load_model("mlp-sigmoid", tmp_path / "cnn.safetensors")
    with pytest.raises(InputError, match="has no weights to fill"):
        load_model("teeter.cube:parity", tmp_path / "cnn.safetensors")


def test_a_model_of_the_zoo_seeds_no_gpu(monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    load_model("encoder", options={"length": 5, "dim": 8})
    assert seeded == []


def test_sizes_of_a_model_of_the_zoo(tmp_path):
    small = load_model("encoder", options={"length": 5, "dim": 8, "norm": "pre"}, seed=3)
    assert small(cube.points(5)).shape == (32,)
    save_file(small.state_dict(), tmp_path / "small.safetensors")
    again = load_model("encoder", tmp_path / "small.safetensors", {"length": 5, "dim": 8, "norm": "pre"})
    assert torch.equal(again(cube.points(5)), small(cube.points(5)))
    with pytest.raises(UnknownName, match="no option of encoder named 'lenght': did you mean 'length'"):
        load_model("encoder", options={"lenght": 5})
    with pytest.raises(InputError, match="options are for models of the zoo"):
        load_model("teeter.cube:parity", options={"n": 5})


def test_weights_fit_the_model_inside_an_adapter(tmp_path):
    tiny.save(tiny.text_classifier(), tmp_path / "one")
    other = tiny.text_classifier()
    for part in other.parameters():
        part.data += 1
    tiny.save(other, tmp_path / "other")
    loaded = load_model(str(tmp_path / "one"), tmp_path / "other" / "model.safetensors")
    assert isinstance(loaded, Keywords)
    assert all(torch.equal(a, b) for a, b in zip(loaded.model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zoo_of_one", "written 'module:name'"),
        ("no_such_module:x", "cannot import the module 'no_such_module'"),
        ("zoo_of_one:nothing", "has no 'nothing'"),
        ("zoo_of_one:number", "is no model: it is int"),
        ("zoo_of_one:broken", "the factory 'zoo_of_one:broken' failed: KeyError: 'weights'"),
    ],
)
def test_models_that_are_none(here, name, message):
    with pytest.raises(InputError, match=message):
        load_model(name)


def test_inputs(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    one = load_inputs(tmp_path / "a.npy")
    assert isinstance(one, torch.Tensor)
    assert one.dtype == torch.float32
    np.savez(
        tmp_path / "b.npz", input_ids=np.ones((4, 3), dtype=np.int64), attention_mask=np.ones((4, 3), dtype=np.int64)
    )
    both = load_inputs(tmp_path / "b.npz")
    assert set(both) == {"input_ids", "attention_mask"}
    np.savez(tmp_path / "c.npz", x=np.ones((4, 3), dtype=np.float32))
    assert isinstance(load_inputs(tmp_path / "c.npz"), torch.Tensor)


def test_inputs_that_are_none(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "broken.npz").write_bytes(b"PK not a zip")
    np.savez(tmp_path / "empty.npz")
    np.save(tmp_path / "array.npy", np.ones(3))
    (tmp_path / "array.npy").rename(tmp_path / "renamed.npz")
    for name, message in (
        ("trap.npy", "cannot read"),
        ("broken.npz", "cannot read"),
        ("renamed.npz", "cannot read"),
        ("empty.npz", "holds no array"),
        ("absent.npy", "there is no file"),
        ("data.csv", "there is no file"),
        ("data.txt", ".npz, .npy or .csv file, a folder of images or a data set"),
    ):
        with pytest.raises(InputError, match=message):
            load_inputs(tmp_path / name)
    assert not (tmp_path / "sprung").exists()  # nothing in a data file is run


def test_perturbations_by_name():
    assert perturb.by_name("bit") == perturb.BitFlip()
    assert perturb.by_name("bit01") == perturb.BitFlip(values=(0, 1))
    assert perturb.by_name("token:9", skip=(1,)) == perturb.TokenReplace(9, (1,))
    assert perturb.by_name("patch:4", 2.0, True) == perturb.PatchNoise(4, 2.0, True)
    assert perturb.by_name("patch-replace:2") == perturb.PatchReplace(2)
    assert perturb.by_name("input", 3.0) == perturb.InputNoise(3.0)
    assert perturb.by_name("embedding") == perturb.EmbeddingNoise()
    assert perturb.by_name("embedding:word") == perturb.EmbeddingNoise("word")
    assert perturb.by_name("hidden:mix", 2.0) == perturb.HiddenNoise("mix", 2.0)
    assert perturb.by_name("weights", 0.1) == perturb.WeightNoise(0.1)
    assert perturb.by_name("token", vocabulary=7) == perturb.TokenReplace(7)
    with pytest.raises(InputError, match="write token:VOCABULARY"):
        perturb.by_name("token")
    for text, message in (("patch", "written 'patch:SIZE'"), ("bit:3", "written 'bit'"), ("patch:x", "a whole number")):
        with pytest.raises(InputError, match=message):
            perturb.by_name(text)
    with pytest.raises(UnknownName, match="did you mean 'patch'"):
        perturb.by_name("pach:4")


@pytest.fixture
def reviews(tmp_path):
    """A text classifier with its tokenizer, and texts for it."""
    tiny.save(tiny.text_classifier(), tmp_path / "model")
    tiny.tokenizer(tmp_path / "model")
    rows = [f"{' '.join(tiny.WORDS[4 + (i + j) % 9] for j in range(1 + i % 5))},{i % 2}" for i in range(30)]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,label", *rows]))
    return tmp_path


def test_a_model_directory_with_texts(reviews):
    loaded = load(str(reviews / "model"), reviews / "reviews.csv", text_column="review")
    assert isinstance(loaded.model, Keywords)
    assert loaded.inputs["input_ids"].shape == (30, 7)
    assert loaded.skip == (0, 2, 3)
    assert loaded.vocabulary == len(tiny.WORDS)
    assert loaded.model(loaded.inputs).shape == (30, 2)
    short = load(str(reviews / "model"), reviews / "reviews.csv", text_column="review", max_length=4, limit=10)
    assert short.inputs["input_ids"].shape == (10, 4)
    for name in ("empty.csv", "long.csv"):
        words = "good " * 50 if name == "long.csv" else ""
        (reviews / name).write_text(f"text\n{words}\nbad\n")
    assert load(str(reviews / "model"), reviews / "long.csv").inputs["input_ids"].shape == (2, 32)  # its positions
    np.savez(reviews / "ids.npz", **{name: part.numpy() for name, part in loaded.inputs.items()})
    again = load(str(reviews / "model"), reviews / "ids.npz")
    assert again.skip == loaded.skip  # token numbers are texts too
    assert torch.equal(again.model(again.inputs), loaded.model(loaded.inputs))


def test_a_model_by_name_with_texts(reviews, monkeypatch):
    (reviews / "reader_of_mine.py").write_text(
        "from tests import tiny\n"
        "def bare():\n    return tiny.text_classifier()\n"
        "def knowing():\n    model = tiny.text_classifier()\n    model.tokenizer = tiny.tokenizer()\n    return model\n"
    )
    monkeypatch.chdir(reviews)
    assert isinstance(load_model("reader_of_mine:bare"), Keywords)
    with pytest.raises(InputError, match="texts need a tokenizer"):
        load("reader_of_mine:bare", "reviews.csv", text_column="review")
    given = load("reader_of_mine:bare", "reviews.csv", text_column="review", tokenizer="model")
    assert given.skip == (0, 2, 3)
    assert load("reader_of_mine:knowing", "reviews.csv", text_column="review").skip == (0, 2, 3)


@pytest.fixture
def photographs(tmp_path):
    (tmp_path / "photos").mkdir()
    for i in range(6):
        pixels = np.random.default_rng(i).integers(0, 256, (20, 24 + i, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path


def test_a_model_directory_with_images(photographs):
    tiny.save(tiny.image_classifier(), photographs / "vit")
    model, photos = str(photographs / "vit"), photographs / "photos"
    with pytest.raises(InputError, match="differ in size"):
        load(model, photos)
    ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(photographs / "vit")
    loaded = load(model, photos)
    assert loaded.inputs.shape == (6, 3, 16, 16)
    assert loaded.model(loaded.inputs).shape == (6, 3)
    assert (loaded.skip, loaded.vocabulary, loaded.tokenizer) == ((), None, None)
    assert float(loaded.inputs.min()) < -0.5
    assert load(model, photos, mean=(0.0,) * 3, std=(1.0,) * 3).inputs.min() >= 0
    assert load(model, photos, image_size=8).inputs.shape == (6, 3, 8, 8)
    (photographs / "vit" / "preprocessor_config.json").write_text('{"image_processor_type": "LevitImageProcessor"}')
    assert load(model, photos, image_size=8, mean=(0.5,), std=(0.5,)).inputs.shape == (6, 1, 8, 8)
    with pytest.raises(InputError, match="Levit"):
        load(model, photos)
    with pytest.raises(InputError, match="mean and std go together"):
        load(model, photos, mean=(0.5,))


def test_data_sets_by_name(photographs, monkeypatch):
    monkeypatch.setenv("TEETER_DATA", str(photographs))
    monkeypatch.chdir(photographs)
    assert load("torch.nn:Flatten", "digits").inputs.shape == (1437, 1, 8, 8)
    some = load("torch.nn:Flatten", "digits:test", limit=7, seed=1).inputs
    assert torch.equal(some, load("torch.nn:Flatten", "digits:test").inputs[subset(360, 7, 1)])
    with pytest.raises(InputError, match="SVHN is in no package registry: put test_32x32.mat into"):
        load("torch.nn:Flatten", "svhn:test")
    with pytest.raises(InputError, match="ImageNet is in no package registry"):
        load("torch.nn:Flatten", "imagenet")
    (photographs / "imagenet" / "val").mkdir(parents=True)
    (photographs / "photos").rename(photographs / "imagenet" / "val" / "n01440764")
    pictures = load("torch.nn:Flatten", "imagenet:val", image_size=8, limit=4).inputs
    assert pictures.shape == (4, 3, 8, 8)
    assert torch.equal(pictures, load("torch.nn:Flatten", "imagenet/val", image_size=8, limit=4).inputs)


def test_a_model_that_knows_its_image_format(photographs, monkeypatch):
    (photographs / "sees_squares.py").write_text(
        "import torch\n"
        "from teeter.integrations import ImageFormat\n"
        "net = torch.nn.Flatten()\n"
        "net.image_format = ImageFormat().sized(4)\n"
    )
    monkeypatch.chdir(photographs)
    assert load("sees_squares:net", "photos").inputs.shape == (6, 3, 4, 4)


def test_limits_are_random_and_repeatable(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100))
    some = load_inputs(tmp_path / "a.npy", limit=20)
    assert torch.equal(some, load_inputs(tmp_path / "a.npy", limit=20))
    assert len(some.unique()) == 20
    assert some.tolist() == sorted(some.tolist()) != list(range(20))
    assert not torch.equal(some, load_inputs(tmp_path / "a.npy", limit=20, seed=1))
    assert len(load_inputs(tmp_path / "a.npy", limit=200)) == 100
    with pytest.raises(InputError, match="limit is at least 1"):
        load_inputs(tmp_path / "a.npy", limit=0)


def test_devices(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.ones((4, 3)), b=np.ones((4, 3)))
    assert set(load("torch.nn:Flatten", tmp_path / "a.npz", device="cpu").inputs) == {"a", "b"}
    for name in ("nonsense", "cuda:99"):
        with pytest.raises(InputError, match=f"there is no device '{name}' here"):
            load("torch.nn:Flatten", tmp_path / "a.npz", device=name)
