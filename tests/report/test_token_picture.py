import pytest
import torch

from teeter import perturb, report
from teeter.errors import InputError
from teeter.measure import TokenMap, token_map


def corner_reader(images):
    """Looks at the top left corner alone."""
    return images[:, 0, :4, :4].sum((1, 2))


def test_heat_map_shows_where_the_model_looks(tmp_path):
    images = torch.randn(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    result = token_map(corner_reader, images, perturb.PatchNoise(4, sigma2=4.0), draws=20)
    assert float(result.mean[:, 0].mean()) > 0.1
    assert float(result.mean[:, 1:].max()) == 0
    drawing = report.heat_map(result, images)
    grids = [axes.images[0].get_array() for axes in drawing.axes[8:16]]
    assert len(grids) == 8
    assert all(grid.shape == (2, 2) and grid[0, 0] > 0 and grid[1, 1] == 0 for grid in grids)
    caption = drawing.get_suptitle()
    assert caption.startswith("the 8 most sensitive of 12 inputs\n")
    assert "number of the input: share of nudges that change the answer" in caption
    means = [float(axes.get_title().split()[1]) for axes in drawing.axes[:8]]
    assert means == sorted(means, reverse=True)
    report.save(lambda: report.heat_map(result, images.expand(-1, 3, -1, -1), which=[1]), tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 2000
    with pytest.raises(InputError, match=r"the map has \d+ inputs, got 1 images"):
        report.heat_map(result, images[:1])
    with pytest.raises(InputError, match="3 tokens do not make a grid"):
        report.heat_map(TokenMap(torch.zeros(2, 3), 1, True), images[:2])


def test_heat_map_of_some_of_many_names_them_by_their_numbers():
    mean = torch.arange(48.0).view(12, 4) / 48
    numbers = list(range(100, 220, 10))
    drawing = report.heat_map(TokenMap(mean, 4, True), torch.randn(12, 1, 8, 8), numbers=numbers, total=5000)
    names = [axes.get_title().split(":")[0] for axes in drawing.axes[:8]]
    assert names == ["210", "200", "190", "180", "170", "160", "150", "140"]
    assert "of 12 inputs, drawn at random from 5,000" in drawing.get_suptitle()
    drawing = report.heat_map(TokenMap(mean, 4, False), torch.randn(12, 1, 8, 8), which=[3])
    assert drawing.get_suptitle().startswith("1 of 12 inputs\n")
    assert "mean change" in drawing.get_suptitle()


def text_map():
    mean = torch.tensor([[0.0, 0.5, 1.0, torch.nan], [0.25, 0.25, torch.nan, torch.nan], [0.0, 0.0, 0.5, 0.5]])
    return TokenMap(mean.double(), 4, True)


def test_token_text_colours_what_flips_and_greys_what_was_not_nudged():
    drawing = report.token_text(text_map(), [["a", "long", "word", "<pad>"], ["two", "words"]])
    words = {text.get_text(): text for text in drawing.axes[0].texts}
    assert list(words) == ["a", "long", "word", "<pad>", "two", "words"]
    assert words["<pad>"].get_color() == "0.6"
    assert words["word"].get_color() == "white"
    assert drawing.axes[0].get_title("left").startswith("2 of 3 inputs\n")
    report.svg(lambda: report.token_text(text_map(), [["$\\nonsense$"]]), "dollars")  # no formula
    with pytest.raises(InputError, match="3 inputs, got 4 texts"):
        report.token_text(text_map(), [["x"]] * 4)


def test_token_text_of_the_most_sensitive():
    drawing = report.token_text(text_map(), [["a", "b", "c", "d"], ["e", "f"], ["g"]], most=2, total=40)
    assert [text.get_text() for text in drawing.axes[0].texts] == ["a", "b", "c", "d", "e", "f"]
    title = drawing.axes[0].get_title("left")
    assert title.startswith("the 2 most sensitive of 3 inputs, drawn at random from 40\n")
    assert "darkest 1, grey never nudged" in title


def test_position_profile():
    left = report.position_profile(text_map()).axes[0]
    assert list(left.lines[0].get_xdata()) == [0, 1, 2]  # one input alone reaches position 3
    assert list(left.lines[0].get_ydata()) == pytest.approx([0.25 / 3, 0.25, 0.75])
    assert left.get_title("left") == "Mean over 3 inputs; band: 95 % interval"
    right = report.position_profile(text_map(), "right", total=9).axes[0]
    assert "3 inputs, drawn at random from 9" in right.get_title("left")
    assert list(right.lines[0].get_xdata()) == [-3, -2, -1]
    assert right.lines[0].get_ydata()[-1] == pytest.approx((1 + 0.25 + 0.5) / 3)
    with pytest.raises(InputError, match="no position is reached"):
        report.position_profile(TokenMap(torch.full((2, 2), torch.nan), 1, True))
