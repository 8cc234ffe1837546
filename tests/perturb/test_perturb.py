"""Each perturbation touches its token and nothing else, with noise that is a pure function of where it is used."""

import pytest
import torch
from scipy import stats
from torch import nn

from teeter import perturb
from teeter.errors import InputError, UnknownName
from teeter.perturb import Noise
from teeter.perturb.inputs import count, field, take
from teeter.perturb.weights import perturbed_weights


def at(token, seed=0, start=0, draw=0):
    token = torch.as_tensor(token)
    rows = torch.arange(start, start + len(token))
    return Noise(seed, rows, token, torch.full_like(rows, draw))


def same(inputs):
    return inputs


def images(rows=6, size=8, channels=3):
    return torch.randn(rows, channels, size, size, generator=torch.Generator().manual_seed(0))


def test_noise_depends_on_all_four_and_on_nothing_else():
    whole = Noise(1, torch.tensor([0, 1, 2]), torch.tensor([5, 6, 7]), torch.tensor([0, 0, 1]))
    for row in range(3):
        part = Noise(1, whole.input[row : row + 1], whole.token[row : row + 1], whole.draw[row : row + 1])
        assert torch.equal(part.normal(2, 3)[0], whole.normal(2, 3)[row])
        assert torch.equal(part.uniform()[0], whole.uniform()[row])
        assert torch.equal(part.integers(9, 2)[0], whole.integers(9, 2)[row])
    one = torch.tensor([3])
    base = Noise(0, one, one, one).normal(4)
    for other in (
        Noise(1, one, one, one),
        Noise(0, one + 1, one, one),
        Noise(0, one, one + 1, one),
        Noise(0, one, one, one + 1),
    ):
        assert not torch.equal(other.normal(4), base)


def test_bit_flip():
    bits = torch.tensor([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
    flip = perturb.BitFlip()
    assert flip.positions(bits).all()
    assert flip.run(same, bits, at([1, 2])).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert bits[0, 1] == -1  # the input itself is left alone


def test_token_replace_draws_from_the_whole_vocabulary_and_skips_padding():
    text = {
        "input_ids": torch.tensor([[0, 5, 6, 2], [0, 7, 1, 1]]).repeat(3000, 1),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).repeat(3000, 1),
    }
    swap = perturb.TokenReplace(vocabulary=9, skip=(0, 2))
    assert swap.positions(text)[:2].tolist() == [[False, True, True, False], [False, True, False, False]]
    after = swap.run(same, text, at([1] * 6000))["input_ids"]
    assert torch.equal(after[:, [0, 2, 3]], text["input_ids"][:, [0, 2, 3]])
    assert stats.chisquare(after[:, 1].bincount(minlength=9).numpy()).pvalue > 1e-4


@pytest.mark.parametrize("relative", [False, True])
def test_patch_noise_stays_in_its_patch_and_has_its_variance(relative):
    batch = images(600) * 3
    nudge = perturb.PatchNoise(patch=4, sigma2=0.25, relative=relative)
    assert nudge.positions(batch).shape == (600, 4)
    step = nudge.run(same, batch, at([1] * 600)) - batch
    assert float(step[:, :, 4:].abs().max()) == 0
    assert float(step[:, :, :, :4].abs().max()) == 0
    there = step[:, :, :4, 4:]
    size = batch[:, :, :4, 4:].square().mean((1, 2, 3), keepdim=True).sqrt() if relative else 1.0
    assert float((there / size).std()) == pytest.approx(0.5, rel=0.02)
    third = nudge.run(same, batch[:1], at([2])) - batch[:1]
    assert float(third[:, :, 4:, :4].abs().min()) > 0
    assert float(third[:, :, :4].abs().max()) == 0


def test_patch_replace():
    batch = images(4)
    source = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 3, 8, 8)
    after = perturb.PatchReplace(patch=4, source=source).run(same, batch, at([3, 3, 3, 3]))
    assert torch.equal(after[:, :, :4], batch[:, :, :4])
    for image in after:
        assert len(image[:, 4:, 4:].unique()) == 1  # one source image, the whole patch
    noise = perturb.PatchReplace(patch=2, sigma2=4.0).run(same, images(2000), at([0] * 2000))
    assert float(noise[:, :, :2, :2].std()) == pytest.approx(2, rel=0.03)


def test_input_noise_reaches_everything():
    batch = images(500)
    nudge = perturb.InputNoise(sigma2=0.09)
    assert nudge.positions(batch).shape == (500, 1)
    step = nudge.run(same, {"pixel_values": batch}, at([0] * 500))["pixel_values"] - batch
    assert float(step.std()) == pytest.approx(0.3, rel=0.02)


class Reader(nn.Module):
    """Embedding, LayerNorm, one mixing layer, a head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embeddings = nn.ModuleDict({"word": nn.Embedding(11, 16), "LayerNorm": nn.LayerNorm(16)})
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 2)
        self.seen = None

    def forward(self, tokens):
        hidden = self.embeddings["LayerNorm"](self.embeddings["word"](tokens))
        self.seen = hidden.detach()
        return self.head(torch.tanh(self.mix(hidden)).mean(1))


def test_embedding_noise_goes_after_the_layer_norm_by_default():
    model, tokens = Reader().eval(), torch.randint(0, 11, (400, 6))
    model(tokens)
    clean = model.seen
    perturb.EmbeddingNoise(sigma2=4.0).run(model, tokens, at([2] * 400))
    step = model.seen - clean
    assert float(step[:, [0, 1, 3, 4, 5]].abs().max()) == 0
    assert float(step[:, 2].std()) == pytest.approx(2, rel=0.05)
    perturb.EmbeddingNoise(sigma2=4.0, module="word").run(model, tokens, at([2] * 400))
    assert float((model.seen - clean)[:, 2].norm(dim=-1).mean()) < float(
        step[:, 2].norm(dim=-1).mean()
    )  # re-normalised
    model(tokens)
    assert torch.equal(model.seen, clean)  # no hook is left behind


@pytest.mark.parametrize(("relative", "expected"), [(False, 0.1), (True, 0.3)])
def test_hidden_noise_relative_to_the_token(relative, expected):
    """A module that gives threes everywhere: a relative 0.1 is then 0.3."""

    class Threes(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(4, 16)

        def forward(self, x):
            self.seen = self.mix(x).detach()
            return self.seen.sum((1, 2))

    model = Threes()
    nn.init.zeros_(model.mix.weight)
    nn.init.constant_(model.mix.bias, 3.0)
    nudge = perturb.HiddenNoise("mix", sigma2=0.01, relative=relative, tokens=5)
    nudge.run(model, torch.zeros(300, 5, 4), at([4] * 300))
    step = model.seen - 3
    assert float(step[:, :4].abs().max()) == 0
    assert float(step[:, 4].std()) == pytest.approx(expected, rel=0.05)
    assert nudge.positions(images(2)).shape == (2, 5)
    assert perturb.HiddenNoise("mix").positions(torch.zeros(3, 6, dtype=torch.long)).shape == (3, 6)
    with pytest.raises(InputError, match="token 7 is not among the 5"):
        nudge.run(model, torch.zeros(1, 5, 4), at([7]))


def test_noise_on_all_tokens_at_once():
    model, tokens = Reader().eval(), torch.randint(0, 11, (400, 6))
    model(tokens)
    clean, nudge = model.seen, perturb.EmbeddingNoise(sigma2=4.0, whole=True)
    assert nudge.positions(tokens).tolist() == [[True]] * 400
    nudge.run(model, tokens, at([0] * 400))
    step = model.seen - clean
    assert float(step.std()) == pytest.approx(2, rel=0.02)
    each = step.flatten(1)  # no two tokens, and no two inputs, have the same noise
    assert float(torch.corrcoef(each.T).fill_diagonal_(0).abs().max()) < 0.3
    assert float(torch.corrcoef(each[:20]).fill_diagonal_(0).abs().max()) < 0.5
    nudge.run(model, tokens[:, :4], at([0] * 400))
    torch.testing.assert_close(model.seen - clean[:, :4], step[:, :4])  # whatever comes after
    doubled = perturb.EmbeddingNoise(sigma2=4.0, whole=True, relative=True)
    with torch.no_grad():
        model.embeddings["LayerNorm"].weight.mul_(3)
    model(tokens)
    clean = model.seen
    doubled.run(model, tokens, at([0] * 400))
    assert float((model.seen - clean).std()) == pytest.approx(6, rel=0.02)


def test_hooks_that_do_not_fire_or_fire_twice_are_refused():
    class Odd(nn.Module):
        def __init__(self, times):
            super().__init__()
            self.part, self.times = nn.Linear(4, 4), times

        def forward(self, x):
            for _ in range(self.times):
                x = self.part(x)
            return x.mean((1, 2))

    x = torch.randn(3, 5, 4)
    nudge = perturb.HiddenNoise("part", tokens=5)
    for times, message in ((0, "never ran"), (2, "ran 2 times")):
        with pytest.raises(InputError, match=message):
            nudge.run(Odd(times), x, at([0, 1, 2]))


def test_where_embeddings_end():
    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe, self.drop = nn.Embedding(5, 4), nn.Embedding(9, 4), nn.Dropout(0.1)

    where = perturb.EmbeddingNoise().where
    model = Gpt()
    assert where(model) is model.drop
    table = nn.Sequential(nn.Embedding(5, 4), nn.Flatten())
    assert where(table) is table[0]
    with pytest.raises(InputError, match="not clear"):
        where(nn.Sequential(nn.Embedding(5, 4), nn.Embedding(5, 4)))
    tables = nn.ModuleDict({"token": nn.Embedding(5, 4), "position": nn.Embedding(9, 4)})
    for name in ("embedding", "embeddings"):  # a module of that name that holds every table ends where they are joined
        for model in (nn.ModuleDict({name: tables}), nn.ModuleDict({"inner": nn.ModuleDict({name: tables})})):
            assert where(model) is tables
    one = nn.ModuleDict({"embedding": nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4)), "head": nn.Linear(4, 1)})
    assert where(one) is one["embedding"]
    for other in (nn.ModuleDict({"embedding": tables, "more": nn.Embedding(3, 4)}), nn.ModuleDict({"tables": tables})):
        with pytest.raises(InputError, match=r"not clear \(embeddings: .*token, .*position"):
            where(other)
    with pytest.raises(InputError, match="embeddings: none"):
        where(nn.ModuleDict({"embedding": nn.Linear(4, 4)}))
    with pytest.raises(UnknownName, match="no module named 'mix'"):
        perturb.HiddenNoise("mix").where(table)
    with pytest.raises(InputError, match="names 2 modules: a.0, b.0"):
        both = nn.ModuleDict({"a": nn.Sequential(nn.ReLU()), "b": nn.Sequential(nn.ReLU())})
        perturb.HiddenNoise("0").where(both)
    with pytest.raises(InputError, match="needs a torch module"):
        perturb.HiddenNoise("x").where(same)


def test_weight_noise_is_a_network_of_its_own_for_each_row():
    torch.manual_seed(0)
    model = nn.Linear(7, 2)
    x = torch.randn(5, 7)
    nudge = perturb.WeightNoise(sigma2=0.04)
    together = nudge.run(model, x, at([0] * 5))
    for row in range(5):
        weights = perturbed_weights(model, 0.2, at([0], start=row))
        expected = x[row] @ weights["weight"].T + weights["bias"]
        torch.testing.assert_close(together[row], expected)
    assert nudge.positions(x).shape == (5, 1)
    kept = perturbed_weights(model, 0.2, at([0]), skip=("bias",))
    assert set(kept) == {"weight"}
    wide = nn.Linear(100, 100)
    step = (perturbed_weights(wide, 0.2, at([0]))["weight"] - wide.weight).detach()
    assert float(step.std()) == pytest.approx(0.2, rel=0.03)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: perturb.PatchNoise(3).positions(images()), "patches of 3 x 3 do not divide images of 8 x 8"),
        (lambda: perturb.PatchNoise(2).positions(torch.ones(3, 8)), "images are floats of shape"),
        (lambda: perturb.PatchNoise(2, sigma2=-1), "sigma2 is a variance"),
        (lambda: perturb.InputNoise(float("nan")), "sigma2 is a variance"),
        (lambda: perturb.InputNoise().positions(torch.ones(3, 3, dtype=torch.long)), "inputs of floats"),
        (lambda: perturb.PatchReplace(2, source=images(2, 4)).positions(images()), "images of the same shape"),
        (lambda: perturb.TokenReplace(1), "at least two tokens"),
        (lambda: perturb.EmbeddingNoise(1.0), "the name of a module first, got 1.0: a variance is written sigma2="),
        (lambda: perturb.PatchNoise((2, 3)), "whole pixels to a side, got \\(2, 3\\)"),
        (lambda: perturb.PatchReplace(0), "whole pixels to a side, got 0"),
        (lambda: perturb.PatchReplace(4, source="noise"), "a tensor of images, or None for noise, got 'noise'"),
        (lambda: perturb.PatchReplace(4, torch.randn(0, 3, 8, 8)), "got a tensor of \\(0, 3, 8, 8\\)"),
        (lambda: perturb.BitFlip(values=(1, 1)), "a bit has two values, one unlike the other, got \\(1, 1\\)"),
        (lambda: perturb.BitFlip(values=(0, 1, 2)), "a bit has two values"),
        (lambda: perturb.BitFlip(1), "a bit has two values"),
        (
            lambda: perturb.TokenReplace(300).run(nn.Embedding(30, 2), torch.ones(9, 4, dtype=torch.long), at([0] * 9)),
            "a vocabulary of 300 tokens is larger than the model's",
        ),
        (lambda: perturb.TokenReplace(5).positions(torch.tensor([[7]])), "token 7 is not among the 5"),
        (lambda: perturb.TokenReplace(5).positions(torch.ones(2, 2)), "a text is token numbers"),
        (lambda: perturb.BitFlip().positions(torch.ones(2, 2, 2)), "numbers of shape \\(inputs, bits\\)"),
        (lambda: perturb.BitFlip().positions(torch.zeros(2, 2)), "name your two values"),
        (lambda: perturb.WeightNoise(1.0).run(same, torch.ones(1, 1), at([0])), "needs a torch module"),
        (lambda: count({}), "got none"),
        (lambda: count(torch.ones(0, 2)), "at least one input"),
        (lambda: count({"a": torch.ones(2), "b": torch.ones(3)}), "got \\[2, 3\\]"),
        (lambda: field({"a": torch.ones(2)}, "b"), "a mapping of a: say which"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_hidden_shape_is_checked():
    with pytest.raises(InputError, match="the module gave \\(2, 4\\)"):
        perturb.HiddenNoise("0", tokens=3).run(nn.Sequential(nn.Linear(4, 4)), torch.ones(2, 4), at([0, 1]))


def test_take_keeps_mappings_together():
    both = take({"a": torch.arange(4), "b": torch.arange(4) * 2}, torch.tensor([3, 1]))
    assert {name: part.tolist() for name, part in both.items()} == {"a": [3, 1], "b": [6, 2]}


def test_weight_noise_can_be_trained_through():
    model, x = nn.Linear(3, 1, bias=False).double(), torch.ones(4, 3, dtype=torch.float64)
    perturb.WeightNoise(sigma2=0.04).run(model, x, at([0] * 4)).sum().backward()
    assert torch.equal(model.weight.grad, torch.full((1, 3), 4.0, dtype=torch.float64))


def test_relative_noise_can_be_trained_through_where_a_token_is_zero():
    """Its size is that of the token: d/dx of x + size(x) noise is 1 + noise sign(x) / width, and 1 at zero."""
    for value, slope in ((0.0, lambda noise: 1.0), (2.0, lambda noise: 1 + float(noise.sum()) / 48)):
        batch = torch.full((1, 3, 4, 4), value, requires_grad=True)
        perturb.PatchNoise(patch=4, sigma2=1.0, relative=True).run(same, batch, at([0])).sum().backward()
        torch.testing.assert_close(batch.grad, torch.full_like(batch, slope(at([0]).normal(48))))
