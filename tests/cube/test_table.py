import pytest
import torch

from teeter import cube
from teeter.cube import memory, table
from teeter.errors import InputError, TooLarge


def test_every_input_is_evaluated_exactly_once():
    seen = []

    def f(x):
        seen.append(x.clone())
        return x[:, 0]

    cube.truth_table(f, 7, chunk=10)
    rows = torch.cat(seen)
    assert len(rows) == 128
    assert len(rows.unique(dim=0)) == 128


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_gets_inputs_of_its_own_type(dtype):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(dtype)
    values = cube.truth_table(net, 5)
    assert values.dtype == dtype
    assert not values.requires_grad
    with torch.no_grad():
        assert torch.equal(values, net(cube.points(5, dtype=dtype)).squeeze(-1))
    assert cube.truth_table(net, 5, dtype=torch.float64).dtype == torch.float64


def test_a_module_is_evaluated_at_rest_and_left_as_it_was():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
    net[2].eval()
    before = net[1].running_mean.clone()
    table = cube.truth_table(net, 6)
    torch.testing.assert_close(cube.truth_table(net, 6, chunk=9), table)  # no batch statistics, no dropout
    assert torch.equal(net[1].running_mean, before)
    assert [part.training for part in net] == [True, True, False, True]


def test_a_module_without_parameters_works():
    assert torch.equal(cube.truth_table(torch.nn.Flatten(0), 1), torch.tensor([1.0, -1.0], dtype=torch.float64))


def test_zero_bits_is_a_constant():
    assert cube.truth_table(lambda x: torch.ones(len(x)), 0).tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cube.truth_table(cube.parity, -1), "at least 0, got n = -1"),
        (lambda: cube.truth_table(cube.parity, 2.0), "a whole number, got n = 2.0"),  # pyright: ignore
        (lambda: cube.points(-1), "at least 0, got n = -1"),
        (lambda: cube.truth_table(lambda x: x[:, 0] > 0, 2), "real values, got torch.bool"),
        (lambda: cube.truth_table(lambda x: x[:, 0] * 1j, 2), "real values, got torch.complex"),
        (lambda: cube.walsh([1.0, -1.0]), "a torch tensor, got list"),  # pyright: ignore
        (lambda: cube.truth_table(cube.parity, 3, dtype=torch.float16), "float32 or float64"),
        (lambda: cube.truth_table(cube.parity, 3, chunk=0), "chunk must be at least 1"),
        (lambda: cube.truth_table(lambda x: x, 3), "one number for each, got \\(8, 3\\)"),
        (lambda: cube.truth_table(lambda x: 1.0, 3), "one number for each, got float"),
        (
            lambda: cube.truth_table(lambda x: x[:, 0] / 0 * 0, 3),
            "got NaN or infinity \\(first at index 0\\)",
        ),
        (lambda: cube.walsh(torch.ones(6)), "2\\^n values along its last axis, got shape \\(6,\\)"),
        (lambda: cube.walsh(torch.tensor(1.0)), "2\\^n values"),
        (lambda: cube.walsh(torch.ones(0)), "2\\^n values"),
        (lambda: cube.walsh(torch.ones(4, dtype=torch.bool)), "real values, got torch.bool"),
        (lambda: cube.walsh(torch.ones(4, dtype=torch.complex64)), "real values"),
        (lambda: cube.degree_profile(torch.tensor([1.0, float("inf")])), "first at index 1"),
        (lambda: cube.average_sensitivity(torch.ones(2, 4)), "one table of shape"),
        (lambda: cube.average_sensitivity([1, -1]), "a torch tensor, got list"),  # pyright: ignore
    ],
)
def test_bad_tables_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_huge_finite_values_are_not_mistaken_for_infinity():
    values = torch.full((4,), 1e308, dtype=torch.float64)
    assert torch.equal(table.checked(values), values)


def test_integers_become_float64():
    assert cube.walsh(torch.tensor([1, -1])).dtype == torch.float64


def test_too_many_bits_say_how_much_memory_it_would_take():
    with pytest.raises(TooLarge, match="n = 45 bits needs 256.0 TiB of memory and .* are available on cpu"):
        cube.truth_table(cube.parity, 45)
    with pytest.raises(TooLarge, match="all points of n = 40 bits needs 648.0 TiB"):
        cube.points(40)
    with pytest.raises(TooLarge, match="2\\^2000 inputs"):
        cube.truth_table(cube.parity, 2000)


def test_analysis_and_spectrum_ask_for_memory_first(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 100)
    values = torch.ones(1 << 5, dtype=torch.float64)
    for measure in (
        cube.walsh,
        cube.inverse_walsh,
        cube.analyse,
        cube.local_sensitivity,
        cube.flip_counts,
        cube.degree,
    ):
        with pytest.raises(TooLarge, match="needs .* 100.0 B are available"):
            measure(values)


@pytest.mark.parametrize(("real", "tables"), [(False, 3), (True, 7)])
def test_analysis_asks_for_what_it_takes(monkeypatch, real, tables):
    values = torch.randn(1 << 8, dtype=torch.float64) if real else torch.ones(1 << 8, dtype=torch.float64)
    for room, fits in ((tables, True), (tables - 1, False)):
        monkeypatch.setattr(memory, "available", lambda device, room=room: room * 8 * 256)
        if fits:
            cube.analyse(values)
        else:
            with pytest.raises(TooLarge, match="the analysis of n = 8 bits"):
                cube.analyse(values)


def test_available_memory_is_what_the_container_leaves(monkeypatch, tmp_path):
    assert memory.available() > 1 << 20
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    (tmp_path / "memory.stat").write_text("anon 900\ninactive_file 500\n")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.available() == 3500
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() > 1 << 20
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "absent")
    assert memory.available() > 1 << 20


def test_sizes_read_well():
    assert memory.readable(512) == "512.0 B"
    assert memory.readable(2**62) == "4096.0 PiB"
