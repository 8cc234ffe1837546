"""Who computes float32 products on a processor: oneDNN where it is asked for, and only where that is float32 still."""

from dataclasses import dataclass

import pytest
import torch

from teeter import products
from teeter.errors import InputError
from teeter.measure.arithmetic import computing_in
from teeter.products import by_onednn, onednn_computes_float32, precision_of_float32, quick_products
from teeter.runs import Store, Together, execute
from teeter.studies import execute_all, find


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """What was found of this processor is not what a test pretends: AVX-512, and no GPU."""
    monkeypatch.delenv("TEETER_ONEDNN", raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    onednn_computes_float32.cache_clear()
    yield
    onednn_computes_float32.cache_clear()


@pytest.fixture
def asked(monkeypatch):
    """Where it computes float32, whatever it does here."""
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
    with computing_in("float32", torch.device("cpu")):
        assert precision() == "medium"
    with quick_products():
        assert precision() == "medium"
    with pytest.raises(ZeroDivisionError), quick_products():
        1 / 0  # noqa: B018
    assert precision() == "highest"


@pytest.mark.parametrize("why", ["nobody asks", "asked otherwise", "no AVX-512", "a GPU"])
def test_else_nothing_changes(asked, monkeypatch, why):
    if why == "nobody asks":
        monkeypatch.delenv("TEETER_ONEDNN")
    elif why == "asked otherwise":
        monkeypatch.setenv("TEETER_ONEDNN", "0")
    elif why == "no AVX-512":  # torch would go to MKL all the same
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    else:  # "medium" would mean fewer bits there
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for kind in (quick_products(), computing_in("float32", torch.device("cpu"))):
        with kind:
            assert precision() == "highest"


@dataclass(frozen=True)
class Spec:
    n: int
    interrupt: bool = False


def told(spec):
    return [{"precision": precision()}]


def told_together(specs, folder):
    """A run that leaves something under way when it is interrupted."""
    if specs[0].interrupt and not (found := folder / "found").exists():
        found.mkdir(parents=True)
        raise KeyboardInterrupt
    return [[*told(spec), {"precision": precision()}] for spec in specs]


def runs_of(store):
    return {run.spec["n"]: (run.rows[0]["precision"], run.provenance.get("products")) for run in store.runs("a/study")}


def test_studies_are_run_so_and_say_it(asked, monkeypatch, tmp_path):
    store = Store(tmp_path)
    execute(store, "a/study", 1, told, [Spec(1)])
    monkeypatch.delenv("TEETER_ONEDNN")
    execute(store, "a/study", 1, told, [Spec(2)])
    assert runs_of(store) == {1: ("medium", "oneDNN"), 2: ("highest", None)}


def test_what_was_begun_otherwise_is_begun_anew(asked, monkeypatch, tmp_path):
    """No run is by oneDNN in part."""
    store, together = Store(tmp_path), Together(key=lambda spec: 0, run=told_together, most=1)
    for value in ("1", "0"):
        monkeypatch.setenv("TEETER_ONEDNN", value)
        with pytest.raises(KeyboardInterrupt):
            execute(store, "a/study", 1, told, [Spec(1, interrupt=True)], together)
    execute(store, "a/study", 1, told, [Spec(1, interrupt=True)], together)
    assert runs_of(store) == {1: ("highest", None)}


@pytest.mark.parametrize("value, kind", [("1", "oneDNN"), ("0", None)])
def test_workers_have_them_too(value, kind, monkeypatch, tmp_path):
    """In processes of their own, of this processor as it is."""
    monkeypatch.undo()
    monkeypatch.setenv("TEETER_ONEDNN", value)
    if value == "1" and not by_onednn():
        pytest.skip("torch goes to MKL here, or to a GPU")
    if value == "1" and not onednn_computes_float32():
        pytest.skip("oneDNN computes bf16 on this processor")
    store, study = Store(tmp_path), find("hahn2024/functions")
    execute_all([study], "smoke", store, workers=2)
    assert {run.provenance.get("products") for run in store.runs(study.name)} == {kind}
