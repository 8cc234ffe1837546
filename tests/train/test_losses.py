"""Three losses by their definitions, and shapes that do not fit."""

import math

import pytest
import torch

from teeter.errors import InputError
from teeter.train import LOSSES
from teeter.train.losses import cross_entropy, logistic, mse, shared_mse


def test_by_definition():
    outputs, targets = torch.randn(7, 3, dtype=torch.float64), torch.tensor([0, 2, 1, 1, 0, 2, 2])
    chances = [float(row.exp()[k] / row.exp().sum()) for row, k in zip(outputs, targets, strict=True)]
    byhand = -sum(math.log(chance) for chance in chances) / 7
    assert float(LOSSES["cross-entropy"](outputs, targets)) == pytest.approx(byhand, rel=1e-14)
    signs = torch.tensor([1, -1, 1, 1, -1, 1, -1])
    byhand = sum((float(a) - int(b)) ** 2 for a, b in zip(outputs[:, 0], signs, strict=True)) / 7
    assert float(LOSSES["mse"](outputs[:, 0], signs)) == pytest.approx(byhand, rel=1e-14)
    byhand = sum(math.log(1 + math.exp(-float(a) * int(b))) for a, b in zip(outputs[:, 0], signs, strict=True)) / 7
    assert float(LOSSES["logistic"](outputs[:, 0], signs)) == pytest.approx(byhand, rel=1e-14)


def test_logistic_is_the_cross_entropy_of_two_classes():
    f, y = torch.tensor([-300.0, -1.5, 0.0, 2.0, 400.0]), torch.tensor([1, 1, -1, 1, -1])
    two = torch.stack([torch.zeros(5), f], -1)
    assert float(logistic(f, y)) == pytest.approx(float(cross_entropy(two, (1 + y) // 2)), rel=1e-6)


def test_one_output_may_have_an_axis_of_its_own():
    outputs, targets = torch.randn(5, 1), torch.randn(5)
    assert mse(outputs, targets) == mse(outputs.squeeze(-1), targets)
    assert logistic(outputs, targets.sign()) == logistic(outputs.squeeze(-1), targets.sign())


def test_sequences_of_targets():
    outputs, targets = torch.randn(4, 6, 3), torch.randint(0, 3, (4, 6))
    each = torch.stack([cross_entropy(a, b) for a, b in zip(outputs, targets, strict=True)])
    assert float(cross_entropy(outputs, targets)) == pytest.approx(float(each.mean()), rel=1e-6)
    assert mse(outputs[..., 0], targets).shape == ()


def test_few_bits_are_summed_in_many():
    for loss, targets in ((mse, torch.ones(4096)), (cross_entropy, torch.zeros(4096, dtype=torch.int64))):
        outputs = torch.full((4096, 1) if loss is mse else (4096, 2), 0.5, dtype=torch.bfloat16)
        assert loss(outputs, targets).dtype == torch.float32


@pytest.mark.parametrize(
    ("loss", "outputs", "targets"),
    [
        (mse, torch.zeros(4, 2), torch.zeros(4)),
        (mse, torch.zeros(4), torch.zeros(4, 1)),
        (mse, torch.zeros(4), torch.zeros(3)),
        (logistic, torch.zeros(4, 2), torch.zeros(4)),
        (logistic, torch.zeros(4), torch.zeros(4, 1)),
        (cross_entropy, torch.zeros(4), torch.zeros(4, dtype=torch.int64)),
        (cross_entropy, torch.zeros(4, 3), torch.zeros(3, dtype=torch.int64)),
        (cross_entropy, torch.zeros(4, 3), torch.zeros(4)),
    ],
)
def test_shapes_that_do_not_match(loss, outputs, targets):
    with pytest.raises(InputError, match=r"got \(4"):
        loss(outputs, targets)


def test_shares_count_inputs_several_times():
    outputs, values = torch.tensor([[0.5], [2.0], [7.0]]), torch.tensor([1.0, -1.0, 3.0])
    shares = torch.tensor([0.75, 0.25, 0.0])
    found = shared_mse(outputs, torch.stack([values, shares], -1))
    assert float(found) == float(mse(outputs[[0, 0, 0, 1]], values[[0, 0, 0, 1]])) == 0.75 * 0.25 + 0.25 * 9
    with pytest.raises(InputError, match="shared-mse compares"):
        shared_mse(outputs, torch.ones(4, 2))
