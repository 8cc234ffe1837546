"""What V's studies of images share: a run and its rows, and the tables that claims read."""

import signal
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pandas as pd
import pytest
import torch
from torch import nn

from teeter.data import LabelledImages
from teeter.errors import InputError, UnknownName
from teeter.models.vit_small import LocalityAttention
from teeter.perturb import Noise, PatchNoise
from teeter.studies.vasudeva2025 import looks, settings, vision
from teeter.studies.vasudeva2025.scattered import ScatteredNoise
from teeter.studies.vasudeva2025.vision import Seen
from teeter.train import SensitivityPenalty, train
from teeter.train.recipe import rate_at

QUICK = Seen("digits", "vit-small", 0, 0.1, epochs=2, images=120)
CPU = torch.device("cpu")


def epochs(run, accuracies, **more):
    own = dict(run=run, data="digits", about="epoch", frequent=0.1, **more)
    return [dict(own, epoch=i, step=10 * i, train_accuracy=a, sensitivity=0.1 * i) for i, a in enumerate(accuracies)]


def test_runs_are_matched_where_the_least_accurate_one_ends():
    table = pd.DataFrame([*epochs("slow", [0.1, 0.5, 0.8]), *epochs("fast", [0.1, 0.9, 0.77, 1.0])])
    table = pd.concat([table, pd.DataFrame([dict(run="fast", data="digits", about="noise", sensitivity=9.0)])])
    found = vision.matched(table.iloc[::-1]).set_index("run")
    assert found["epoch"].to_dict() == {"slow": 2, "fast": 2}
    assert found["train_accuracy"].to_dict() == {"slow": 0.8, "fast": 0.77}
    assert set(found["level"]) == {0.8}
    peak = vision.matched(pd.DataFrame([*epochs("a", [0.2, 0.9, 0.6]), *epochs("b", [0.94])]))
    assert peak.set_index("run")["epoch"].to_dict() == {"a": 1, "b": 0}  # its best, not its last


def test_what_cannot_be_compared_at_equal_accuracy_is_not():
    """One that learns nothing does not take the level down to its own, and one that is never near it has no row."""
    runs = [*epochs("slow", [0.1, 0.5, 0.8]), *epochs("stuck", [0.1, 0.14, 0.1]), *epochs("jumps", [0.1, 0.86, 1.0])]
    found = vision.matched(pd.DataFrame(runs))
    assert found["run"].tolist() == ["slow"] and found["level"].tolist() == [0.8]
    assert vision.matched(pd.DataFrame(epochs("stuck", [0.1, 0.14]))).empty


def test_ends_finals_and_filters():
    rows = [*epochs("a", [0.1, 0.5, 0.8]), *epochs("b", [0.3, 0.2])]
    noise = dict(run="a", about="noise", noise="patch")
    rows += [dict(noise, data="fashion-mnist", sigma2=s, sensitivity=s / 10) for s in (1.0, 5.0)]
    rows += [dict(noise, data="cifar10", sigma2=s, sensitivity=s / 20) for s in (1.0, 5.0)]
    rows += [dict(noise, data="cifar10", noise="whole", sigma2=1.0, sensitivity=9.0)]
    rows += [dict(noise, data="fashion-mnist", noise="scattered", sigma2=25.0, sensitivity=0.7)]
    table = pd.DataFrame(rows)
    assert vision.ends(table).set_index("run")["train_accuracy"].to_dict() == {"a": 0.8, "b": 0.2}
    assert vision.finals(table).set_index("data")["sensitivity"].to_dict() == {"fashion-mnist": 0.5, "cifar10": 0.05}
    assert vision.finals(table, "scattered")["sensitivity"].tolist() == [0.7]
    assert vision.has(table, "cifar10") and not vision.has(table, "svhn")
    assert len(vision.of(table, run="a", about="noise", sigma2=1.0)) == 3


def test_marks():
    assert vision.marks(1) == [0, 1]
    assert vision.marks(15) == list(range(16))
    assert vision.marks(40) == [*range(11), *range(14, 39, 4), 40]
    assert vision.marks(30) == [*range(11), *range(13, 29, 3), 30]


def test_pixels_are_between_minus_one_and_one():
    images = LabelledImages(
        torch.tensor([0, 51, 255, 255], dtype=torch.uint8).view(1, 1, 2, 2), torch.tensor([3]), ("",) * 4
    )
    x, labels = settings.scaled(images, CPU)
    assert torch.allclose(x.flatten(), torch.tensor([-1.0, -0.6, 1.0, 1.0]))
    assert labels.tolist() == [3]


def test_models_depend_on_the_seed_alone_and_have_the_shape_asked_for():
    one, same, other = (vision.model_of(Seen("digits", "vit-small", seed, 0.1, 1)) for seed in (0, 0, 1))
    pairs = list(zip(one.parameters(), same.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not all(torch.equal(a, c) for a, _, c in pairs)
    sizes = {
        shape: sum(
            p.numel() for p in vision.model_of(Seen("cifar10", "vit-small", 0, 0.1, 1, **dict(shape))).parameters()
        )
        for shape in ((), (("layers", 4),), (("heads", 8),))
    }
    whole, half, narrow = sizes.values()
    assert whole == 4_482_482  # 8 layers of 32 heads
    assert whole - half == 4 * (4 * 64 * 32 * 64 + 64 + 2 * 64 * 256 + 64 + 256 + 4 * 64 + 1)  # a temperature a layer
    assert whole - narrow == 8 * 4 * 64 * 24 * 64
    with pytest.raises(UnknownName, match="no model named 'vit-smal': did you mean 'vit-small'"):
        vision.model_of(Seen("digits", "vit-smal", 0, 0.1, 1))
    with pytest.raises(UnknownName, match="no training named 'penalti': did you mean 'penalty'"):
        vision.run(Seen("digits", "vit-small", 0, 0.1, 1, training="penalti", images=60))


def test_settings_of_appendix_d():
    found = {name: (each.batch, each.patch, each.sigma2) for name, each in settings.SETTINGS.items()}
    assert found["mnist"][:2] == (50, 7)
    assert found["fashion-mnist"] == (100, 4, 5.0)
    assert found["cifar10"] == found["svhn"] == (100, 4, 1.0)
    assert (vision.PENALTY, looks.RHOS[0], looks.DRAWS) == (0.25, 0.005, 5)
    assert vision.batch_of(Seen("mnist", "mlp-mnist", 0, 0.01, 30)) == 50
    assert vision.batch_of(Seen("mnist", "mlp-mnist", 0, 0.01, 30, images=3000)) == 10
    adam = vision._recipe(Seen("cifar10", "vit-small", 0, 0.002, 50, optimizer="adam"), 500, CPU)
    assert [rate_at(adam, epoch * 500) for epoch in (0, 7, 8, 16)] == [0.002, 0.002, 0.001, 0.0005]
    sgd = vision._recipe(Seen("cifar10", "vit-small", 0, 0.1, 50), 500, CPU)
    assert (sgd.optimizer, sgd.batch, sgd.weight_decay, rate_at(sgd, 24_999)) == ("sgd", 100, 0.0, 0.1)


def test_the_released_penalty_is_the_mixed_loss():
    """A step with it is a step of plain SGD on (1 - p) loss + p distance."""
    spec = Seen("digits", "mlp-leaky-relu", 0, 0.16, epochs=1, training="penalty as released")
    x, y = torch.randn(20, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 10
    ours, theirs = vision.model_of(spec), vision.model_of(spec)
    penalty = vision._penalty(spec)
    train(ours, lambda step: (x, y), vision._recipe(spec, 1, CPU), penalty=penalty)
    outputs = theirs(x)
    mixing = SensitivityPenalty(PatchNoise(4, 1.0), 0.25, seed=0)
    mixing.mixed(nn.functional.cross_entropy(outputs, y), theirs, x, outputs).backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert b.grad is not None and b.grad.abs().max() > 0
        assert torch.allclose(a, b - 0.16 * b.grad, atol=1e-6)
    assert vision._penalty(Seen("digits", "cnn", 0, 0.1, 1)) is None
    plain = vision._penalty(Seen("cifar10", "vit-small", 0, 0.16, 1, training="penalty"))
    assert plain is not None and plain.strength == 0.25


def test_rows_of_a_run_and_the_same_again():
    rows = vision.run(QUICK)
    whole, meanwhile = rows, [row for row in rows if row["about"] == "meanwhile"]
    rows = [row for row in rows if row["about"] != "meanwhile"]
    kinds = [row["about"] for row in rows]
    assert [kinds.count(each) for each in ("epoch", "fate", "noise", "weights", "corruption")] == [3, 1, 9, 2, 0]
    assert [row["epoch"] for row in rows[:3]] == [0, 1, 2]
    assert rows[2]["step"] == 2 * 120 // 4  # few images, small batches
    for row in rows[:3]:
        assert row["sensitivity_low"] <= row["sensitivity"] <= row["sensitivity_high"]
        assert {"train_accuracy", "train_loss", "test_accuracy", "test_loss"} <= set(row)
    assert rows[2]["train_loss"] < rows[0]["train_loss"]
    assert rows[3] == {"about": "fate", "fate": "done"}
    noises = [(row["noise"], row["sigma2"]) for row in rows[4:13]]
    assert noises == [
        *(("patch", v) for v in (0.25, 0.5, 1, 2, 4, 8)),
        ("scattered", 1.0),
        ("whole", 0.025),
        ("whole", 0.025**2),
    ]
    assert [row["rho"] for row in rows[-2:]] == [0.005, 0.05]
    assert rows[-1]["shop"] > rows[-2]["shop"] > 0 and 1 >= rows[-1]["shpred"] >= rows[-2]["shpred"] >= 0
    assert rows[0]["frequent"] == pytest.approx(0.1, abs=0.05)
    assert vision.run(QUICK) == whole
    assert whole[3:27] == meanwhile  # eight at each of three epochs
    ends = {(row["noise"], row["sigma2"]): row["sensitivity"] for row in rows[4:13]}
    last = {(row["noise"], row["sigma2"]): row["sensitivity"] for row in meanwhile if row["epoch"] == 2}
    assert ends == last | {("patch", 1.0): ends["patch", 1.0]}  # the same images, nudged alike
    assert not any(row["about"] == "meanwhile" for row in vision.run(replace(QUICK, training="noise")))


def test_other_noise_at_equal_accuracy():
    rows = [*epochs("slow", [0.1, 0.5, 0.8]), *epochs("fast", [0.1, 0.9, 0.77, 1.0]), *epochs("stuck", [0.1, 0.1])]
    rows += [
        dict(row, about="meanwhile", noise=noise, sigma2=sigma2, sensitivity=row["epoch"] + sigma2)
        for row in rows
        for noise, sigma2 in (("patch", 4.0), ("whole", 0.5))
    ]
    found = vision.meanwhile(pd.DataFrame(rows)).set_index(["run", "noise", "sigma2"])["sensitivity"].to_dict()
    expected = {("patch", 1.0): 0.2, ("patch", 4.0): 6.0, ("whole", 0.5): 2.5}
    assert found == {(run, *kind): value for run in ("slow", "fast") for kind, value in expected.items()}
    assert vision.meanwhile(pd.DataFrame(epochs("stuck", [0.1, 0.1]))).empty


def test_a_resumed_run_gives_the_same_rows(tmp_path, monkeypatch):
    whole = vision.run(QUICK)
    stopped = []

    @contextmanager
    def interrupting():
        def progress(step, steps, row):
            if step == 7 and not stopped:
                stopped.append(step)
                signal.raise_signal(signal.SIGINT)

        yield progress

    monkeypatch.setattr(vision, "bar", interrupting)
    with pytest.raises(KeyboardInterrupt):
        vision.TOGETHER.run([QUICK], tmp_path)
    assert any(tmp_path.iterdir())
    (rows,) = vision.TOGETHER.run([QUICK], tmp_path)
    assert rows == whole


@pytest.mark.parametrize("training", ["penalty", "noise", "dropout"])
def test_other_trainings_give_other_models(training):
    plain, other = (
        vision.run(Seen("digits", "vit-small", 0, 0.1, 1, training=each, images=120)) for each in ("", training)
    )
    assert plain[0]["train_loss"] == other[0]["train_loss"]
    assert plain[1]["train_loss"] != other[1]["train_loss"]
    assert ("penalty" in other[1]) == (training == "penalty")


def test_dropout_is_wherever_the_model_has_any():
    plain, dropped = (vision.model_of(replace(QUICK, training=each)) for each in ("", "dropout"))
    rates = [part.p for part in dropped.modules() if isinstance(part, nn.Dropout)]
    assert rates == [vision.DROPOUT] * (1 + 2 * 3)  # on the embedding, and three times in each of two layers
    inside = {part.dropout for part in dropped.modules() if isinstance(part, LocalityAttention)}
    assert inside == {vision.DROPOUT}
    assert not any(isinstance(part, nn.Dropout) for part in plain.modules())
    for one, other in zip(plain.parameters(), dropped.parameters(), strict=True):
        assert torch.equal(one, other)


def test_corrupted_images_of_cifar10(monkeypatch):
    """Fifteen corruptions at two severities, and the released code's fourteen at one more, of the images that the run
    is tested on."""
    images = LabelledImages(
        torch.arange(30 * 3072).view(30, 3, 32, 32).to(torch.uint8), torch.arange(30) % 10, ("",) * 10
    )
    asked = []

    def cifar10_c(name, severity, test):
        asked.append((name, severity, len(test)))
        return images if severity == 2 else test  # as if official arrays were at hand, which are of all images

    monkeypatch.setattr(vision, "read", lambda name, split: images)
    monkeypatch.setattr(vision.data, "cifar10_c", cifar10_c)
    spec = Seen("cifar10", "mlp-leaky-relu", 0, 0.1, 1, images=30)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
    rows = list(vision._corruptions(model, spec, CPU))
    by_severity = [[row["accuracy"] for row in rows if row["severity"] == each] for each in (1, 2)]
    assert by_severity[0] == by_severity[1][:15]  # the same images
    assert len(rows) == len(set(asked)) == 2 * 15 + 1 + 14
    assert {row["family"] for row in rows} == {"noise", "blur", "weather", "digital", "extra"}
    assert {row["severity"] for row in rows if row["corruption"] == "gaussian_blur"} == {2, 3}
    assert {count for _, _, count in asked} == {5}
    x, labels = settings.scaled(vision.chosen(spec, "test"), CPU)
    right = float((model(x).argmax(1) == labels).float().mean())
    assert [row["accuracy"] for row in rows] == pytest.approx([right] * 45)


def test_a_run_that_diverges_says_so_and_ends_nothing():
    rows = vision.run(Seen("digits", "mlp-leaky-relu", 0, 1e20, epochs=2, images=120))
    assert [row["about"] for row in rows] == ["epoch", *["meanwhile"] * 8, "fate"]
    assert rows[-1]["fate"] == "diverged"


def test_a_look_asks_the_model_once_of_every_image():
    """Accuracy, loss and the sensitivity of a linear model, whose answers can be had by hand."""
    torch.manual_seed(0)
    x, y = torch.randn(400, 1, 8, 8), torch.arange(400) % 3
    model, seen = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), []
    model.register_forward_hook(lambda part, given, out: seen.append(len(out)))
    found = looks.look((x, y), (x[:100], y[:100]), PatchNoise(4, 1.0))(model)
    assert sum(seen) == 400 + 100 + 400 + 32  # as they are, of the test, nudged, and a look at what was given
    seen.clear()
    other = looks.Nudge("patch", 4.0, PatchNoise(4, 4.0))
    more = looks.look((x, y), None, PatchNoise(4, 1.0), [other])(model)
    assert sum(seen) == 400 + 2 * (400 + 32)
    seen.clear()
    few = looks.look((x, y), None, PatchNoise(4, 1.0), [other], 100)(model)
    assert sum(seen) == 400 + (400 + 32) + (100 + 32) and few["sensitivity"] == found["sensitivity"]
    assert more["sensitivity"] == found["sensitivity"] < more["patch 4.0"] < more["patch 4.0_high"]
    logits = model(x).detach()
    assert found["train_accuracy"] == pytest.approx(float((logits.argmax(1) == y).double().mean()))
    assert found["test_loss"] == pytest.approx(float(nn.functional.cross_entropy(logits[:100], y[:100])))
    times, many = 200, 0
    for _ in range(times):
        patches = torch.randint(4, (400,))
        noisy = x.clone().view(400, 1, 2, 4, 2, 4)
        noisy[torch.arange(400), :, patches // 2, :, patches % 2] += torch.randn(400, 1, 4, 4)
        many += int((model(noisy.view(x.shape)).argmax(1) != logits.argmax(1)).sum())
    assert found["sensitivity_low"] <= many / (400 * times) <= found["sensitivity_high"]


def test_an_interrupted_look_is_no_number():
    """A sensitivity that is interrupted tells what it has by then, and a row that is kept for good may not."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    x, asked = torch.randn(4000, 1, 8, 8), []

    def ends(part, given, out):
        asked.append(len(out))
        if len(asked) == 7:
            raise KeyboardInterrupt

    clean = looks.outputs(model, x)
    model.register_forward_hook(ends)
    with pytest.raises(KeyboardInterrupt):
        looks.sensitivity(model, x, clean, PatchNoise(4, 1.0), times=5)
    assert len(asked) == 7


def test_larger_images_are_looked_at_in_smaller_batches(monkeypatch):
    """Of 4,096 images at 224 pixels a network makes more than 2^31 numbers, farther than some kernels count."""
    assert looks.at_once(torch.empty(1, 3, 32, 32)) == looks.at_once(torch.empty(1, 3, 96, 96)) == 1024
    assert looks.at_once(torch.empty(1, 3, 224, 224)) == (1 << 26) // (3 * 224 * 224) == 445
    monkeypatch.setattr(looks, "_NUMBERS", 64 * 50)
    model, seen = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), []
    model.register_forward_hook(lambda part, given, out: seen.append(len(out)))
    looks.look((torch.randn(400, 1, 8, 8), torch.arange(400) % 3), None, PatchNoise(4, 1.0))(model)
    assert max(seen) == 50


def test_scattered_noise():
    """As many pixels as a patch has, all channels of each, all over the image."""
    x, index = torch.zeros(2000, 3, 32, 32), torch.arange(2000)
    noise = Noise(0, index, torch.zeros_like(index), torch.zeros_like(index))
    nudged = ScatteredNoise(4, 25.0).run(lambda images: images, x, noise)
    moved = (nudged != 0).any(1)
    assert torch.equal(moved, (nudged != 0).all(1)) and int(x.abs().sum()) == 0
    pixels = moved.flatten(1).sum(1)
    assert pixels.max() == 16 and pixels.double().mean() == pytest.approx(16 - 120 / 1024, abs=0.05)
    patches = moved.view(2000, 8, 4, 8, 4).any(4).any(2).flatten(1).sum(1).double()
    assert patches.mean() == pytest.approx(64 * (1 - (63 / 64) ** 16), abs=0.1)  # 14.3
    alone = nudged.transpose(0, 1)[:, moved]
    assert float(alone.var()) == pytest.approx(25.0, rel=0.05)  # of pixels drawn twice it is double: 0.7 % more
    where = moved.double().mean(0)
    assert float(where.max()) < 0.035 and float(where.min()) > 0.003  # 1/64 each
    assert abs(float(torch.corrcoef(alone)[0, 1])) < 0.02
    assert ScatteredNoise(4).positions(x[:2]).shape == (2, 64)
    with pytest.raises(InputError, match="as one tensor"):
        ScatteredNoise(4).run(lambda images: images, {"pixel_values": x}, noise)


def test_a_corruption_that_cannot_be_made_is_told_before_training(monkeypatch):
    """On a machine that cannot fetch photographs of frost, hours of training would end in that error else."""
    few = LabelledImages(torch.zeros(40, 3, 32, 32, dtype=torch.uint8), torch.arange(40) % 10, ("",) * 10)

    def asked(corruption, severity, test):
        if corruption == "frost":
            raise InputError("no frost")
        return test

    def trained(*given, **more):
        raise AssertionError("it was trained first")

    monkeypatch.setattr(vision, "read", lambda name, split: few)
    monkeypatch.setattr(vision.data, "cifar10_c", asked)
    monkeypatch.setattr(vision, "train", trained)
    with pytest.raises(InputError, match="no frost"):
        vision.run(Seen("cifar10", "convmixer", 0, rate=0.06, epochs=1))


def test_what_is_measured_beside_the_epochs_is_as_the_setting_has_it(monkeypatch):
    """Of CIFAR-10 in either size: other noise on some of the images, corrupted images, weights; of others none."""
    along = {name: each.along for name, each in settings.SETTINGS.items() if each.along}
    assert along == {"cifar10": 5_000, "cifar10-small": 1_000, "digits": 5_000}
    assert {name for name, each in settings.SETTINGS.items() if each.corrupted} == {"cifar10", "cifar10-small"}
    few = LabelledImages(torch.randint(256, (240, 3, 32, 32)).to(torch.uint8), torch.arange(240) % 10, ("",) * 10)
    asked, whole = [], looks.look
    monkeypatch.setattr(vision, "read", lambda name, split: few)
    monkeypatch.setattr(vision.data, "cifar10_c", lambda corruption, severity, test: test)
    monkeypatch.setattr(vision, "look", lambda *given: asked.append(given[4]) or whole(*given))
    monkeypatch.setitem(settings.SETTINGS, "cifar10-small", replace(settings.SETTINGS["cifar10-small"], along=50))
    rows = vision.run(Seen("cifar10-small", "convmixer", 0, 0.03, epochs=1, images=240))
    assert asked == [50]
    counts = Counter(row["about"] for row in rows)
    assert counts == {"epoch": 2, "meanwhile": 2 * 8, "fate": 1, "noise": 9, "weights": 2, "corruption": 45}
    assert len(vision.chosen(Seen("cifar10-small", "convmixer", 0, 0.03, 1, images=240), "test")) == 40
