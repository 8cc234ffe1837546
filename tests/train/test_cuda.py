"""On a GPU: the same law, the same resumption, compiled and in fewer bits; alone and stacked."""

import gc
from dataclasses import replace

import pytest
import torch
from torch import nn

from teeter import cube
from teeter.errors import InputError
from teeter.models import Encoder
from teeter.train import (
    BitStream,
    Job,
    Recipe,
    bit_streams,
    measures,
    pieces,
    shuffled,
    train,
    train_many,
    train_stack,
)
from teeter.train import stack as stacks
from teeter.train.many import fitting
from teeter.train.pieces import copies
from teeter.train.rows import measured, measured_stack
from teeter.train.stack import Stack, Stacked
from teeter.train.state import weights_of

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def run(steps=60, folder=None, progress=None, model=None, compile=False, **more):
    torch.manual_seed(0)
    model = (model or Encoder(length=8, dim=16)).cuda()
    x = cube.points(8).float().cuda()
    what = {"accuracy": measures.accuracy(x, cube.majority(x)), "loss_all": measures.loss(x, cube.majority(x))}
    stream = BitStream(cube.majority, 8, 64, seed=0, device="cuda")
    recipe = Recipe(steps, 64, rate=3e-3, **more)
    made = dict(measures=what, every=20, keep=7, folder=folder, progress=progress, compile=compile)
    return train(model, stream, recipe, **made)


def test_streams_are_those_of_the_cpu():
    x = torch.randn(100, 3)
    here, there = (shuffled(x.to(name), x.sum(-1).to(name), 30, seed=0) for name in ("cpu", "cuda"))
    assert all(torch.equal(here(step)[0], there(step)[0].cpu()) for step in range(8))


def test_the_loss_curve_is_that_of_the_cpu():
    torch.manual_seed(0)
    recipe, stream = Recipe(60, 64, rate=3e-3), BitStream(cube.majority, 8, 64, seed=0, dtype=torch.float64)
    here = train(Encoder(length=8, dim=16).double(), stream, recipe, every=20)
    torch.manual_seed(0)
    stream = BitStream(cube.majority, 8, 64, seed=0, device="cuda", dtype=torch.float64)
    there = train(Encoder(length=8, dim=16).double().cuda(), stream, recipe, every=20)
    for one, other in zip(here.rows[1:], there.rows[1:], strict=True):
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-9)


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
@pytest.mark.parametrize("compile", [False, True])
def test_resumed_to_the_bit(compile, tmp_path):
    def fails(step, steps, row):
        if step == 33:
            raise RuntimeError("killed")

    def model():
        return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    for make in (model, lambda: None):
        torch.manual_seed(1)
        whole = run(model=make(), compile=compile)
        torch.manual_seed(1)
        with pytest.raises(RuntimeError, match="killed"):
            run(model=make(), folder=tmp_path / make.__name__, progress=fails, compile=compile)
        torch.manual_seed(1)
        rest = run(model=make(), folder=tmp_path / make.__name__, compile=compile)
        assert rest.rows == whole.rows
        ours, theirs = weights_of(rest.model), weights_of(whole.model)
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


RECORDED = [
    dict(),
    dict(optimizer="adam", clip=0.5),
    dict(optimizer="sgd", schedule="cosine", warmup=5),
]


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
@pytest.mark.parametrize("more", RECORDED, ids=str)
def test_a_recorded_step_is_the_step(more, monkeypatch):
    replay, launched = torch.cuda.CUDAGraph.replay, []
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", lambda graph: launched.append(1) or replay(graph))
    made = []
    for how in ({}, {"record": True}, {"compile": True}):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).double().cuda()
        stream = BitStream(cube.majority, 8, 64, seed=0, device="cuda", dtype=torch.float64)
        recipe = Recipe(40, 64, rate=1e-2, weight_decay=0.1, **more)
        made.append(train(model, stream, recipe, every=20, **how))
    assert len(launched) == 2 * 40
    for each in made[1:]:
        same(made[0], each, atol=1e-6)  # the rate of a recording has the digits of a float32


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
def test_batches_of_a_recorded_run_are_alike():
    sizes = iter([64] * 6 + [32])
    stream = BitStream(cube.majority, 8, 64, seed=0, device="cuda")

    def uneven(step):
        x, y = stream(step)
        size = next(sizes)
        return x[:size], y[:size]

    with pytest.raises(InputError, match="alike"):
        train(nn.Linear(8, 1).cuda(), uneven, Recipe(10, 64), compile=True)


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
def test_compiled_and_in_fewer_bits():
    plain = run()
    for how in (dict(compile=True), dict(compile="reduce-overhead"), dict(arithmetic="tf32"), dict(arithmetic="bf16")):
        assert run(**how).rows[-1]["loss"] == pytest.approx(plain.rows[-1]["loss"], rel=0.1), how


FUNCTIONS = [cube.parity, cube.majority, cube.first, cube.majority]
BATCH = 256  # which is cut into pieces, see train/pieces.py
RATES, DECAYS = (1e-2, 3e-3, 1e-3, 5e-3), (0.0, 0.1, 0.5, 0.01)


def encoders():
    torch.manual_seed(0)
    return [Encoder(length=6, dim=8).to(DEVICE, torch.float64) for _ in FUNCTIONS]


def recipes(**more):
    each = Recipe(60, BATCH, **more)
    return [replace(each, rate=rate, weight_decay=decay) for rate, decay in zip(RATES, DECAYS, strict=True)]


def stack(killed_at=None, folder=None, until=None, compile=False, make=encoders, **more):
    """Four models, each with its own function, rate and weight decay; rows after 20, 40 and 60 steps."""
    stream = bit_streams(FUNCTIONS, 6, BATCH, range(4), DEVICE, torch.float64)

    def watched(step):
        if step == killed_at:
            raise RuntimeError("killed")
        return stream(step)

    how = dict(every=20, folder=folder, keep=7, until=until, compile=compile)
    return train_stack(make(), watched, recipes(**more), **how)


def alone(k, steps=60, make=encoders, **more):
    stream = BitStream(FUNCTIONS[k], 6, BATCH, seed=k, device=DEVICE, dtype=torch.float64)
    return train(make()[k], stream, replace(recipes(**more)[k], steps=steps), every=20)


def same(one, other, atol=1e-9):
    """The same weights and rows, but for the last digits."""
    ours, theirs = weights_of(one.model), weights_of(other.model)
    for name in ours:
        torch.testing.assert_close(
            ours[name], theirs[name], rtol=0, atol=atol, msg=lambda text, of=name: f"{of} {text}"
        )
    assert [row["step"] for row in one.rows] == [row["step"] for row in other.rows]
    for mine, yours in zip(one.rows[1:], other.rows[1:], strict=True):
        assert mine == pytest.approx(yours, rel=atol)


CASES = [dict(), dict(clip=0.5, schedule="cosine", warmup=20), dict(optimizer="sgd")]


@pytest.mark.parametrize("more", CASES, ids=str)
def test_a_recorded_stack_trains_each_model_as_if_alone(more):
    """Every launch of the recording has the batch, the rates and the weights of its own step."""
    for k, made in enumerate(stack(**more)):
        assert (made.stopped, made.steps) == ("done", 60)
        same(made, alone(k, **more))


def plain_models():
    torch.manual_seed(0)
    parts = [(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0)) for _ in FUNCTIONS]
    return [nn.Sequential(*each).to(DEVICE, torch.float64) for each in parts]


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
@pytest.mark.parametrize("make", [encoders, plain_models])
@pytest.mark.parametrize("compile", [False, True])
def test_batches_in_pieces_train_each_model_as_if_alone(make, compile, monkeypatch):
    counts = []
    if not compile:  # which would not look into the list
        for module in (pieces, stacks):
            monkeypatch.setattr(module, "copies", lambda part, count: counts.append(count) or copies(part, count))
    for k, made in enumerate(stack(make=make, compile=compile)):
        same(made, alone(k, make=make), atol=1e-7 if compile else 1e-9)
    assert compile or max(counts) > 1


def test_a_stack_is_recorded_once(monkeypatch):
    replay, launched = torch.cuda.CUDAGraph.replay, []

    def counted(graph):
        launched.append(graph)
        replay(graph)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", counted)
    stack()
    assert len(launched) > 50 and len(set(map(id, launched))) == 1


def early(row):
    return row["step"] >= {1e-2: 20, 3e-3: 20, 1e-3: 40, 5e-3: 1000}[round(row["rate"], 9)]


ENDS = [("until", 20), ("until", 20), ("until", 40), ("done", 60)]


def test_a_stack_that_shrinks_is_recorded_anew():
    made = stack(until=early)
    assert [(each.stopped, each.steps) for each in made] == ENDS
    for k, each in enumerate(made):
        same(each, alone(k, steps=each.steps))


@pytest.mark.parametrize("until", [None, early])
def test_a_recorded_stack_resumes(until, tmp_path):
    whole = stack(until=until)
    for end in (1, 14, 33, 47):  # before the first row, at a checkpoint, after the stack was halved, and again
        with pytest.raises(RuntimeError, match="killed"):
            stack(until=until, folder=tmp_path / str(end), killed_at=end)
        for one, other in zip(stack(until=until, folder=tmp_path / str(end)), whole, strict=True):
            assert (one.stopped, one.steps) == (other.stopped, other.steps)
            same(one, other)
    finished = stack(until=until, folder=tmp_path / "47", killed_at=59)  # nothing is left to do
    assert [each.steps for each in finished] == [each.steps for each in whole]


@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
def test_a_compiled_stack_computes_the_same():
    for one, other in zip(stack(compile=True), stack(), strict=True):
        same(one, other, atol=1e-7)


@pytest.mark.parametrize("arithmetic", ["float32", "tf32", "bf16"])
def test_a_stack_in_fewer_bits_learns(arithmetic):
    torch.manual_seed(0)
    models = [Encoder(length=8, dim=32).to(DEVICE) for _ in range(3)]
    recipe = Recipe(300, 128, rate=3e-3, arithmetic=arithmetic)
    made = train_stack(models, bit_streams(cube.majority, 8, 128, range(3), DEVICE), recipe, every=100)
    for each in made:
        assert each.stopped == "done"
        assert each.rows[-1]["loss"] < 0.25 * each.rows[1]["loss"]
        assert all(part.dtype == torch.float32 for part in each.model.parameters())


def jobs(count, n=20, dim=128, batch=1024, steps=4):
    torch.manual_seed(0)
    recipe = Recipe(steps, batch)
    return [
        Job(Encoder(length=n, dim=dim).to(DEVICE), BitStream(cube.parity, n, batch, seed=k, device=DEVICE), recipe)
        for k in range(count)
    ]


def test_how_many_fit_is_found_without_training_them():
    some = jobs(5)
    before = [part.clone() for part in some[0].model.parameters()]
    assert 1 <= fitting(some) <= 5
    assert all(map(torch.equal, before, some[0].model.parameters()))
    assert all(part.grad is None for part in some[0].model.parameters())
    assert len(train_many(some[:2], every=4)) == 2


def held():
    """Bytes of tensors that are still alive. The workspaces of matrix products, one for each of torch's streams, are
    no one's, and torch's own tests of leaks put them away likewise."""
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def test_a_stack_gives_its_memory_back():
    """Four jobs as two stacks: the second finds what the first found, and takes no more."""
    train_many(jobs(1), every=4)  # what torch takes once and keeps
    some = jobs(4)
    seen, peaks = [held()], []
    torch.cuda.reset_peak_memory_stats()

    def look(done, of):
        peaks.append(torch.cuda.max_memory_allocated())
        seen.append(held())
        torch.cuda.reset_peak_memory_stats()

    train_many(some, every=4, most=2, progress=look)
    (before, room), *after = seen
    assert len(after) == 2 and peaks[0] > 5 * before  # so that what is not given back would be seen
    for bytes_, reserved in after:
        assert abs(bytes_ - before) <= 0.1 * before
        assert reserved - room <= 0.1 * (peaks[0] - before)  # the recording's own pool
    assert peaks[1] <= 1.1 * peaks[0]


def usual(x, **more):
    return {
        "fit": measures.loss(x, cube.majority(x)),
        "right": measures.accuracy(x, cube.majority(x)),
        "sharp": measures.sharpness(x, **more),
        "sphere": measures.sharpness(x, "output", law="sphere", skip=("head",), **more),
        "blowup": measures.blowup(x),
        "norm": measures.parameter_norm(),
    }


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-9), (torch.float32, 1e-3)])
def test_a_stack_measured_at_once_says_what_is_said_of_each_alone(dtype, rel, monkeypatch):
    stack, device = Stack([model.to(dtype) for model in encoders()]), torch.device(DEVICE)
    what = usual(cube.points(6).to(DEVICE, dtype), draws=4, batch=40)
    theirs = [measured(stack.put(k, encoders()[k].to(dtype)), what, device) for k in range(4)]
    for kind in (measures.Accuracy, measures.Loss, measures.Sharpness, measures.LogBlowup, measures.ParameterNorm):
        monkeypatch.setattr(kind, "__call__", lambda self, model: pytest.fail(f"{self} was told of one model"))
    for mine, yours in zip(measured_stack(stack, range(4), [what] * 4, device, lambda: None), theirs, strict=True):
        assert list(mine) == list(yours)
        assert mine == pytest.approx(yours, rel=rel, abs=rel * 1e-3)
    for mine, yours in zip(measured_stack(stack, [2], [what], device, lambda: None), theirs[2:3], strict=True):
        assert mine == pytest.approx(yours, rel=rel, abs=rel * 1e-3)


def test_measures_of_many_models_take_little_memory():
    """256 of H's encoders at n = 30, ten copies each on 1,000 inputs: less than 2 GiB beside them."""
    shape = Encoder(length=30, dim=128).to(DEVICE).eval()
    weights = {name: part.detach().repeat(256, *[1] * part.ndim) for name, part in shape.named_parameters()}
    stack = Stacked(shape, weights, fast=True)
    x = 1 - 2 * torch.randint(0, 2, (1000, 30), device=DEVICE).float()
    for name, measure in usual(x).items():
        held()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        assert len(measure.of_stack(stack)) == 256
        assert torch.cuda.max_memory_allocated() - before < 2 << 30, name


def test_rows_of_a_recorded_stack_resume(tmp_path):
    x = cube.points(6).to(DEVICE, torch.float64)
    stream = bit_streams(FUNCTIONS, 6, BATCH, range(4), DEVICE, torch.float64)

    def run(measure, folder=None, killed_at=None):
        def watched(step):
            if step == killed_at:
                raise RuntimeError("killed")
            return stream(step)

        return train_stack(encoders(), watched, recipes(), every=20, keep=7, measures=measure, folder=folder)

    whole = run(usual(x))
    plain = run({name: lambda model, own=own: own(model) for name, own in usual(x).items()})
    for one, other in zip(whole, plain, strict=True):
        same(one, other)
    with pytest.raises(RuntimeError, match="killed"):
        run(usual(x), tmp_path, killed_at=33)
    for one, other in zip(run(usual(x), tmp_path), whole, strict=True):
        same(one, other)
