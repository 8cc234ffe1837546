import torch

from teeter.models import GPT2


def make():
    torch.manual_seed(0)
    model = GPT2(vocabulary=20, length=9, dim=12, layers=2, heads=3).double().eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.5)
    return model


def batch():
    torch.manual_seed(3)
    lengths = torch.tensor([9, 3, 6, 1])
    mask = (torch.arange(9) < lengths.unsqueeze(-1)).long()
    return {"input_ids": torch.randint(2, 20, (4, 9)).where(mask.bool(), 1), "attention_mask": mask}


def test_padded_on_the_right_it_is_what_transformers_does_by_itself():
    model, inputs = make(), batch()
    model.model.config.pad_token_id = 1
    torch.testing.assert_close(model(inputs), model.model(**inputs).logits, rtol=0, atol=1e-14)


def test_padded_on_the_left_the_text_starts_at_position_0():
    """transformers by itself would count the padding too."""
    model, inputs = make(), batch()
    answer = model({name: part.flip(-1) for name, part in inputs.items()})
    for i, n in enumerate((9, 3, 6, 1)):
        alone = inputs["input_ids"][i : i + 1, :n].flip(-1)
        torch.testing.assert_close(answer[i : i + 1], model(alone), rtol=0, atol=1e-12)


def test_it_is_causal_and_reads_the_last_token():
    model, inputs = make(), batch()
    states = model.model.transformer(inputs["input_ids"]).last_hidden_state
    last = states[torch.arange(4), torch.tensor([8, 2, 5, 0])] @ model.model.score.weight.T
    torch.testing.assert_close(model(inputs), last, rtol=0, atol=1e-12)  # what follows a token never reaches it


def test_a_token_that_is_the_padding_number_is_still_the_last():
    model = make()
    tokens = torch.tensor([[5, 6, 1]])
    assert not torch.allclose(model(tokens), model(tokens[:, :2]))
