"""Figures of V's studies of images: of the smoke tier, and of tables made by hand."""

import pytest

from teeter.report.drawing import svg
from teeter.runs import tidy
from teeter.runs.store import Run
from teeter.studies.vasudeva2025 import (
    cifar10,
    depth_heads,
    dropout,
    fashion,
    flatness,
    mnist,
    optimizer,
    random_noise,
    robustness,
    svhn,
)
from teeter.studies.vasudeva2025.vision import Seen, run
from tests.studies.image_tables import ALL, figure_9, five, made, verdicts

KEPT = {}  # rows of smoke runs, by spec: studies share them


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.STUDY.name)
def test_figures_of_the_smoke_tier(study):
    specs: list[Seen] = study.STUDY.specs("smoke")
    for spec in specs:
        KEPT[spec] = KEPT.get(spec) or run(spec)
    table = tidy(Run("", str(spec), vars(spec), KEPT[spec], {"seconds": 1.0}) for spec in specs)
    assert set(verdicts(study, table)) <= {"not run at this tier", "undecided"}  # of one seed
    assert "<svg" in svg(lambda: study.STUDY.figure(table), "a")


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.STUDY.name)
def test_figures_show_every_kind_and_what_is_published(study):
    kinds = {
        optimizer: [dict(model="vit-small", optimizer=each, sensitivity=0.01) for each in ("sgd", "adam")],
        depth_heads: [dict(model="vit-small", layers=each, sensitivity=0.01) for each in (0, 4)],
        dropout: [dict(model="vit-small", training=each, sensitivity=0.01) for each in ("", "dropout")],
        flatness: figure_9()[2:],
        robustness: figure_9(),
    }.get(study, five(0.01, 0.1))
    drawing = study.STUDY.figure(made(kinds))
    words = [text.get_text() for text in drawing.legends[0].get_texts()]
    expected = {
        optimizer: ["SGD", "Adam"],
        depth_heads: ["depth 4, 32 heads", "depth 8, 32 heads"],
        dropout: ["with dropout", "without dropout"],
        flatness: [*flatness.WORDS.values(), "V, Table 2"],
        random_noise: ["ResNet-18, mean", "V, Table 4", "ViT-small, mean"],
        robustness: [robustness.named(*kind) for kind in robustness.LOOKS],
    }.get(study, ["DenseNet-121", "ResNet-18", "ConvMixer", "ViT-small", "ViT-simple"])
    assert sorted(words) == sorted(expected)
    title = drawing.get_suptitle()
    assert ("V, at the end" in title) == (study is cifar10) and ("accuracy on the training set, 1.000" in title) == (
        study in (cifar10, fashion, svhn, optimizer, depth_heads, dropout)
    )
    assert ("at the end: DenseNet-121 1.000" in title) == (study is mnist)
