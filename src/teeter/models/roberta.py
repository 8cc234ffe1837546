"""V's RoBERTa classifier, trained from scratch, with softmax or ReLU attention (V section 6, A.4, appendix D)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError, UnknownName
from teeter.models.texts import Texts, library, text_and_mask

__all__ = ["ATTENTIONS", "Roberta", "relu_attention"]

# What the argument says -> what it is called inside transformers.
ATTENTIONS = {"softmax": "sdpa", "relu": "teeter-relu", "relu-mean": "teeter-relu-mean"}


def relu_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scaling: float | None = None,
    mean: bool = False,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """ReLU(Q K^T s) V and the weights: V Eq. 3 with the row-wise softmax replaced by ReLU. s is 1/sqrt(features).

    The tensors are (..., tokens, features). Where `mask` (broadcast to queries x keys) is False the weight is exactly
    0. The weights of a query do not add up to 1. V does not say that they should, and the released code leaves them so;
    `mean` divides them by the number of keys that are there (as Wortsman et al. 2023, arXiv 2309.08586, do for images).

    >>> query, key = torch.tensor([[2.0]]), torch.tensor([[3.0], [-3.0], [1.0]])
    >>> relu_attention(query, key, torch.ones(3, 1))
    (tensor([[8.]]), tensor([[6., 0., 2.]]))
    >>> relu_attention(query, key, torch.ones(3, 1), torch.tensor([True, True, False]), mean=True)
    (tensor([[3.]]), tensor([[3., 0., 0.]]))
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    weights = (query @ key.transpose(-1, -2) * scale).relu()
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    if mean:
        weights = weights / (key.shape[-2] if mask is None else mask.sum(-1, keepdim=True).clamp_min(1))
    weights = nn.functional.dropout(weights, dropout, training=dropout > 0)
    return weights @ value, weights


class Roberta(nn.Module):
    """RoBERTa (Liu et al. 2019, arXiv 1907.11692) as transformers has it, and its classification head on <s>.

    V gives 4 layers, 8 heads and dropout 0.1; width 256, feed-forward 3072 and length 128 are the released code's, the
    rest is roberta-base's (one token type, LayerNorm's epsilon 1e-5). `attention` is "softmax", "relu", or "relu-mean"
    (see `relu_attention`). `padding` is the number that no position and no embedding is learned for.

    Positions are counted over the attention mask, not over token numbers that differ from `padding`, so that a token
    replaced at random never moves the others; <s> is the first token of the text, on whichever side the padding is.

    V's text puts its noise after position and LayerNorm, `EmbeddingNoise()`; the released code before them,
    `EmbeddingNoise("word_embeddings")`.

    >>> model = Roberta(vocabulary=20, hidden=8, ffn=16, heads=2, layers=1, length=6, attention="relu").eval()
    >>> model({"input_ids": torch.tensor([[0, 5, 2]]), "attention_mask": torch.ones(1, 3)}).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        vocabulary: int = 50_265,
        hidden: int = 256,
        ffn: int = 3072,
        heads: int = 8,
        layers: int = 4,
        length: int = 128,
        dropout: float = 0.1,
        classes: int = 2,
        attention: str = "softmax",
        padding: int = 1,
    ) -> None:
        if attention not in ATTENTIONS:
            raise UnknownName("attention", attention, ATTENTIONS)
        if heads < 1 or hidden % heads or not 0 <= padding < vocabulary:
            raise InputError(
                f"heads divide the width and padding is in the vocabulary, got hidden = {hidden}, heads = {heads}, "
                f"padding = {padding}, vocabulary = {vocabulary}"
            )
        transformers = library()
        _register(transformers)
        super().__init__()
        self.length, self.padding = length, padding
        config = transformers.RobertaConfig(
            vocab_size=vocabulary,
            hidden_size=hidden,
            intermediate_size=ffn,
            num_attention_heads=heads,
            num_hidden_layers=layers,
            max_position_embeddings=length + padding + 1,  # positions are counted from the one after the padding's
            type_vocab_size=1,
            layer_norm_eps=1e-5,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            num_labels=classes,
            pad_token_id=padding,
            bos_token_id=None,
            eos_token_id=None,
            attn_implementation=ATTENTIONS[attention],
        )
        self.model = transformers.RobertaForSequenceClassification(config)

    def forward(self, inputs: Texts) -> Tensor:
        tokens, mask = text_and_mask(inputs, self.length)
        places = mask.long().cumsum(-1) * mask + self.padding
        hidden = self.model.roberta(tokens, attention_mask=mask.long(), position_ids=places).last_hidden_state
        start = hidden[torch.arange(len(tokens), device=hidden.device), mask.long().argmax(-1)]
        return self.model.classifier(start.unsqueeze(1))


def _register(transformers: Any) -> None:
    """Make the ReLU variants known to transformers, under the mask of its own `sdpa` (True is attended to): a name
    with no mask of its own would be given none, and would attend to padding."""
    masks = transformers.AttentionMaskInterface
    for name, mean in (("relu", False), ("relu-mean", True)):
        transformers.AttentionInterface.register(ATTENTIONS[name], partial(_attend, mean=mean))
        masks.register(ATTENTIONS[name], masks()["sdpa"])


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    dropout: float,
    mean: bool,
    **unused: Any,
) -> tuple[Tensor, Tensor]:
    """`relu_attention` as transformers calls it: tensors are (texts, heads, tokens, features), `dropout` is 0 outside
    training, and the answer has its heads beside the features."""
    mixed, weights = relu_attention(query, key, value, attention_mask, scaling=scaling, mean=mean, dropout=dropout)
    return mixed.transpose(1, 2), weights
