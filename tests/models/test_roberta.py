import subprocess
import sys

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

from teeter.errors import InputError, UnknownName
from teeter.models import Roberta, relu_attention
from teeter.perturb import EmbeddingNoise
from teeter.perturb.noise import Noise


def make(attention="softmax", seed=0, **more):
    torch.manual_seed(seed)
    sizes = {"vocabulary": 20, "dim": 12, "width": 18, "heads": 3, "layers": 2, "length": 9, "attention": attention}
    model = Roberta(**(sizes | more)).double().eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.5)  # biases and LayerNorms that do something
    return model


def batch():
    torch.manual_seed(3)
    lengths = torch.tensor([9, 3, 6, 1])
    mask = (torch.arange(9) < lengths.unsqueeze(-1)).long()
    return {"input_ids": torch.randint(2, 20, (4, 9)).where(mask.bool(), 1), "attention_mask": mask}


def naive_attention(query, key, value, mask, kind):
    """One head of one text, number by number."""
    rows = []
    for q in query:
        scores = [float(q @ k) / query.shape[-1] ** 0.5 for k in key]
        there = [j for j in range(len(key)) if mask is None or mask[j]]
        if kind == "softmax":
            raw = {j: torch.tensor(scores[j], dtype=torch.float64).exp() for j in there}
            total = sum(raw.values())
        else:
            raw = {j: max(scores[j], 0.0) for j in there}
            total = len(there) if kind == "relu-mean" else 1
        rows.append(sum((raw[j] / total * value[j] for j in there), torch.zeros_like(value[0])))
    return torch.stack(rows)


def naive(model, tokens, kind):
    """One text without padding, read out of the state dict: embeddings, two post-norm layers, the head on <s>."""
    weights = model.model.state_dict()

    def linear(name, x):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, x):
        return layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-5)

    table = "roberta.embeddings"
    x = weights[f"{table}.word_embeddings.weight"][tokens] + weights[f"{table}.token_type_embeddings.weight"][0]
    x = norm(f"{table}.LayerNorm", x + weights[f"{table}.position_embeddings.weight"][2 : 2 + len(tokens)])
    for layer in range(2):
        name = f"roberta.encoder.layer.{layer}"
        q, k, v = (linear(f"{name}.attention.self.{part}", x).chunk(3, -1) for part in ("query", "key", "value"))
        heads = [naive_attention(q[h], k[h], v[h], None, kind) for h in range(3)]
        x = norm(
            f"{name}.attention.output.LayerNorm", x + linear(f"{name}.attention.output.dense", torch.cat(heads, -1))
        )
        inner = gelu(linear(f"{name}.intermediate.dense", x))
        x = norm(f"{name}.output.LayerNorm", x + linear(f"{name}.output.dense", inner))
    return linear("classifier.out_proj", linear("classifier.dense", x[0]).tanh())


@pytest.mark.parametrize("kind", ["softmax", "relu", "relu-mean"])
def test_it_is_the_equations(kind):
    model, inputs = make(kind), batch()
    logits = model(inputs)
    rows = zip(inputs["input_ids"], inputs["attention_mask"].bool(), strict=True)
    expected = torch.stack([naive(model, tokens[mask], kind) for tokens, mask in rows])
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


def test_softmax_is_what_transformers_does_by_itself():
    model, inputs = make(), batch()
    torch.testing.assert_close(model(inputs), model.model(**inputs).logits, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_relu_attention_is_its_naive_twin(masked, mean):
    torch.manual_seed(1)
    query, key, value = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    mask = torch.tensor([[True, True, False, True, False], [True] * 5]) if masked else None
    there = None if mask is None else mask[:, None, None, :]
    mixed, weights = relu_attention(query, key, value, there, mean=mean)
    for text in range(2):
        for head in range(3):
            part = (query[text, head], key[text, head], value[text, head])
            one = naive_attention(*part, None if mask is None else mask[text], "relu-mean" if mean else "relu")
            torch.testing.assert_close(mixed[text, head], one, rtol=0, atol=1e-14)
    if masked:
        assert torch.equal(weights[0, ..., [2, 4]], torch.zeros(3, 5, 2, dtype=torch.float64))
        assert int((weights[1] > 0).sum()) > 10


@pytest.mark.parametrize("mean", [False, True])
def test_relu_attention_has_the_right_gradient(mean):
    torch.manual_seed(2)
    leaves = [torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    mask = torch.tensor([[True, True, True, False]])

    def attend(query, key, value):
        return relu_attention(query, key, value, mask, mean=mean)

    assert torch.autograd.gradcheck(attend, leaves)
    assert torch.autograd.gradgradcheck(attend, leaves)


def test_a_query_that_sees_no_key_gets_nothing():
    query = torch.ones(2, 3)
    for mean in (False, True):
        mixed, weights = relu_attention(query, query, query, torch.tensor([[False, False], [True, True]]), mean=mean)
        assert torch.equal(mixed[0], torch.zeros(3)) and torch.equal(weights[0], torch.zeros(2))
        assert float(mixed[1].min()) > 0


@pytest.mark.parametrize("kind", ["relu", "relu-mean"])
def test_inside_the_model_masked_keys_weigh_nothing(kind, monkeypatch):
    seen = []

    def spy(*given, **options):
        mixed, weights = relu_attention(*given, **options)
        seen.append((weights.detach(), options))
        return mixed, weights

    monkeypatch.setattr("teeter.models.roberta.relu_attention", spy)
    model, inputs = make(kind), batch()
    model(inputs)
    assert len(seen) == 2
    padding = ~inputs["attention_mask"].bool()
    for weights, options in seen:
        assert weights.shape == (4, 3, 9, 9)
        by_key = weights.permute(0, 3, 1, 2)
        assert float(by_key[padding].abs().max()) == 0
        assert float(by_key[~padding].amax((1, 2)).min()) > 0
        assert options == {"scaling": 0.5, "mean": kind == "relu-mean", "dropout": 0.0}
    model.train()(inputs)
    assert seen[-1][1]["dropout"] == 0.1


def test_another_process_reads_a_pickled_one(tmp_path):
    """There, no model was made before: unpickling has to tell transformers of the attention."""
    models, inputs = [make(kind) for kind in ("softmax", "relu", "relu-mean")], batch()
    torch.save((models, inputs, [model(inputs) for model in models]), tmp_path / "models.pt")
    code = f"""
import torch
models, inputs, logits = torch.load({str(tmp_path / "models.pt")!r}, weights_only=False)
print([torch.equal(model(inputs), answer) for model, answer in zip(models, logits)])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[True, True, True]\n", 0), done.stderr


def test_dropout_of_relu_attention():
    torch.manual_seed(0)
    ones = torch.ones(1, 1000, 1)
    weights = relu_attention(ones[:, :4], ones, ones, dropout=0.25)[1]
    assert sorted(weights.unique().tolist()) == pytest.approx([0, 4 / 3])
    assert float((weights == 0).double().mean()) == pytest.approx(0.25, abs=0.05)


def test_a_token_that_becomes_the_padding_number_moves_no_other():
    model, inputs = make(), batch()
    with torch.no_grad():
        model.model.roberta.embeddings.word_embeddings.weight[[1, 7]] = 0.25
    one, two = inputs["input_ids"].clone(), inputs["input_ids"].clone()
    one[0, 3], two[0, 3] = 1, 7
    answers = [model({**inputs, "input_ids": tokens}) for tokens in (one, two)]
    assert torch.equal(*answers)


@pytest.mark.parametrize(("module", "renormalised"), [("word_embeddings", True), ("norm", False)])
def test_both_injection_points(module, renormalised):
    """Before position and LayerNorm the noise is normalised away, after them it arrives as it is."""
    torch.manual_seed(0)
    model = Roberta(vocabulary=20, dim=12, width=18, heads=3, layers=1, length=9).double().eval()
    inputs, given = batch(), []
    model.model.roberta.encoder.register_forward_pre_hook(lambda module, arguments: given.append(arguments[0]))
    zeros = torch.zeros(4, dtype=torch.long)
    noise = Noise(0, torch.arange(4), zeros, zeros)
    model(inputs)
    EmbeddingNoise(module, sigma2=100.0).run(model, inputs, noise)
    clean, nudged = given
    assert torch.equal(clean[:, 1:], nudged[:, 1:])  # the other tokens are left alone
    if renormalised:
        torch.testing.assert_close(
            nudged[:, 0].square().mean(-1), torch.ones(4, dtype=torch.float64), rtol=1e-3, atol=0
        )
    else:
        torch.testing.assert_close(nudged[:, 0] - clean[:, 0], 10 * noise.normal(12).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("padding", [20, -1])
def test_the_padding_is_a_token(padding):
    with pytest.raises(InputError, match=f"padding = {padding} and vocabulary = 20"):
        make(padding=padding)


def test_an_unknown_attention():
    with pytest.raises(UnknownName, match="no attention named 'rely': did you mean 'relu'"):
        make("rely")
