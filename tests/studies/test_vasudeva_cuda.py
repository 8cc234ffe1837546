"""Studies of V on a GPU, compiled, recorded and in few bits as their paper tiers are, with few steps: that every model
runs there, to the last row. With `pytest -s` it prints what a step costs, a row of measurements, and the compiler.

All of it is to take about three minutes of an H200, and kinds come in the order of what is least known: once the
seconds that TEETER_CUDA_SECONDS names (180) are over, what is left is skipped.

No file is needed. Images and texts are read where they are (TEETER_DATA, or what was fetched before); of CIFAR-10 the
first of the five batches will do. In the place of what is not there stands Fashion-MNIST in a frame, or noise.
"""

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from teeter import data
from teeter.data import LabelledImages, packages
from teeter.data.encoding import PADDING, START
from teeter.data.packages import FetchFailed
from teeter.errors import TeeterError
from teeter.studies.vasudeva2025 import (
    adding,
    cifar10,
    depth_heads,
    dropout,
    early_warning,
    enlarged,
    fashion,
    imagenet,
    language,
    looks,
    mnist,
    optimizer,
    reading,
    regularisers,
    robustness,
    settings,
    sparse_parity,
    vision,
)
from teeter.train import Recipe, shuffled
from teeter.train.state import weights_of

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore"),  # of the compiler's own parts
]

SECONDS = float(os.environ.get("TEETER_CUDA_SECONDS", "180"))
BEGAN: list[float] = []
STEPS = 40  # in an epoch of the cut runs, which have two
TESTED = 100  # test images, each of which is corrupted in thirty ways on the CPU
VOCABULARY = 12_000  # where there are no texts


@pytest.fixture(autouse=True)
def in_time(monkeypatch):
    """Without a wait for what cannot be fetched here, either."""

    def refused(package, work):
        raise FetchFailed(f"{package} is not here")

    monkeypatch.setattr(packages, "_fill", refused)
    BEGAN[:] = BEGAN or [time.perf_counter()]
    if time.perf_counter() - BEGAN[0] > SECONDS:
        pytest.skip(f"the {SECONDS:g} seconds of TEETER_CUDA_SECONDS are over")
    yield
    torch.cuda.empty_cache()


class Clock:
    """In the place of a study's bar: when which step began. The device is waited for at a few of them alone."""

    def __init__(self):
        self.times = {}

    @contextmanager
    def __call__(self):
        def shown(step, steps, row):
            if step in (0, 1, STEPS - 1, STEPS, STEPS + 1, 2 * STEPS - 1):
                torch.cuda.synchronize()
                self.times[step] = time.perf_counter()

        yield shown

    def tell(self, name, steps, rows=None):
        """Of a run of two epochs: what its paper tier would take of these steps and rows."""
        at = self.times
        first, row = at[1] - at[0], at[STEPS] - at[STEPS - 1]
        step = (at[2 * STEPS - 1] - at[STEPS + 1]) / (STEPS - 2)
        whole = first + steps * step + (rows or 0) * row
        rest = f", {rows} rows of {row:.2f} s" if rows else ""
        print(
            f"\n{name}: {1e3 * step:.3f} ms a step, {steps} steps{rest}, first step {first:.1f} s: {whole:.0f} s a run"
        )


def complete(rows):
    numbers = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert len(numbers) >= 1
    assert all(np.isfinite(value) for value in numbers)


def here(root, read, name, split):
    """What is there of a data set."""
    folder = next((each for each in (root, root / "cifar10", root / "CIFAR10") if _first(each).is_file()), None)
    if name.startswith("cifar10") and split == "train" and folder is not None:
        records = torch.from_numpy(np.fromfile(_first(folder), np.uint8)).view(-1, 3073)
        return LabelledImages(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long(), data.CIFAR10_CLASSES)
    try:
        return read(name, split)
    except TeeterError:
        pass
    try:
        images = read("fashion-mnist", split)
    except TeeterError:
        noise = torch.randint(256, (6000, 1, 28, 28), generator=torch.Generator().manual_seed(0)).byte()
        images = LabelledImages(noise, torch.arange(6000) % 10, ("",) * 10)
    if name == "mnist":
        return LabelledImages(images.images, images.labels % 2, ("", ""))
    return images if name == "fashion-mnist" else regularisers.framed(images)


def _first(folder):
    return folder / "cifar-10-batches-bin" / "data_batch_1.bin"


@pytest.fixture
def cut(monkeypatch):
    """Few images to train on, in V's batches, and to test; all that is measured on training images is as ever."""
    root, read = Path(os.environ.get("TEETER_DATA") or "nowhere"), settings.read

    def some(name, split):
        images = here(root, read, name, split)
        return images.take(torch.arange(STEPS * settings.SETTINGS[name].batch if split == "train" else TESTED))

    def known(corruption, severity, test, **more):
        """As they are where the photographs of frost are not."""
        try:
            return made(corruption, severity, test, **more)
        except TeeterError:
            return test

    made = data.cifar10_c
    monkeypatch.setattr(vision, "read", some)
    monkeypatch.setattr(data, "cifar10_c", known)
    monkeypatch.setattr(looks, "NUDGED", 200)


def kind(spec):
    return " ".join(str(x) for x in (spec.data, spec.model, spec.optimizer, spec.training, spec.layers, spec.heads))


# By what is least known; what shares its program with another comes last.
ORDER = ("sgd penalty", "efficientnet", "densenet", "convmixer", "224 vit-simple", "fashion-mnist vit", "cnn", "leaky")
ORDER += ("mlp-mnist", "vit-small-mnist", "resnet18", "vit-simple sgd", "vit-small adam", "vit-small sgd  0 0")
IMAGES = (mnist, fashion, cifar10, optimizer, depth_heads, dropout, robustness)
TRAINED = [spec for study in IMAGES for spec in study.PAPER]
TRAINED += [spec for spec in enlarged.PAPER if not spec.training]
SEEN = {kind(spec): spec for spec in reversed(TRAINED)}
NAMES = sorted(sorted(SEEN), key=lambda name: next((i for i, part in enumerate(ORDER) if part in name), len(ORDER)))
REGULARISED = {spec.method: spec for spec in regularisers.PAPER if spec.method in ("penalty", "noise")}
READ = {  # long texts, of short ones the deepest, and what is trained in part
    f"{spec.data} {spec.model} {spec.variant} {spec.layers}": spec
    for spec in language.PAPER
    if (spec.length == 128) == (spec.variant == "text") or spec.layers == 12
}
OFTEN = {25_000: 100, 100_000: 100, 200_000: 100}  # rows of the runs of that many steps


@pytest.mark.parametrize("variant", adding.VARIANTS)
def test_adding(variant, monkeypatch, tmp_path):
    clock = Clock()
    monkeypatch.setattr(adding, "bar", clock)
    monkeypatch.setattr(adding, "marks", lambda epochs: [0, STEPS, 2 * STEPS])
    specs = [spec for spec in early_warning.PAPER if spec.variant == variant]
    for rows in adding.run_all([replace(spec, epochs=2 * STEPS) for spec in specs], tmp_path):
        assert [row["epoch"] for row in rows] == [0, STEPS, 2 * STEPS]
        complete(rows)
    clock.tell(f"adding, {variant}, {len(specs)} at once", specs[0].epochs, OFTEN[specs[0].epochs])


GROUPS = {}
for each in sparse_parity.PAPER:
    name = f"{each.samples} {each.batch} {each.dim} {sparse_parity.read_at(each)}"
    GROUPS.setdefault(name, []).append(each)


@pytest.mark.parametrize("name", GROUPS)
def test_sparse_parity(name, monkeypatch, tmp_path):
    clock, specs = Clock(), GROUPS[name]
    last = sparse_parity.marks(specs[0])[-1]
    monkeypatch.setattr(sparse_parity, "bar", clock)
    monkeypatch.setattr(sparse_parity, "marks", lambda spec: [0, STEPS, 2 * STEPS])
    for rows in sparse_parity.run_all(specs, tmp_path):
        assert [row["step"] for row in rows] == [0, STEPS, 2 * STEPS]
        complete(rows)
    clock.tell(f"sparse parity, {name}, {len(specs)} at once", last, OFTEN[last])


def noise_of_texts(data, pairs, length):
    """Texts of as many tokens as there are at most, of which the first begins with <s> and is half padding."""
    tokens = torch.randint(5, VOCABULARY, (2500, length), generator=torch.Generator().manual_seed(0))
    tokens[:, 0] = START
    tokens[::2, length // 2 :] = PADDING
    labels = (tokens[:, 1] > VOCABULARY // 2).long()
    return reading.Texts((tokens, labels), (tokens[:1000], labels[:1000]), VOCABULARY)


@pytest.mark.parametrize("name", READ)
def test_language(name, monkeypatch, tmp_path):
    clock, spec = Clock(), READ[name]
    try:
        reading.texts_of(spec.data, spec.pairs, spec.length)
    except TeeterError:
        monkeypatch.setattr(reading, "texts_of", noise_of_texts)
    rows = len(reading.looks_at(spec.steps))
    monkeypatch.setattr(reading, "bar", clock)
    monkeypatch.setattr(reading, "looks_at", lambda steps: [0, STEPS, 2 * STEPS])
    monkeypatch.setattr(reading, "_MAPPED", 64)  # few texts are mapped token by token
    (found,) = language.run_together([replace(spec, steps=2 * STEPS)], tmp_path)
    assert {row["step"] for row in found} == {0, STEPS, 2 * STEPS}
    assert all(row["finished"] for row in found)
    complete(found)
    clock.tell(f"language, {name}", spec.steps, rows)


@pytest.mark.parametrize("model", ["text-lstm", "roberta"])
def test_texts_are_resumed_to_the_bit(model, tmp_path):
    """Killed between two checkpoints: dropout goes on where the last one left it."""
    spec = reading.Reading("mrpc", model, seed=0, layers=2, dim=32, length=16)
    tokens, labels = (each.cuda() for each in noise_of_texts("mrpc", 320, 16).train)

    def killed(step, steps, row):
        if step == 25:
            raise RuntimeError("killed")

    def made(folder=None, progress=None):
        torch.manual_seed(1)  # a resumed run takes up its own state all the same
        recipe = Recipe(40, 32, rate=1e-3, loss="cross-entropy")
        stream = shuffled(tokens, labels, 32, 0)
        how = {"seed": 0, "keep": 10, "every": 20, "folder": folder, "progress": progress}
        return reading._trained(reading.model_of(spec, VOCABULARY).cuda(), stream, recipe, **how)

    whole = made()
    with pytest.raises(RuntimeError, match="killed"):
        made(tmp_path, killed)
    rest = made(tmp_path)
    assert rest.rows == whole.rows
    ours, theirs = (weights_of(each.model) for each in (rest, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("name", REGULARISED)
def test_regularisers(name, monkeypatch, cut):
    clock, spec = Clock(), REGULARISED[name]
    steps = spec.epochs * (spec.images // spec.batch)
    monkeypatch.setattr(regularisers, "bar", clock)
    monkeypatch.setattr(
        regularisers,
        "_images",
        lambda name, split, limit: vision.read(name, split).take(torch.arange(limit)),
    )
    regularisers._corrupted.cache_clear()
    rows = regularisers.run(replace(spec, epochs=2, images=STEPS * spec.batch, tests=TESTED))
    regularisers._corrupted.cache_clear()  # not the images of whoever comes next
    assert {row["about"] for row in rows} == {"epoch", "weights", "corruption"}
    complete(rows)
    clock.tell(f"regularisers, {name}", steps, 3)


@pytest.mark.parametrize("name", ["mnist vit-small-mnist", "cifar10 vit-simple", "cifar10 convmixer"])
def test_a_compiled_run_resumes(name, monkeypatch, tmp_path, cut):
    """On a GPU too: what was interrupted gives the rows of one that was not. The three attend with a mask and without
    one, by other kernels, and convolve each channel by itself."""

    @contextmanager
    def interrupting():
        def shown(step, steps, row):
            if step == STEPS + 2:
                raise KeyboardInterrupt

        yield shown

    spec = replace(SEEN[f"{name} sgd  0 0"], epochs=2)
    whole = vision.sees(spec, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(vision, "bar", interrupting)
        with pytest.raises(KeyboardInterrupt):
            vision.sees(spec, tmp_path / "part")
    assert vision.sees(spec, tmp_path / "part") == whole


def test_a_pretrained_model(cut):
    try:
        imagenet.efficientnet_lite0()
    except TeeterError as problem:
        pytest.skip(str(problem))
    begin = time.perf_counter()
    (spec,) = [spec for spec in enlarged.PAPER if spec.training]
    complete(imagenet.run(spec))
    torch.cuda.synchronize()
    print(f"\nimages, {kind(spec)}, {STEPS * 100} images: {time.perf_counter() - begin:.1f} s")


@pytest.mark.parametrize("name", NAMES)
def test_images(name, monkeypatch, tmp_path, cut):
    clock, spec = Clock(), SEEN[name]
    images = spec.images or {"mnist": 60_000, "fashion-mnist": 60_000}.get(spec.data, 50_000)
    epoch = images // vision.batch_of(spec)
    monkeypatch.setattr(vision, "bar", clock)
    rows = vision.sees(replace(spec, epochs=2), tmp_path)
    assert [row["epoch"] for row in rows if row["about"] == "epoch"] == [0, 1, 2]
    assert [row["fate"] for row in rows if row["about"] == "fate"] == ["done"]
    of_cifar10 = {"weights", "corruption"} if spec.data == "cifar10" else set()
    assert {row["about"] for row in rows} == {"epoch", "fate", "noise", *of_cifar10}
    complete(rows)
    clock.tell(f"images, {name}", spec.epochs * epoch, len(vision.marks(spec.epochs)))
