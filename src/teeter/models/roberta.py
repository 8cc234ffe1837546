"""V's RoBERTa classifier, trained from scratch, with softmax or ReLU attention (V section 6, A.4, appendix D)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError, UnknownName
from teeter.models.relu_attention import relu_attention
from teeter.models.sizes import check_heads, check_rates, check_sizes
from teeter.models.texts import Texts, attended, library, text_and_mask

__all__ = ["ATTENTIONS", "Roberta"]

# What the argument says -> what it is called inside transformers.
ATTENTIONS = {"softmax": "sdpa", "relu": "teeter-relu", "relu-mean": "teeter-relu-mean"}


class Roberta(nn.Module):
    """RoBERTa (Liu et al. 2019, arXiv 1907.11692) as transformers has it, and its classification head on <s>.

    V gives 4 layers, 8 heads and dropout 0.1; dimension 256, feed-forward width 3072 and length 128 are the released
    code's, the rest is roberta-base's (one token type, LayerNorm's epsilon 1e-5). `attention` is "softmax", "relu", or
    "relu-mean" (see `relu_attention`). `padding` is the number that no position and no embedding is learned for.

    Positions are counted over the attention mask, not over token numbers that differ from `padding`, so that a token
    replaced at random never moves the others; <s> is the first token of the text, on whichever side the padding is.

    V's text puts its noise after position and LayerNorm, `EmbeddingNoise()`; the released code before them,
    `EmbeddingNoise("word_embeddings")`.

    >>> model = Roberta(vocabulary=20, length=6, dim=8, layers=1, heads=2, width=16, attention="relu").eval()
    >>> model({"input_ids": torch.tensor([[0, 5, 2]]), "attention_mask": torch.ones(1, 3)}).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        *,
        vocabulary: int = 50_265,
        length: int = 128,
        dim: int = 256,
        layers: int = 4,
        heads: int = 8,
        width: int = 3072,
        classes: int = 2,
        dropout: float = 0.1,
        attention: str = "softmax",
        padding: int = 1,
    ) -> None:
        if attention not in ATTENTIONS:
            raise UnknownName("attention", attention, ATTENTIONS)
        check_sizes(vocabulary=vocabulary, length=length, layers=layers, width=width, classes=classes)
        check_heads(dim, heads)
        check_rates(dropout=dropout)
        if not 0 <= padding < vocabulary:
            raise InputError(
                f"padding is a token of the vocabulary, got padding = {padding} and vocabulary = {vocabulary}"
            )
        transformers = library()
        _register(transformers)
        super().__init__()
        self.vocabulary, self.length, self.padding = vocabulary, length, padding
        config = transformers.RobertaConfig(
            vocab_size=vocabulary,
            hidden_size=dim,
            intermediate_size=width,
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
        tokens, mask = text_and_mask(inputs, self.vocabulary, self.length)
        hidden = self.model.roberta(
            tokens,
            attention_mask=attended(mask),
            position_ids=mask.long().cumsum(-1) * mask + self.padding,
            token_type_ids=torch.zeros_like(tokens),  # else read from a buffer that to_empty() leaves unfilled
        ).last_hidden_state
        start = hidden[torch.arange(len(tokens), device=hidden.device), mask.long().argmax(-1)]
        return self.model.classifier(start.unsqueeze(1))

    def __setstate__(self, state: dict[str, Any]) -> None:
        _register(library())  # a process that unpickles the model has not made one
        super().__setstate__(state)


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
