"""What holds for all models of texts: sizes, seeds, gradients, padding, training, sensitivity."""

import functools
import subprocess
import sys

import pytest
import torch
from torch.nn.functional import cross_entropy, pad

import teeter
from teeter.errors import InputError, MissingExtra
from teeter.models import GPT2, MODELS, Roberta, TextLSTM
from teeter.models.texts import text_and_mask
from teeter.perturb import EmbeddingNoise, TokenReplace
from tests.models.launched import Launched

TINY = {
    "gpt2": {"heads": 2, "length": 12},
    "roberta": {"width": 24, "heads": 2, "length": 12},
    "roberta-relu": {"width": 24, "heads": 2, "length": 12},
    "text-lstm": {},
}
names = pytest.mark.parametrize("name", TINY)


def tiny(name, seed=0, **more):
    torch.manual_seed(seed)
    return MODELS[name](**({"vocabulary": 30, "dim": 16, "layers": 2} | TINY[name] | more)).eval()


def lively(name, **more):
    """Weights drawn so wide that answers differ: as they are at first, transformers all but ignore their input."""
    model = tiny(name, **more)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.5)
    return model


def texts(n=8, length=9, seed=1):
    """<s> ... </s> of several lengths, padded on the right."""
    draw = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, 30, (n, length), generator=draw)
    ends = torch.randint(3, length + 1, (n, 1), generator=draw)
    place = torch.arange(length)
    tokens = tokens.where(place < ends - 1, torch.where(place == ends - 1, 2, 1))
    tokens[:, 0] = 0
    return {"input_ids": tokens, "attention_mask": (place < ends).long()}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # Tables of 50,265 x 256 = 12,867,840 words, then:
        # LayerNorm 512; 4 layers of 4 gates (256 x 256 + 256 x 256 + 256 + 256) = 526,336; head 256 x 2 + 2.
        ("text-lstm", 12_867_840 + 512 + 4 * 526_336 + 514),
        # 130 positions, one type, LayerNorm; 4 layers of q, k, v, output 4 (256 x 256 + 256) = 263,168, two LayerNorms
        # 1,024, feed-forward 2 x 256 x 3072 + 3072 + 256 = 1,576,192; head 256 x 256 + 256 and 256 x 2 + 2.
        ("roberta", 12_867_840 + 131 * 256 + 512 + 4 * (263_168 + 1_024 + 1_576_192) + 65_792 + 514),
        ("roberta-relu", 20_329_730),
        # 128 positions; 4 layers as RoBERTa's with a feed-forward of 1024: 2 x 256 x 1024 + 1024 + 256 = 525,568;
        # a last LayerNorm 512; a head without bias 512.
        ("gpt2", 12_867_840 + 128 * 256 + 4 * (263_168 + 1_024 + 525_568) + 512 + 512),
    ],
)
def test_parameters(name, count):
    with torch.device("meta"):
        assert sum(weights.numel() for weights in MODELS[name]().parameters()) == count


@names
def test_shape_and_seed(name):
    inputs = texts()
    logits = tiny(name)(inputs)
    assert logits.shape == (8, 2) and logits.dtype == torch.float32
    assert torch.equal(logits, tiny(name)(inputs))
    assert not torch.allclose(logits, tiny(name, seed=1)(inputs))
    assert tiny(name, classes=5)(inputs).shape == (8, 5)
    assert torch.equal(tiny(name)(inputs["input_ids"]), tiny(name)({"input_ids": inputs["input_ids"]}))


@names
def test_padding_never_counts(name):
    model, inputs = lively(name), texts(n=6)
    logits = model(inputs)
    assert float(logits.detach().std(0).min()) > 0.1  # the texts are told apart, so that equal answers mean something
    tokens, mask = inputs["input_ids"], inputs["attention_mask"]
    with_other_numbers = {"input_ids": tokens.where(mask.bool(), 17), "attention_mask": mask}
    wider = {"input_ids": pad(tokens, (0, 3), value=8), "attention_mask": pad(mask, (0, 3))}
    on_the_left = {"input_ids": pad(tokens, (3, 0), value=8), "attention_mask": pad(mask, (3, 0))}
    order = torch.tensor([0, 9, 1, 2, 10, 3, 4, 5, 6, 7, 11, 8])
    in_between = {key: part[:, order] for key, part in wider.items()}
    for padded in (with_other_numbers, wider, on_the_left, in_between):
        torch.testing.assert_close(model(padded), logits, rtol=1e-4, atol=1e-5)
    for i in range(len(tokens)):
        alone = tokens[i : i + 1, mask[i].bool()]
        torch.testing.assert_close(model(alone), logits[i : i + 1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "roberta", "roberta-relu"])
@pytest.mark.parametrize("padded", [False, True])
def test_no_forward_waits_for_a_value(name, padded, monkeypatch):
    """Reading one number of a tensor makes a GPU wait; the CPU alone, where that is free, looks at token numbers."""
    model, inputs = lively(name), texts()
    given = inputs if padded else inputs["input_ids"]
    logits = model(given)
    monkeypatch.setattr("teeter.models.values.breaks", lambda values, rule: False)
    with Launched() as launched:
        again = model(given)
    assert torch.equal(again, logits)
    assert "embedding" in launched.names
    assert "_local_scalar_dense" not in launched.names and "equal" not in launched.names


@pytest.mark.parametrize("name", ["gpt2", "roberta"])
def test_the_mask_in_full_is_what_transformers_makes_of_the_short_one(name):
    model = lively(name)
    inputs = {key: part.flip(-1) for key, part in texts().items()} if name == "gpt2" else texts()
    logits, short = model(inputs), []
    inner = model.model.transformer if name == "gpt2" else model.model.roberta

    def shortened(module, args, kwargs):
        short.append(kwargs["attention_mask"])
        return args, kwargs | {"attention_mask": inputs["attention_mask"]}

    inner.register_forward_pre_hook(shortened, with_kwargs=True)
    torch.testing.assert_close(model(inputs), logits, rtol=1e-5, atol=1e-5)
    assert short[0].shape == (8, 1, 9, 9) and short[0].dtype == torch.bool


@pytest.mark.parametrize("name", ["gpt2", "roberta", "roberta-relu"])
def test_a_text_padded_on_the_left_has_finite_gradients(name):
    model = lively(name)
    inputs = {key: part.flip(-1) for key, part in texts().items()}
    model(inputs).sum().backward()
    assert all(bool(weights.grad.isfinite().all()) for weights in model.parameters())


@names
def test_a_model_built_without_memory_and_filled_later(name):
    model, inputs = lively(name), texts()
    with torch.device("meta"):
        empty = tiny(name)
    filled = empty.to_empty(device="cpu")
    for buffer in filled.buffers():
        buffer.fill_(10**6)  # to_empty() promises nothing
    filled.load_state_dict(model.state_dict())
    assert torch.equal(filled(inputs), model(inputs))


@names
@pytest.mark.parametrize("rate", [None, 0.3])
def test_dropout_is_at_the_given_rate_everywhere(name, rate, monkeypatch):
    model = tiny(name, **({} if rate is None else {"dropout": rate})).train()
    expected = 0.1 if rate is None else rate
    rates, attention, fired = [part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)], [], []
    # The embedding, in each layer attention and what follows attention and MLP, RoBERTa's head; one for all of an LSTM.
    assert rates == [expected] * {"gpt2": 1 + 2 * 3, "text-lstm": 1}.get(name, 1 + 2 * 3 + 1)
    if name == "text-lstm":
        return
    attend = torch.nn.functional.scaled_dot_product_attention

    def spy(*given, **options):
        attention.append(options["dropout_p"])
        return attend(*given, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.register_forward_hook(lambda module, given, out: fired.append(float((out == 0).double().mean())))
    model(texts())
    assert attention == ([] if name == "roberta-relu" else [expected] * 2)
    assert min(fired) > 0  # each that ran has dropped something


@names
def test_gradients_reach_every_parameter(name):
    model = lively(name).double()
    tokens = torch.stack([torch.randperm(30)[:12] for _ in range(40)])  # every row of every table is read
    cross_entropy(model(tokens), torch.arange(40) % 2).backward()
    for key, weights in model.named_parameters():
        assert weights.grad is not None, key
        size = float(weights.grad.abs().max())
        if name == "roberta" and key.endswith("key.bias"):
            assert size < 1e-14  # it shifts all scores of a query alike, which softmax does not see and ReLU does
        else:
            assert size > 1e-5, key
        if key.endswith(("word_embeddings.weight", "wte.weight")):
            unmoved = (weights.grad.abs().amax(-1) == 0).nonzero().flatten().tolist()
            assert unmoved == ([1] if "roberta" in name else [])  # RoBERTa's padding stays what it is


@functools.cache
def trained(name):
    """A model that has learned to say whether the first word's number is below 16, and its losses on the way."""
    model, inputs = tiny(name, dropout=0.0).train(), texts(n=64)
    labels = (inputs["input_ids"][:, 1] < 16).long()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(200):
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return model.eval(), losses


@names
def test_training_lowers_the_loss(name):
    losses = trained(name)[1]
    assert losses[0] > 0.6
    assert losses[-1] < 0.1


@names
def test_sensitivity_to_replaced_tokens(name):
    """Against every token of every text exchanged for every other."""
    model, inputs, replaced = trained(name)[0], texts(n=64), TokenReplace(30, skip=(0, 1, 2))
    rates = []
    with torch.no_grad():
        said = model(inputs).argmax(-1)
        for text, there in enumerate(replaced.positions(inputs)):
            row = {key: part[text].repeat(30, 1) for key, part in inputs.items()}
            changed = []
            for place in there.nonzero().flatten().tolist():
                tokens = row["input_ids"].clone()
                tokens[:, place] = torch.arange(30)
                changed.append((model({**row, "input_ids": tokens}).argmax(-1) != said[text]).double().mean())
            rates.append(torch.stack(changed).mean())
    truth = float(torch.stack(rates).mean())
    estimate = teeter.sensitivity(model, inputs, replaced, half_width=0.02, seed=3)
    assert 0.05 < truth < 0.5
    assert abs(estimate.value - truth) < 0.02
    assert teeter.sensitivity(model, inputs, replaced, half_width=0.02, seed=3, batch=100).value == estimate.value


@names
def test_sensitivity_to_noise_on_the_embedding(name):
    """At its end, where V's text has it, and at the words, where the released RoBERTa has it."""
    model, inputs = trained(name)[0], texts(n=64)
    estimate = teeter.sensitivity(model, inputs, EmbeddingNoise(sigma2=15.0, skip=(0, 1, 2)), budget=2048, seed=3)
    assert 0 < estimate.low < estimate.value < estimate.high < 1
    none = teeter.sensitivity(model, inputs, EmbeddingNoise(sigma2=0.0), budget=512, seed=3)
    assert none.value == 0
    before = {"gpt2": "wte"}.get(name, "word_embeddings")
    other = teeter.sensitivity(model, inputs, EmbeddingNoise(before, 15.0, skip=(0, 1, 2)), budget=2048, seed=3)
    assert 0 < other.value < 1
    assert (other.value == estimate.value) == (name == "gpt2")  # the others have a LayerNorm between the two places


def test_importing_models_is_cheap():
    code = "import sys, teeter.models; print([name for name in ('transformers', 'tokenizers') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("make", [GPT2, Roberta])
def test_without_transformers(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"need transformers .*pip install 'teeter\[text\]'"):
        make()
    TextLSTM(vocabulary=5, dim=4)  # needs none


@pytest.mark.parametrize(
    ("inputs", "longest", "message"),
    [
        ({"tokens": torch.zeros(2, 3)}, None, "mapping with 'input_ids', or token numbers alone, got tokens"),
        (torch.zeros(2, 3), None, r"token numbers of shape \(texts, tokens\), got torch.float32 \(2, 3\)"),
        (torch.zeros(3, dtype=torch.long), None, r"got torch.int64 \(3,\)"),
        (torch.zeros(2, 3, dtype=torch.long), 2, r"reads 2 tokens \(its length\), got 3"),
        (
            {"input_ids": torch.zeros(2, 3, dtype=torch.long), "attention_mask": torch.ones(2, 4)},
            None,
            r"the shape of its tokens, \(2, 3\), got \(2, 4\)",
        ),
    ],
)
def test_texts_that_are_none(inputs, longest, message):
    with pytest.raises(InputError, match=message):
        text_and_mask(inputs, 30, longest)


@names
def test_tokens_that_the_model_does_not_know(name):
    for tokens, range in ((torch.tensor([[0, 30]]), "0 to 30"), (torch.tensor([[-1, 3]]), "-1 to 3")):
        with pytest.raises(InputError, match=f"token numbers run from 0 to 29, got {range}"):
            tiny(name)(tokens)


@pytest.mark.parametrize("name", ["gpt2", "roberta"])
def test_texts_that_are_too_long(name):
    with pytest.raises(InputError, match="reads 12 tokens .* got 13"):
        tiny(name)(torch.zeros(1, 13, dtype=torch.long))
