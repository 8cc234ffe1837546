"""Who computes float32 products on a processor: oneDNN where it is asked for, and only where that is float32 still."""

from dataclasses import dataclass

import pytest
import torch

from teeter import perturb, products
from teeter.errors import InputError
from teeter.measure import sensitivity
from teeter.measure.arithmetic import computing_in
from teeter.products import onednn_computes_float32, precision_of_float32, quick_products
from teeter.runs import Store, execute


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """What was found of this processor is not what a test pretends; nor is there a GPU."""
    monkeypatch.delenv("TEETER_ONEDNN", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    onednn_computes_float32.cache_clear()
    yield
    onednn_computes_float32.cache_clear()


@pytest.fixture
def asked(monkeypatch):
    """On a processor that computes float32 by it, whatever this one is."""
    monkeypatch.setenv("TEETER_ONEDNN", "1")
    monkeypatch.setattr(products, "onednn_computes_float32", lambda: True)


def precision():
    return torch.get_float32_matmul_precision()


def rounding(a, b, product=torch.Tensor.__matmul__):
    """A processor that has bf16 products, played by one that rounds what it multiplies."""
    if a.dtype != torch.float32 or precision() != "medium":
        return product(a, b)
    return product(a.bfloat16().float(), b.bfloat16().float())


def test_products_in_bf16_are_found_out(monkeypatch):
    monkeypatch.setenv("TEETER_ONEDNN", "1")
    monkeypatch.setattr(torch.Tensor, "__matmul__", rounding)
    assert not onednn_computes_float32()
    with pytest.raises(InputError, match="oneDNN computes bf16 on this processor: leave it out"), quick_products():
        raise AssertionError("not reached")
    assert precision() == "highest"


def test_what_this_machine_computes_by_it(monkeypatch):
    """Float32, or it is known not to be."""
    torch.manual_seed(0)
    a, b = torch.randn(300, 700), torch.randn(700, 200)
    exact = a.double() @ b.double()
    torch.set_float32_matmul_precision("medium")
    try:
        error = (a @ b - exact).abs().max() / exact.abs().max()
    finally:
        torch.set_float32_matmul_precision("highest")
    assert onednn_computes_float32() == (error < 1e-5)


def test_it_is_asked_and_then_no_longer(asked):
    assert (precision(), precision_of_float32("cpu"), precision_of_float32("cuda")) == ("highest", "medium", "highest")
    with quick_products():
        assert precision() == "medium"
    with pytest.raises(ZeroDivisionError), quick_products():
        1 / 0  # noqa: B018
    with computing_in("float32", torch.device("cpu")):
        assert precision() == "medium"
    assert precision() == "highest"


@pytest.mark.parametrize("why", ["nobody asks", "asked otherwise", "a GPU"])
def test_else_nothing_changes(asked, monkeypatch, why):
    if why == "nobody asks":
        monkeypatch.delenv("TEETER_ONEDNN")
    elif why == "asked otherwise":
        monkeypatch.setenv("TEETER_ONEDNN", "0")
    else:  # "medium" would mean fewer bits there
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with quick_products():
        assert precision() == "highest"


@dataclass(frozen=True)
class Spec:
    n: int


def test_studies_are_run_so_and_say_it(asked, monkeypatch, tmp_path):
    store, study = Store(tmp_path / "store"), "room/study"
    execute(store, study, 1, lambda spec: [{"precision": precision()}], [Spec(1)])
    monkeypatch.delenv("TEETER_ONEDNN")
    execute(store, study, 1, lambda spec: [{"precision": precision()}], [Spec(2)])
    runs = {run.spec["n"]: run for run in store.runs(study)}
    assert [runs[n].rows[0]["precision"] for n in (1, 2)] == ["medium", "highest"]
    assert [runs[n].provenance.get("products") for n in (1, 2)] == ["oneDNN", None]


def test_a_sensitivity_is_the_same_by_either(monkeypatch):
    """Rounding is all that differs, and answers hardly ever hang on that."""
    if not onednn_computes_float32():
        pytest.skip("oneDNN computes bf16 on this processor")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 5))
    images, nudge = torch.randn(500, 1, 16, 16), perturb.PatchNoise(8, sigma2=1.0)

    def value():
        return sensitivity(net.eval(), images, nudge, budget=4_000, arithmetic="float32", design="broad").value

    by_default = value()
    monkeypatch.setenv("TEETER_ONEDNN", "1")
    assert value() == pytest.approx(by_default, abs=2 / 3_500)
    assert by_default > 0.05
