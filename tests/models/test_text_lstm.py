import torch

from teeter.models import TextLSTM
from tests.models.launched import Launched


def naive(model, tokens):
    """One text through the equations of Hochreiter and Schmidhuber's cell, gates in torch's order i, f, g, o."""
    norm = model.embeddings.norm
    rows = model.embeddings.word_embeddings.weight[tokens]
    rows = (rows - rows.mean(-1, keepdim=True)) / (rows.var(-1, keepdim=True, unbiased=False) + norm.eps).sqrt()
    rows = rows * norm.weight + norm.bias
    for lstm in model.lstm:
        from_below, from_before = lstm.weight_ih_l0, lstm.weight_hh_l0
        bias = lstm.bias_ih_l0 + lstm.bias_hh_l0
        state = cell = torch.zeros(lstm.hidden_size, dtype=rows.dtype)
        above = []
        for row in rows:
            i, f, g, o = (from_below @ row + from_before @ state + bias).chunk(4)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            above.append(state)
        rows = torch.stack(above)
    return model.head.weight @ rows[-1] + model.head.bias


def test_it_is_the_equations():
    torch.manual_seed(0)
    model = TextLSTM(vocabulary=12, dim=6, layers=3).double().eval()
    torch.nn.init.normal_(model.embeddings.norm.weight)
    tokens = torch.randint(12, (4, 7))
    lengths = torch.tensor([7, 1, 4, 6])
    mask = torch.arange(7) < lengths.unsqueeze(-1)
    logits = model({"input_ids": tokens, "attention_mask": mask})
    expected = [naive(model, row[:n]) for row, n in zip(tokens, lengths.tolist(), strict=True)]
    torch.testing.assert_close(logits, torch.stack(expected), rtol=0, atol=1e-14)


def test_no_tokens_at_all_is_the_first_state():
    model = TextLSTM(vocabulary=12, dim=6, layers=1).eval()
    logits = model({"input_ids": torch.tensor([[3, 4], [3, 4]]), "attention_mask": torch.tensor([[0, 0], [1, 1]])})
    assert torch.equal(logits[0], model.head.bias)
    assert not torch.equal(logits[1], model.head.bias)


def ours_and_torchs(dropout):
    """The same first weights, in layers of our own and in torch's LSTM of three."""
    torch.manual_seed(0)
    model = TextLSTM(vocabulary=12, dim=6, layers=3, dropout=dropout)
    torch.manual_seed(0)
    torch.nn.Embedding(12, 6)  # drawn before
    return model, torch.nn.LSTM(6, 6, 3, batch_first=True, dropout=dropout)


def test_layers_are_those_of_torchs_lstm():
    model, whole = ours_and_torchs(0.5)
    for one, other in zip(model.lstm.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)
    tokens = torch.randint(12, (4, 7))
    torch.manual_seed(1)
    logits = model(tokens)
    torch.manual_seed(1)
    states, _ = whole(model.embeddings(tokens))
    torch.testing.assert_close(logits, model.head(states[:, -1]))  # with dropout: it is between the layers
    assert not torch.allclose(logits, model.eval()(tokens))


def test_a_single_layer_has_no_dropout():
    model = TextLSTM(vocabulary=3, dim=2, layers=1, dropout=0.9)
    tokens = torch.tensor([[0, 1, 2]])
    assert torch.equal(model(tokens), model.eval()(tokens))


def test_gradients_of_reordered_texts_are_whole_vectors():
    """A recorded step adds up in one order: a GPU would sort what `scatter_add` adds number by number."""
    torch.manual_seed(0)
    model = TextLSTM(vocabulary=12, dim=6, layers=1).double()
    tokens, mask = torch.tensor([[3, 4, 5], [6, 7, 8]]), torch.tensor([[0, 1, 1], [1, 0, 1]])
    with Launched() as seen:
        model({"input_ids": tokens, "attention_mask": mask}).sum().backward()
    assert not any("scatter_add" in name for name in seen.names)
    table = model.embeddings.word_embeddings.weight.grad
    assert table[[3, 7]].count_nonzero() == 0 and bool((table[[4, 5, 6, 8]] != 0).any(1).all())  # padding has none
