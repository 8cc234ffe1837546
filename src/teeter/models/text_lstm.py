"""V's LSTM classifier of texts (V section 6, A.2, A.4 and appendix D)."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from teeter.models.sizes import check_rates, check_sizes
from teeter.models.texts import Texts, text_and_mask

__all__ = ["TextLSTM"]


class TextLSTM(nn.Module):
    """Embedding, LayerNorm, an LSTM of several layers, and a linear head on its state at the last token of the text.

    h_t = LSTM(LayerNorm(E[x_t]), h_{t-1}), logits = W h_T + b. Dropout is between the LSTM's layers, as in torch's LSTM
    of several; they are apart here because cuDNN keeps the state of its dropout to itself, where no checkpoint reaches
    it. V gives 4 layers and dropout 0.1; dimension 256 is the released scripts'. V's noise goes where `embeddings`
    ends, after the LayerNorm: that is where `EmbeddingNoise()` finds it.

    Padding on either side, or in between, never reaches the LSTM. A text of no tokens is read as the LSTM's first
    state, zero. The released code gives its optimizer the parameters of `lstm` alone, so that `embeddings` and `head`
    stay as they were drawn; here nothing is frozen, and a study says what it trains.

    >>> model = TextLSTM(vocabulary=20, dim=8, layers=2).eval()
    >>> one = model({"input_ids": torch.tensor([[5, 6]]), "attention_mask": torch.tensor([[1, 1]])})
    >>> two = model({"input_ids": torch.tensor([[5, 6, 1]]), "attention_mask": torch.tensor([[1, 1, 0]])})
    >>> torch.equal(one, two)
    True
    """

    def __init__(
        self, *, vocabulary: int = 50_265, dim: int = 256, layers: int = 4, classes: int = 2, dropout: float = 0.1
    ) -> None:
        super().__init__()
        check_sizes(vocabulary=vocabulary, dim=dim, layers=layers, classes=classes)
        check_rates(dropout=dropout)
        self.vocabulary = vocabulary
        self.embeddings = nn.Sequential(
            OrderedDict(word_embeddings=nn.Embedding(vocabulary, dim), norm=nn.LayerNorm(dim))
        )
        self.lstm = nn.ModuleList(nn.LSTM(dim, dim, batch_first=True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(dim, classes)

    def forward(self, inputs: Texts) -> Tensor:
        tokens, mask = text_and_mask(inputs, self.vocabulary)
        embedded = self.embeddings(tokens)
        # Text first and padding after it, where an LSTM that reads from the left has finished: cheaper than packing.
        order, text = (~mask).long().argsort(dim=-1, stable=True), torch.arange(len(tokens), device=tokens.device)
        # Whole vectors are moved: the gradient of `gather` would add up their numbers one by one, and on a GPU sort all
        # of them where they are to be added in a fixed order.
        states = embedded[text.unsqueeze(-1), order]
        for i, layer in enumerate(self.lstm):
            states, _ = layer(self.dropout(states) if i else states)
        length = mask.sum(-1)
        last = states[text, (length - 1).clamp_min(0)]
        return self.head(last * (length > 0).unsqueeze(-1))
