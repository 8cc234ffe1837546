"""A GPT-2 classifier, trained from scratch (V appendix A.4)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from teeter.models.sizes import check_heads, check_rates, check_sizes
from teeter.models.texts import Texts, attended, library, text_and_mask

__all__ = ["GPT2"]


class GPT2(nn.Module):
    """GPT-2 (Radford et al. 2019) as transformers has it, and a linear head on the last token of the text.

    V gives no sizes for it: 4 layers, 8 heads, dimension 256 and dropout 0.1 are those of the released script, the
    feed-forward width is GPT-2's 4 * dim, and its text is encoded as RoBERTa's is.

    Positions are counted over the attention mask, so that padding on the left does not move the text. There is no
    LayerNorm where the embedding ends: noise of V's variance is not in units of it unless it is `relative`.

    >>> model = GPT2(vocabulary=20, length=6, dim=8, layers=1, heads=2).eval()
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
        width: int | None = None,
        classes: int = 2,
        dropout: float = 0.1,
    ) -> None:
        check_heads(dim, heads)
        width = 4 * dim if width is None else width
        check_sizes(vocabulary=vocabulary, length=length, layers=layers, width=width, classes=classes)
        check_rates(dropout=dropout)
        transformers = library()
        super().__init__()
        self.vocabulary, self.length = vocabulary, length
        config = transformers.GPT2Config(
            vocab_size=vocabulary,
            n_embd=dim,
            n_inner=width,
            n_head=heads,
            n_layer=layers,
            n_positions=length,
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            num_labels=classes,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
        )
        self.model = transformers.GPT2ForSequenceClassification(config)

    def forward(self, inputs: Texts) -> Tensor:
        tokens, mask = text_and_mask(inputs, self.vocabulary, self.length)
        places = (mask.long().cumsum(-1) - 1).clamp_min(0)
        hidden = self.model.transformer(
            tokens, attention_mask=attended(mask, causal=True), position_ids=places
        ).last_hidden_state
        # transformers itself would take the last token that is not the padding's number, which text may contain.
        last = mask.shape[1] - 1 - mask.flip(-1).long().argmax(-1)
        return self.model.score(hidden[torch.arange(len(tokens), device=hidden.device), last])
