import pytest
import torch
from torch import nn

import teeter
from teeter import cube
from teeter.errors import InputError
from teeter.models import MODELS, Scratchpad
from teeter.models.scratchpad import START
from teeter.perturb import BitFlip, EmbeddingNoise, HiddenNoise
from teeter.perturb.noise import Noise

from .training import copy_block, falls, losses, reached, shuffled, size

SMALL = dict(length=6, dim=8, heads=2)
BITS = cube.points(6)


def test_the_papers_size():
    # tokens 3 x 32, positions 1024 x 32; attention 4 (32^2 + 32) = 4,224, network 2 (32^2 + 32) = 2,112, a norm 64:
    # encoder layers 4,224 + 2,112 + 128, decoder layers 8,448 + 2,112 + 192; two norms at the ends; head 32 + 1.
    assert size(MODELS["scratchpad"]()) == 96 + 32_768 + 2 * 6_464 + 2 * 10_752 + 128 + 33 == 67_457


def test_it_is_torchs_transformer():
    torch.manual_seed(0)
    ours = shuffled(Scratchpad(**SMALL, layers=2, width=12))
    theirs = nn.Transformer(8, 2, 2, 2, 12, dropout=0.0, batch_first=True).double()
    for our, their in zip(
        [*ours.encoder, *ours.decoder], [*theirs.encoder.layers, *theirs.decoder.layers], strict=True
    ):
        copy_block(our, their)
    theirs.encoder.norm.load_state_dict(ours.encoder_norm.state_dict())
    theirs.decoder.norm.load_state_dict(ours.decoder_norm.state_dict())
    steps = BITS.cumprod(-1)[:, :-1]
    written = torch.cat([torch.full((64, 1), START), (steps < 0).long()], -1)
    mask = nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.float64)
    out = theirs(ours.embedding((BITS < 0).long()), ours.embedding(written), tgt_mask=mask)
    written = ours(BITS, steps, all_positions=True)
    assert torch.allclose(written, ours.head(out).squeeze(-1), rtol=0, atol=1e-10)
    assert torch.equal(ours(BITS, all_positions=True), written)


def test_the_answer_is_the_last_step():
    torch.manual_seed(0)
    model = shuffled(Scratchpad(**SMALL))
    steps = BITS.cumprod(-1)[:, :-1]
    written = model(BITS, all_positions=True)
    assert model(BITS).shape == (64,)
    assert torch.allclose(model(BITS), written[:, -1], rtol=0, atol=1e-12)
    for k in range(6):
        assert torch.allclose(model(BITS, steps[:, :k]), written[:, k], rtol=0, atol=1e-12)
    own = model(BITS, "own", all_positions=True)
    assert own.shape == (64, 6)
    assert torch.equal(model(BITS, "own"), own[:, -1])


def test_initial_weights_have_torchs_law():
    torch.manual_seed(0)
    ours = Scratchpad(length=4, dim=96, heads=2, layers=1)
    theirs = nn.Transformer(96, 2, 1, 1, 96, dropout=0.0, batch_first=True)
    copied = nn.Transformer(96, 2, 1, 1, 96, dropout=0.0, batch_first=True)
    for our, copy in ((ours.encoder[0], copied.encoder.layers[0]), (ours.decoder[0], copied.decoder.layers[0])):
        copy_block(our, copy)
    for (name, our), (_, their) in zip(copied.named_parameters(), theirs.named_parameters(), strict=True):
        if our.ndim == 2:
            our, their = our.detach(), their.detach()
            assert float(our.abs().max() / their.abs().max()) == pytest.approx(1, abs=0.01), name
            assert float(our.std() / their.std()) == pytest.approx(1, abs=0.03), name


def test_a_step_sees_earlier_steps_and_all_bits():
    torch.manual_seed(0)
    model = shuffled(Scratchpad(**SMALL))
    steps = BITS.cumprod(-1)[:, :-1]
    clean = model(BITS, steps, all_positions=True)
    assert clean.shape == (64, 6)
    for j in range(5):
        flipped = steps.clone()
        flipped[:, j] *= -1
        assert (model(BITS, flipped, all_positions=True) != clean).any(0).tolist() == [False] * (j + 1) + [True] * (
            5 - j
        )
    for j in range(6):
        flipped = BITS.clone()
        flipped[:, j] *= -1
        assert (model(flipped, steps, all_positions=True) != clean).any(0).tolist() == [True] * 6


def naive(model, bits):
    """Every step with all those before it decoded anew."""
    steps = bits[:, :0]
    for _ in range(bits.shape[1]):
        steps = torch.cat([steps, torch.where(model(bits, steps) < 0, -1, 1).to(bits.dtype).unsqueeze(-1)], -1)
    return steps


@pytest.mark.parametrize("positions", ["sum", "concatenate"])
def test_generate_is_its_naive_twin(positions):
    torch.manual_seed(0)
    model = shuffled(Scratchpad(**SMALL, layers=3, width=12, positions=positions))
    for bits in (BITS, BITS[:, :1]):
        steps = naive(model, bits)
        assert torch.equal(model.generate(bits), steps)
        forced = model(bits, steps[:, :-1], all_positions=True)
        assert torch.allclose(model(bits, "own", all_positions=True), forced, rtol=0, atol=1e-12)
    assert not torch.equal(model.generate(BITS), BITS.cumprod(-1))  # it has steps of its own


def test_generate_reads_nothing_twice():
    """The bits once, and of the steps one position at a time."""
    model, read, written = Scratchpad(**SMALL), [], []
    model.encoder[0].register_forward_hook(lambda module, given, out: read.append(out.shape))
    model.decoder[0].up.register_forward_hook(lambda module, given, out: written.append(out.shape))
    crossed = []
    model.decoder[0].cross.key.register_forward_hook(lambda module, given, out: crossed.append(out.shape))
    model.generate(BITS)
    assert read == crossed == [(64, 6, 8)]
    assert written == [(64, 1, 8)] * 6


def test_generate_writes_what_it_reads():
    torch.manual_seed(0)
    model = shuffled(Scratchpad(**SMALL))
    for bits in (BITS, BITS.long(), BITS[:, :3]):
        steps = model.generate(bits)
        assert steps.shape == bits.shape and steps.dtype == bits.dtype
        assert bool((steps.abs() == 1).all())
        assert torch.equal(
            steps < 0, model(bits, steps[:, :-1], all_positions=True) < 0
        )  # each follows from those before it
    assert not model.generate(BITS).requires_grad


def test_a_seed_decides_everything():
    def run(seed):
        torch.manual_seed(seed)
        return Scratchpad(**SMALL)(BITS)

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


@pytest.mark.parametrize("steps", [None, "own"])
def test_stacked_weights_give_what_a_loop_gives(steps):
    torch.manual_seed(0)
    models = [shuffled(Scratchpad(**SMALL)) for _ in range(3)]
    stack, _ = torch.func.stack_module_state(models)
    given = (BITS, steps, True)
    together = torch.vmap(lambda weights: torch.func.functional_call(models[0], weights, given))(stack)
    assert torch.allclose(together, torch.stack([model(*given) for model in models]), rtol=0, atol=1e-12)


def test_gradient_reaches_every_parameter():
    torch.manual_seed(0)
    model = shuffled(Scratchpad(**SMALL, positions="concatenate"))
    silent = reached(model, (model(BITS, all_positions=True) - BITS.cumprod(-1)).square().mean())
    assert all(name.endswith("key.bias") for name in silent)  # softmax does not see what all keys share


def test_gradient_check():
    torch.manual_seed(0)
    model = shuffled(Scratchpad(length=2, dim=2, layers=1, heads=1))
    names, weights = zip(*model.named_parameters(), strict=True)

    def run(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (cube.points(2), None, True))

    assert torch.autograd.gradcheck(run, weights)


@pytest.mark.parametrize("positions", ["sum", "concatenate"])
def test_it_learns_parity_step_by_step(positions):
    torch.manual_seed(0)
    model = Scratchpad(length=4, dim=16, positions=positions)
    bits = cube.points(4, dtype=torch.float32)
    steps = bits.cumprod(-1)
    seen = losses(model, lambda _: (model(bits, all_positions=True) - steps).square().mean(), lr=5e-3)
    assert falls(seen, to=0.1)
    # By itself it now writes PARITY of every prefix, and flipping any bit flips the last: sensitivity 4 of 4.
    assert torch.equal(model.generate(bits), steps)
    model.eval()
    for answer in (model, lambda x: model(x, "own"), lambda x: model.generate(x)[:, -1]):
        assert teeter.sensitivity(answer, bits, BitFlip(), design="paper", draws=1).value == 1


def test_blowup_and_sharpness():
    torch.manual_seed(0)
    model = Scratchpad(**SMALL).eval()
    assert teeter.blowup(model, BITS).factors.shape == (64, 2 * 2 + 1 + 2 * 3 + 1)
    assert teeter.sharpness(model, BITS, draws=3).value > 0


def test_untrained_sharpness_does_not_grow_with_the_number_of_steps():
    torch.manual_seed(0)
    model = Scratchpad(length=64, dim=8).eval()
    draw = torch.Generator().manual_seed(1)
    short, long = (
        teeter.sharpness(model, 1.0 - 2 * torch.randint(2, (100, n), generator=draw), draws=10).value for n in (4, 64)
    )
    assert 0.5 < long / short < 2  # it was 16 times as large where all steps were the answer


class Alone(nn.Module):
    """A scratchpad that writes alone, as a model of its own."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, bits):
        return self.model(bits, "own")


def test_noise_goes_to_the_bits_or_to_the_steps():
    torch.manual_seed(0)
    model = shuffled(Scratchpad(**SMALL)).eval()
    bits = BITS.long()
    noise = Noise(0, torch.arange(64), torch.full((64,), 2), torch.zeros(64, dtype=torch.long))
    seen = []
    model.encoder_norm.register_forward_hook(lambda module, given, out: seen.append(out))
    answers = [
        model(bits),
        HiddenNoise("embedded_bits", sigma2=4.0).run(model, bits, noise),
        HiddenNoise("embedded_steps", sigma2=4.0).run(model, bits, noise),
    ]
    assert all(bool((answers[i] != answers[j]).all()) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert torch.equal(seen[2], seen[0]) and not torch.equal(seen[1], seen[0])
    # Writing alone it reads the bits once, however many steps it writes.
    alone = Alone(model)
    assert bool((HiddenNoise("embedded_bits", sigma2=4.0).run(alone, bits, noise) != alone(bits)).all())
    for place in (EmbeddingNoise(), HiddenNoise("embedding")):
        with pytest.raises(InputError, match="ran 2 times in one forward: choose another"):
            place.run(model, bits, noise)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Scratchpad(layers=0), "layers is a whole number of at least 1, got 0"),
        (lambda: Scratchpad(dim=7), "dim = 7"),
        (lambda: Scratchpad(**SMALL)(BITS, BITS), "k < n.*\\(64, 6\\)"),
        (lambda: Scratchpad(**SMALL)(BITS, "mine"), "'own' for the model's own, got 'mine'"),  # pyright: ignore
        (lambda: Scratchpad(**SMALL)(BITS, BITS[:3, :2]), "\\(3, 2\\)"),
        (lambda: Scratchpad(**SMALL)(torch.ones(1, 7)), "length 7"),
        (lambda: Scratchpad(**SMALL)(torch.ones(6)), "shape \\(batch, n\\)"),
        (lambda: Scratchpad(**SMALL)(BITS, torch.zeros(64, 2)), "\\+1 and -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
