import pytest
import torch
from scipy import stats

from teeter import counter


def python_bits(seed, *counters):
    """The same hash in Python's unbounded integers."""
    mask = (1 << 64) - 1

    def mix(word):
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        return word ^ (word >> 31)

    word = mix((seed + 1) * 0x9E3779B97F4A7C15 & mask)
    for value in counters:
        word = mix(word + (value + 1) * 0x9E3779B97F4A7C15 & mask)
    return word - (1 << 64) if word >= 1 << 63 else word


def test_published_sequence_of_splitmix64():
    """Seed 0 and no counters give the first output of SplitMix64 started at 0."""
    assert int(counter.bits(0)) == 0xE220A8397B1DCDAF - (1 << 64)


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_torch_and_python_agree(seed):
    for a in (0, 1, 7, 2**40):
        for b in (0, 3, 10**9):
            for given in ((torch.tensor(a), torch.tensor(b)), (a, torch.tensor(b)), (a, b)):
                assert int(counter.bits(seed, *given)) == python_bits(seed, a, b)


def test_a_value_does_not_depend_on_its_neighbours():
    whole = counter.uniform(5, torch.arange(100).unsqueeze(1), torch.arange(7))
    for rows in (torch.arange(100).split(1), torch.arange(100).split(33), [torch.arange(99, -1, -1)]):
        for part in rows:
            assert torch.equal(counter.uniform(5, part.unsqueeze(1), torch.arange(7)), whole[part])


def test_no_two_places_share_their_bits():
    """Whatever their order, seed and counters are told apart: 300 seeds x 300 counters, and all pairs of counters."""
    index = torch.arange(300)
    by_seed = torch.stack([counter.bits(seed, index) for seed in range(300)])
    assert by_seed.unique().numel() == by_seed.numel()
    assert counter.bits(0, index.unsqueeze(1), index).unique().numel() == 300 * 300


@pytest.mark.parametrize("seed", range(3))
def test_uniform_is_uniform(seed):
    values = counter.uniform(seed, torch.arange(1000).unsqueeze(1), torch.arange(100)).flatten()
    assert 0 <= float(values.min())
    assert float(values.max()) < 1
    assert stats.kstest(values.numpy(), "uniform").pvalue > 1e-4
    for lag in (1, 100):
        correlation = torch.corrcoef(torch.stack([values[:-lag], values[lag:]]))[0, 1]
        assert abs(float(correlation)) < 5 / len(values) ** 0.5


def test_integers_fill_their_range_evenly():
    values = counter.integers(59, 3, torch.arange(59_000))
    counts = values.bincount(minlength=59)
    assert len(counts) == 59
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4


def test_bits_are_fair_each_and_between_seeds():
    words = torch.stack([counter.bits(seed, torch.arange(20_000)) for seed in (0, 1)])
    for i in range(64):
        ones = ((words >> i) & 1).double()
        assert abs(float(ones.mean()) - 0.5) < 5 * 0.5 / 40_000**0.5
        assert abs(float((ones[0] == ones[1]).double().mean()) - 0.5) < 5 * 0.5 / 20_000**0.5


@pytest.mark.parametrize("seed", range(3))
def test_normal_is_normal(seed):
    values = counter.normal(seed, torch.arange(2000).unsqueeze(1), torch.arange(100)).flatten()
    assert stats.kstest(values.numpy(), "norm").pvalue > 1e-4
    assert abs(float(values.std()) - 1) < 5 / (2 * len(values)) ** 0.5
    assert abs(float(stats.kurtosis(values.numpy()))) < 5 * (24 / len(values)) ** 0.5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_one_kernel_on_the_gpu_is_the_hash_in_steps():
    rows, columns = torch.arange(-50, 950).unsqueeze(1), torch.arange(97)
    for counters in ((columns,), (rows, columns), (3, rows, columns), (2, rows, rows % 7, rows * 2**40, columns)):
        there = tuple(part.cuda() if isinstance(part, torch.Tensor) else part for part in counters)
        for seed in (0, 2**64 - 1):
            assert torch.equal(counter.bits(seed, *there).cpu(), counter.bits(seed, *counters))
            assert torch.equal(counter.uniform(seed, *there).cpu(), counter.uniform(seed, *counters))
            in_steps = counter._normals(*counter._places(seed, there))
            assert torch.equal(counter.normal(seed, *there), in_steps)
            assert torch.allclose(counter.normal(seed, *there).cpu(), counter.normal(seed, *counters), atol=1e-13)
    several = counter.states([0, 9]).view(2, 1, 1)
    there = counter.normal(several.cuda(), rows.cuda(), columns.cuda()).cpu()
    assert torch.allclose(there, counter.normal(several, rows, columns), atol=1e-13)
    none = counter.normal(0, rows[:0].cuda(), columns.cuda())
    assert none.shape == (0, 97) and none.dtype == torch.float64
