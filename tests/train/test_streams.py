"""Streams are pure functions of the step, and every epoch has every input once."""

import pytest
import torch

from teeter import counter, cube
from teeter.data import crop_and_flip, labelled_bits
from teeter.errors import InputError
from teeter.train import BitStream, Counted, Drawn, Recipe, shuffled, together, train, whole


def test_bits_are_those_of_their_step():
    stream = BitStream(cube.majority, 9, batch=50, seed=3)
    for step in (7, 0, 7):
        x, y = stream(step)
        expected = labelled_bits(cube.majority, 9, 50, seed=3, step=step)
        assert torch.equal(x, expected[0])
        assert torch.equal(y, expected[1])
    assert not torch.equal(stream(0)[0], stream(1)[0])
    assert not torch.equal(stream(0)[0], BitStream(cube.majority, 9, batch=50, seed=4)(0)[0])
    assert BitStream(cube.mean, 3, 5, 0, dtype=torch.float64)(0)[1].dtype == torch.float64


@pytest.mark.parametrize(("size", "batch"), [(12, 4), (10, 4), (5, 7), (3, 10), (6, 6), (1, 1)])
def test_every_epoch_has_every_input_once(size, batch):
    x = torch.arange(size)
    stream = shuffled(x, 10 * x, batch, seed=1)
    drawn = [stream(step) for step in range(3 * size)]
    assert {len(inputs) for inputs, _ in drawn} == {batch}
    assert all(torch.equal(targets, 10 * inputs) for inputs, targets in drawn)
    epochs = torch.cat([inputs for inputs, _ in drawn]).view(-1, size)
    assert all(torch.equal(epoch.sort().values, x) for epoch in epochs)


def test_order_is_a_function_of_seed_and_epoch():
    x = torch.arange(100)
    one, other = (shuffled(x, x, 30, seed=0) for _ in range(2))
    forward = {step: one(step)[0].tolist() for step in range(20)}
    backward = {step: other(step)[0].tolist() for step in reversed(range(20))}
    assert forward == backward
    epochs = torch.cat([one(step)[0] for step in range(20)]).view(6, 100).tolist()
    assert len(set(map(tuple, epochs))) == 6
    assert shuffled(x, x, 100, seed=1)(0)[0].tolist() not in epochs
    assert epochs[0] != sorted(epochs[0])


def test_an_epoch_is_sorted_once(monkeypatch):
    sorts, bits = [], counter.bits
    monkeypatch.setattr(counter, "bits", lambda *places: sorts.append(places[1]) or bits(*places))
    stream = shuffled(torch.arange(10), torch.arange(10), 4, seed=0)
    for step in range(10):
        stream(step)
    assert sorts == [0, 1, 2, 3]


def test_first_places_are_uniform():
    """Each of 5 inputs comes first in a fifth of 2,000 epochs: chi square with 4 degrees of freedom below 18.5."""
    stream = shuffled(torch.arange(5), torch.zeros(5), 5, seed=0)
    counts = torch.stack([stream(step)[0][0] for step in range(2000)]).bincount(minlength=5).double()
    assert float(((counts - 400) ** 2 / 400).sum()) < 18.5


def test_mappings_of_tensors():
    inputs = {"input_ids": torch.arange(14).view(7, 2), "attention_mask": torch.ones(7, 2)}
    stream = shuffled(inputs, torch.arange(7), 5, seed=0)
    for step in range(4):
        batch, targets = stream(step)
        assert torch.equal(batch["input_ids"], inputs["input_ids"][targets])
        assert batch["attention_mask"].shape == (5, 2)
    assert whole(inputs, torch.arange(7))(9)[0] is inputs


def test_what_is_augmented_depends_on_seed_epoch_and_index_alone():
    images = torch.randint(0, 256, (10, 3, 8, 8), dtype=torch.uint8)
    stream = shuffled(images, torch.arange(10), 4, seed=5, augment=crop_and_flip)
    for step in range(8):  # step 2 and 7 reach from one epoch into the next
        batch, index = stream(step)
        epochs = (torch.arange(4) + 4 * step) // 10
        for image, number, epoch in zip(batch, index, epochs, strict=True):
            alone = crop_and_flip(images[number][None], number[None], seed=5, epoch=int(epoch))
            assert torch.equal(image, alone[0])


def test_whole_is_all_there_is_at_every_step():
    x, y = torch.randn(5, 2), torch.randn(5)
    assert whole(x, y)(0) == whole(x, y)(100) == (x, y)


def test_streams_that_cannot_be():
    with pytest.raises(InputError, match="at least one string"):
        BitStream(cube.parity, 0, 10, seed=0)
    with pytest.raises(InputError, match="at least one string"):
        BitStream(cube.parity, 3, 0, seed=0)
    with pytest.raises(InputError, match="at least one input, got 0"):
        shuffled(torch.zeros(3, 2), torch.zeros(3), 0, seed=0)
    for targets in (torch.zeros(4), torch.tensor(1.0), torch.zeros(3, device="meta")):
        with pytest.raises(InputError, match="3 inputs on cpu have as many targets there"):
            shuffled(torch.zeros(3, 2), targets, 2, seed=0)
        with pytest.raises(InputError, match="3 inputs on cpu"):
            whole(torch.zeros(3, 2), targets)
    with pytest.raises(InputError, match="at least one input"):
        whole(torch.zeros(0, 2), torch.zeros(0))


def test_draws_with_replacement():
    """Each of 5 inputs is a fifth of 2,000 draws: chi square with 4 degrees of freedom below 18.5."""
    x = torch.arange(5)
    stream = Drawn(x, 10 * x, batch=40, seed=1)
    drawn = torch.cat([stream(step)[0] for step in range(50)])
    assert float(((drawn.bincount(minlength=5) - 400.0) ** 2 / 400).sum()) < 18.5
    assert torch.equal(stream(3)[0], stream(3)[0])
    assert not torch.equal(stream(3)[0], stream(4)[0])
    with pytest.raises(InputError, match="at least one input, got 0"):
        Drawn(x, x, batch=0, seed=1)
    with pytest.raises(InputError, match="as many targets"):
        Drawn(x, x[:2], batch=1, seed=1)


@pytest.mark.parametrize("sizes", [(6, 6, 6), (6, 4, 6)])
def test_draws_for_a_stack_are_those_of_each(sizes):
    sets = [torch.arange(size) + 100 * k for k, size in enumerate(sizes)]
    each = [Drawn(x, 10 * x, batch=9, seed=k) for k, x in enumerate(sets)]
    x, y = together(each)(5)
    assert torch.equal(y, 10 * x)
    assert all(torch.equal(row, one(5)[0]) for row, one in zip(x, each, strict=True))


@pytest.mark.parametrize(("size", "batch"), [(5, 40), (64, 64), (200, 8), (1, 3)])
def test_counted_batches_hold_what_was_drawn(size, batch):
    inputs = torch.arange(size)
    drawn = Drawn(inputs, 10 * inputs, batch, seed=3)
    for step in range(20):
        x, y = Counted(drawn)(step)
        assert len(x) == len(x.unique()) <= min(size, batch)  # no input twice
        assert torch.equal(y[:, 0], 10.0 * x)
        found = torch.zeros(size, dtype=torch.float64).index_put((x,), y[:, 1] * batch)
        assert torch.equal(found, drawn(step)[0].bincount(minlength=size).double())


@pytest.mark.parametrize("sizes", [(6, 6, 6), (6, 4, 6)])
def test_counted_batches_for_a_stack_are_those_of_each(sizes):
    each = [Counted(Drawn(torch.arange(size), torch.arange(size) / 3, 9, seed=k)) for k, size in enumerate(sizes)]
    if len(set(sizes)) > 1:
        each = [Counted(Drawn(one.drawn.inputs, one.drawn.targets, 3, seed=k)) for k, one in enumerate(each)]
    x, y = together(each)(5)
    for k, one in enumerate(each):
        inputs, targets = one(5)
        assert torch.equal(x[k], inputs) and torch.equal(y[k], targets)


def test_counted_batches_teach_the_same():
    """A hundred steps on 40 of 16 points: the same weights as from every draw, to rounding."""
    torch.manual_seed(0)
    inputs, targets = torch.randn(2, 16, 3, dtype=torch.float64)
    drawn = Drawn(inputs, targets.sum(-1), 40, seed=1)
    ends = []
    for stream, loss in ((drawn, "mse"), (Counted(drawn), "shared-mse")):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).double()
        made = train(model, stream, Recipe(100, None, rate=0.01, loss=loss))
        ends.append((torch.cat([part.detach().flatten() for part in model.parameters()]), made.rows[-1]["loss"]))
    assert torch.allclose(ends[0][0], ends[1][0], atol=1e-10)
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-10)
