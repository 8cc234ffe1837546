import pytest
import torch

from teeter import cube, perturb
from teeter.errors import InputError
from teeter.measure import Estimate, logit_distance, sensitivity, token_map


def test_map_of_known_functions():
    every = token_map(cube.sparse_parity([0, 2]), cube.points(4), perturb.BitFlip(), draws=2)
    assert torch.equal(every.mean, torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64).expand(16, 4))
    assert every.counts.unique().tolist() == [2]
    assert every.by_input().tolist() == [0.5] * 16
    exact = cube.influences(cube.truth_table(cube.majority, 5))
    assert torch.allclose(token_map(cube.majority, cube.points(5), perturb.BitFlip(), draws=1).mean.mean(0), exact)


def test_the_map_does_not_depend_on_the_batch_and_averages_to_the_sensitivity():
    generator = torch.Generator().manual_seed(0)
    images, weight = torch.randn(30, 1, 4, 4, generator=generator), torch.randn(16, generator=generator)
    head = lambda x: (x.double().flatten(1) @ weight.double()).float()  # noqa: E731
    nudge = perturb.PatchNoise(2, sigma2=1.0)
    maps = [token_map(head, images, nudge, draws=5, batch=batch).mean for batch in (1, 7, "auto")]
    assert torch.equal(maps[0], maps[1])
    assert torch.equal(maps[0], maps[2])
    paper = sensitivity(head, images, nudge, design="paper", draws=5)
    assert float(maps[0].mean()) == pytest.approx(paper.value)


class Text:
    """Rows of lengths 3 and 5; the last token always flips, the others never."""

    def positions(self, inputs):
        return torch.arange(5) < inputs.unsqueeze(-1)

    def run(self, model, inputs, noise):
        return torch.where(noise.token == inputs - 1, -1.0, 1.0)


def test_positions_align_left_and_right():
    result = token_map(lambda x: torch.ones(len(x)), torch.tensor([3, 5, 3, 5, 5]), Text(), draws=3)
    assert result.mean.isnan().sum() == 4
    assert result.counts.sum() == 3 * 21
    left = [e.value for e in result.by_position("left") if e]
    assert left == pytest.approx([0, 0, 0.4, 0, 1])
    right = result.by_position("right")
    assert [e.value for e in right if e] == pytest.approx([0, 0, 0, 0, 1])
    assert [e.n for e in right if e] == [3, 3, 5, 5, 5]
    assert result.by_input().tolist() == pytest.approx([1 / 3, 1 / 5, 1 / 3, 1 / 5, 1 / 5])


def test_a_position_that_one_input_reaches_has_no_estimate():
    result = token_map(lambda x: torch.ones(len(x)), torch.tensor([3, 4, 3]), Text(), draws=1)
    profile = result.by_position()
    assert profile[3] is None
    assert profile[4] is None
    assert isinstance(profile[2], Estimate)


def test_soft_map_and_progress():
    told = []
    soft = token_map(
        cube.mean,
        cube.points(3),
        perturb.BitFlip(),
        change=logit_distance,
        draws=1,
        batch=5,
        progress=lambda done, total: told.append((done, total)),
    )
    assert torch.allclose(soft.mean, torch.tensor(2 / 3, dtype=torch.float64))
    assert not soft.rate
    assert told[-1] == (24, 24)


def test_bad_input():
    x = cube.points(3)
    with pytest.raises(InputError, match="draws is at least 1"):
        token_map(cube.first, x, perturb.BitFlip(), draws=0)
    with pytest.raises(InputError, match="align 'left' or 'right'"):
        token_map(cube.first, x, perturb.BitFlip(), draws=1).by_position("middle")  # pyright: ignore
    with pytest.raises(InputError, match="no input has a token"):
        token_map(lambda t: t[:, 0], torch.zeros(2, 2, dtype=torch.long), perturb.TokenReplace(5, skip=(0,)))
