"""What docs/corruptions.md says of the agreement with the published libraries is what the benchmark's record says."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORD = json.loads((ROOT / "benchmarks/results/2026-11-15-corruptions.json").read_text())
ROWS = {
    "| contrast, pixelate, JPEG | all |": (1.0, ["contrast", "pixelate", "jpeg_compression"]),
    "| Gaussian and speckle noise, fog, frost, motion and zoom blur, snow, elastic transform, Gaussian blur, spatter "
    "| at least 99.8 % |": (
        0.998,
        ["gaussian_noise", "speckle_noise", "fog", "frost", "motion_blur", "zoom_blur", "snow", "elastic_transform"]
        + ["gaussian_blur", "spatter"],
    ),
    "| defocus blur, glass blur, brightness | at least 96 % |": (0.96, ["defocus_blur", "glass_blur", "brightness"]),
    "| saturation | at least 92 % |": (0.92, ["saturate"]),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_table(row):
    page = (ROOT / "docs/corruptions.md").read_text()
    assert row in page
    floor, names = ROWS[row]
    for name in names:
        assert RECORD[name] == RECORD["agreement"][name]["same"] >= floor
        assert RECORD["agreement"][name]["within_one"] > 0.9999


def test_the_other_numbers():
    page = (ROOT / "docs/corruptions.md").read_text()
    assert f"{RECORD['true_swaps']:.1f} times as large" in page
    assert 2 < RECORD["minutes"] < 3 and "two to three minutes" in page
    for part in RECORD["moments"].values():
        assert part["our_mean"] == pytest.approx(part["their_mean"], abs=0.1)
        assert part["our_std"] == pytest.approx(part["their_std"], rel=0.01)
