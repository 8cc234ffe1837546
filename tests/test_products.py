"""Who computes float32 products on a processor: the faster library, and only where that is float32 still."""

from dataclasses import dataclass

import pytest
import torch

from teeter import perturb, products
from teeter.measure import sensitivity
from teeter.measure.arithmetic import computing_in
from teeter.products import is_faster_by_onednn, onednn_computes_float32, precision_of_float32, quick_products
from teeter.runs import Store, execute

AMD = "processor : 0\nvendor_id : AuthenticAMD\nflags : fpu sse2 avx2 avx512f avx512dq avx512bw avx512vl avx512_bf16\n"


@pytest.fixture(autouse=True)
def anew():
    """What this machine was found to have is not what a test pretends."""
    precision_of_float32.cache_clear()
    yield
    precision_of_float32.cache_clear()


@pytest.fixture
def amd(monkeypatch, tmp_path):
    """A processor of the kind, whatever this one is; its oneDNN is taken at its word."""
    (tmp_path / "cpuinfo").write_text(AMD)
    monkeypatch.setattr(products, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(products, "onednn_computes_float32", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("TEETER_ONEDNN", raising=False)
    if not (torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()):
        pytest.skip("this torch has not both libraries")


@pytest.mark.parametrize(
    ("told", "faster"),
    [
        (AMD, True),
        (AMD + "\n" + AMD, True),
        (AMD.replace("AuthenticAMD", "GenuineIntel"), False),
        (AMD.replace(" avx512dq", ""), False),  # as in Zen 3 and before
        (AMD.replace("\n", " amx_tile amx_bf16\n"), False),  # it would multiply in bf16
        ("model name : an ARM\nFeatures : asimd\n", False),
        ("", False),
    ],
)
def test_which_processors(told, faster):
    assert is_faster_by_onednn(told) is faster


def test_products_in_bf16_are_found_out(monkeypatch):
    """Here a processor that has bf16 products is played by one that rounds what it multiplies."""
    product = torch.Tensor.__matmul__

    def rounding(a, b):
        if a.dtype != torch.float32 or torch.get_float32_matmul_precision() != "medium":
            return product(a, b)
        return product(a.bfloat16().float(), b.bfloat16().float())

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounding)
    assert not onednn_computes_float32()


def test_what_this_machine_computes_by_it_is_float32():
    if precision_of_float32("cpu") == "highest":
        pytest.skip("not a processor on which oneDNN is asked")
    torch.manual_seed(0)
    a, b = torch.randn(300, 700), torch.randn(700, 200)
    exact = a.double() @ b.double()
    with quick_products():
        found = a @ b
    assert (found - exact).abs().max() < 3e-6 * exact.abs().max()  # bf16: 2e-3


def test_on_such_a_processor_it_is_asked_and_then_no_longer(amd):
    before = torch.get_float32_matmul_precision()
    assert (before, precision_of_float32("cpu"), precision_of_float32("cuda")) == ("highest", "medium", "highest")
    with quick_products():
        assert torch.get_float32_matmul_precision() == "medium"
    with pytest.raises(ZeroDivisionError), quick_products():
        1 / 0  # noqa: B018
    with computing_in("float32", torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("why", ["told not to", "bf16", "no such file", "a GPU"])
def test_elsewhere_nothing_changes(amd, monkeypatch, why, tmp_path):
    if why == "told not to":
        monkeypatch.setenv("TEETER_ONEDNN", "0")
    elif why == "bf16":
        monkeypatch.setattr(products, "onednn_computes_float32", lambda: False)
    elif why == "no such file":
        monkeypatch.setattr(products, "_CPUINFO", tmp_path / "none")
    else:  # "medium" would mean fewer bits there
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with quick_products():
        assert torch.get_float32_matmul_precision() == "highest"


def test_studies_are_run_so(amd, tmp_path):
    @dataclass(frozen=True)
    class Spec:
        n: int

    def run(spec):
        return [{"precision": torch.get_float32_matmul_precision()}]

    store = Store(tmp_path / "store")
    execute(store, "room/study", 1, run, [Spec(1)])
    assert store.table("room/study")["precision"].tolist() == ["medium"]


def test_a_sensitivity_is_the_same_by_either(monkeypatch):
    """Rounding is all that differs, and answers hardly ever hang on that."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 5))
    images, nudge = torch.randn(500, 1, 16, 16), perturb.PatchNoise(8, sigma2=1.0)

    def value():
        return sensitivity(net.eval(), images, nudge, budget=4_000, arithmetic="float32", design="broad").value

    by_default = value()
    monkeypatch.setenv("TEETER_ONEDNN", "0")
    precision_of_float32.cache_clear()
    assert value() == pytest.approx(by_default, abs=2 / 3_500)
    assert by_default > 0.05
