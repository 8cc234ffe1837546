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
    assert values.dtype == torch.float64
    assert not values.requires_grad
    with torch.no_grad():
        assert torch.equal(values, net(cube.points(5, dtype=dtype)).squeeze(-1).double())


def test_a_module_without_parameters_works():
    assert torch.equal(cube.truth_table(torch.nn.Flatten(0), 1), torch.tensor([1.0, -1.0], dtype=torch.float64))


def test_zero_bits_is_a_constant():
    assert cube.truth_table(lambda x: torch.ones(len(x)), 0).tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cube.truth_table(cube.parity, -1), "at least 0, got n = -1"),
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
        (lambda: cube.walsh(torch.ones(4, dtype=torch.bool)), "real numbers, got torch.bool"),
        (lambda: cube.walsh(torch.ones(4, dtype=torch.complex64)), "real numbers"),
        (lambda: cube.degree_profile(torch.tensor([1.0, float("inf")])), "first at index 1"),
        (lambda: cube.average_sensitivity(torch.ones(2, 4)), "one table of shape"),
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


def test_analysis_and_spectrum_ask_for_memory_first(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 100)
    values = torch.ones(1 << 5, dtype=torch.float64)
    for measure in (cube.walsh, cube.analyse):
        with pytest.raises(TooLarge, match="n = 5 bits needs .* 100.0 B are available"):
            measure(values)


def test_available_memory_is_what_the_container_leaves(monkeypatch, tmp_path):
    assert memory.available() > 1 << 20
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.available() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() > 1 << 20
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "absent")
    assert memory.available() > 1 << 20


def test_sizes_read_well():
    assert memory.readable(512) == "512.0 B"
    assert memory.readable(2**62) == "4096.0 PiB"
