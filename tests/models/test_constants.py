import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from teeter.models.constants import constant


def counted():
    """A constant, and the list of the times it was made."""
    times = []

    def make(n, device):
        times.append((n, device.type))
        return torch.linspace(0, 1, n, device=device)

    return constant(make), times


def test_it_is_made_once_for_each_size_device_and_precision():
    steps, times = counted()
    like = torch.zeros(2)
    assert torch.equal(steps(3, like=like), torch.tensor([0, 0.5, 1]))
    assert steps(3, like=like) is steps(3, like=torch.ones(5))
    assert times == [(3, "cpu")]
    assert steps(3, like=like.double()).dtype == torch.float64
    assert steps(3, like=like.to("meta")).device.type == "meta"
    assert steps(4, like=like).shape == (4,)
    assert times == [(3, "cpu"), (3, "cpu"), (3, "meta"), (4, "cpu")]


def test_numbers_that_are_not_real_keep_their_type():
    assert constant(torch.arange)(3, like=torch.zeros(1)).dtype == torch.int64


def test_made_in_inference_it_serves_in_training():
    steps, _ = counted()
    weight = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        steps(3, like=weight)
    (weight * steps(3, like=weight)).sum().backward()
    assert weight.grad.tolist() == [0, 0.5, 1]


def test_where_new_tensors_are_made_does_not_matter():
    steps, _ = counted()
    with torch.device("meta"):
        assert steps(3, like=torch.zeros(1, device="cpu")).device.type == "cpu"


def test_a_dry_run_has_its_own_and_leaves_nothing_behind():
    steps, times = counted()
    for _ in range(2):
        with FakeTensorMode():
            like = torch.zeros(3)
            assert (like + steps(3, like=like)).shape == (3,)
        assert type(steps(3, like=torch.zeros(1))) is torch.Tensor
    assert times == [(3, "cpu")] * 3
