import numpy as np
import pytest
import torch

from teeter import report
from teeter.data import corrupted
from teeter.errors import InputError, UnknownName

FIVE = torch.randint(0, 256, (5, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
NAMES = ["contrast", "fog", "glass_blur"]


def strips(drawing):
    """What is shown beside each name, cut into its five images."""
    found = {}
    for axes in drawing.axes:
        if axes.images:
            pixels = np.asarray(axes.images[0].get_array())
            assert pixels.shape == (32, 5 * 32 + 4 * 2, 3)
            found[axes.get_ylabel().replace("\n", "_")] = [pixels[:, at : at + 32] for at in range(0, 168, 34)]
    return found


def test_one_row_a_corruption(tmp_path):
    shown = strips(report.contact_sheet(FIVE, NAMES, seed=3))
    assert list(shown) == ["clean", *NAMES]
    for severity in range(1, 6):
        image = FIVE[severity - 1 : severity]
        for name in NAMES:
            expected = corrupted(image, name, severity, seed=3)[0].movedim(0, -1).numpy()
            assert np.array_equal(shown[name][severity - 1], expected)
        assert np.array_equal(shown["clean"][severity - 1], image[0].movedim(0, -1).numpy())
    path = report.save(lambda: report.contact_sheet(FIVE, NAMES), tmp_path / "sheet.png")
    assert path.stat().st_size > 5000


def test_one_image_at_every_severity_in_two_columns():
    names = ["contrast", "pixelate", "brightness", "saturate", "zoom_blur", "gaussian_blur"]
    drawing = report.contact_sheet(FIVE[0], names)
    shown = strips(drawing)
    in_rows = ["clean", "saturate", "contrast", "zoom_blur", "pixelate", "gaussian_blur", "brightness"]
    assert list(shown) == in_rows  # down the first column, then down the second
    assert all(np.array_equal(image, shown["clean"][0]) for image in shown["clean"])
    titled = [axes for axes in drawing.axes if axes.get_title() == "severity"]
    assert [[label.get_text() for label in axes.get_xticklabels()] for axes in titled] == [list("12345")] * 2


def test_bad_input():
    with pytest.raises(InputError, match="five for the five severities, got 3"):
        report.contact_sheet(FIVE[:3])
    with pytest.raises(UnknownName, match="no corruption named 'mist'"):
        report.contact_sheet(FIVE, ["mist"])
