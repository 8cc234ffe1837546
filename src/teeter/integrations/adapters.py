"""Models of the transformers library as callables from a batch to logits."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from teeter.errors import InputError
from teeter.models.texts import library

__all__ = ["KINDS", "Keywords", "NextToken", "adapt", "kind_of", "library", "logits_of", "longest_text"]

# What can be measured: the ending that says so, and the registry of transformers that lists the classes of that kind,
# some of which (GPT2LMHeadModel) carry another ending.
KINDS = {
    "ForSequenceClassification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "ForImageClassification": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "ForCausalLM": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
}
Model = TypeVar("Model")


class Keywords(nn.Module):
    """A classifier that takes its inputs by name: `model(**inputs)` for a mapping, `model(inputs)` for a tensor.

    It is a module with the classifier inside, so perturbations find the classifier's modules by name.

    >>> class Classifier(nn.Module):
    ...     def forward(self, input_ids, attention_mask=None):
    ...         return torch.stack([input_ids.sum(-1), -input_ids.sum(-1)], -1).float()
    >>> Keywords(Classifier())({"input_ids": torch.tensor([[1, 2]]), "attention_mask": torch.ones(1, 2)})
    tensor([[ 3., -3.]])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = (
            model.training
        )  # a fresh module would claim to be in training; parts of the model keep their mode

    def forward(self, inputs: Tensor | Mapping[str, Tensor]) -> Tensor:
        return logits_of(self.model(**inputs) if isinstance(inputs, Mapping) else self.model(inputs))


class NextToken(nn.Module):
    """A causal language model as a classifier of the token that comes next: (inputs, vocabulary).

    The logits are those at each row's last attended token, padded on either side; a tensor has no padding. The head
    runs at that one position alone where it is a linear layer of its own, which saves the logits of all the others.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training
        taken = inspect.signature(model.forward).parameters
        self.options = {"use_cache": False} if "use_cache" in taken else {}
        self.placed = "position_ids" in taken and _first_position(model) == 0
        # Not a module of this one as well: its weights would then have two names.
        find = getattr(model, "get_output_embeddings", None)
        head = find() if find is not None else None
        self.head = [head] if isinstance(head, nn.Linear) else []

    def forward(self, inputs: Tensor | Mapping[str, Tensor]) -> Tensor:
        named = dict(inputs) if isinstance(inputs, Mapping) else {"input_ids": inputs}
        tokens = named["input_ids"]
        if tokens.ndim != 2:
            raise InputError(f"a text is token numbers of shape (inputs, tokens), got shape {tuple(tokens.shape)}")
        last = torch.full((len(tokens),), tokens.shape[1] - 1, device=tokens.device)
        mask = named.get("attention_mask")
        if mask is not None:
            last = _last(mask)
            if self.placed and "position_ids" not in named and not bool(mask[:, 0].all()):
                # Padded on the left, a text would otherwise be read as one that starts in the middle.
                named["position_ids"] = (mask.long().cumsum(-1) - 1).clamp_min(0)
        if self.head:
            logits, narrowed = self._at(last, named)
            if narrowed:
                return logits[:, 0]
            self.head = []  # this model does something else with its head: from now on, all of the logits
        logits = self.model(**named, **self.options).logits
        return logits[torch.arange(len(last), device=logits.device), last.to(logits.device)]

    def _at(self, last: Tensor, named: dict[str, Any]) -> tuple[Tensor, bool]:
        """The model's logits with the head given one position a row, and whether that is what happened."""
        fired: list[bool] = []

        def narrow(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
            hidden = given[0]
            fired.append(hidden.shape[:2] == named["input_ids"].shape)
            if not fired[-1]:
                return None
            rows = torch.arange(len(last), device=hidden.device)
            return (hidden[rows, last.to(hidden.device)].unsqueeze(1), *given[1:])

        handle = self.head[0].register_forward_pre_hook(narrow)
        try:
            logits = self.model(**named, **self.options).logits
        finally:
            handle.remove()
        return logits, fired == [True] and logits.ndim == 3 and logits.shape[:2] == (len(last), 1)


def _last(mask: Tensor) -> Tensor:
    """The place of each row's last attended token."""
    there = mask.bool()
    if not bool(there.any(-1).all()):
        row = int((~there.any(-1)).nonzero()[0])
        raise InputError(f"text {row} is nothing but padding: leave empty texts out")
    return mask.shape[1] - 1 - there.flip(-1).long().argmax(-1)


def _first_position(model: nn.Module) -> int:
    """RoBERTa's kind counts positions by itself, from the one after its padding number."""
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding) and part.padding_idx is not None:
            return part.padding_idx + 1
    return 0


def logits_of(answer: Any) -> Any:
    """The logits of an answer that holds them by name, and any other answer as it is."""
    if isinstance(answer, Mapping) and "logits" in answer:
        return answer["logits"]
    return getattr(answer, "logits", answer)


def longest_text(model: Any) -> int | None:
    """How many tokens a model of transformers has positions for, if it says."""
    config = getattr(getattr(model, "model", model), "config", None)
    length = getattr(config, "max_position_embeddings", None)
    return length - _first_position(model) if isinstance(length, int) and isinstance(model, nn.Module) else None


def kind_of(*names: str) -> str | None:
    """Which of `KINDS` a class of one of these names is, if any.

    >>> kind_of("GPT2LMHeadModel"), kind_of("BertModel")
    ('ForCausalLM', None)
    """
    from transformers.models.auto import modeling_auto

    for kind, registry in KINDS.items():
        known: set[str] = set()
        for entry in getattr(modeling_auto, registry).values():
            known |= {entry} if isinstance(entry, str) else set(entry)
        if any(name in known or name.endswith(kind) for name in names):
            return kind
    return None


def adapt(model: Model) -> Model | Keywords | NextToken:
    """A classifier or causal language model of transformers made ready to measure; anything else unchanged.

    >>> adapt(torch.sum) is torch.sum
    True
    """
    if not (isinstance(model, nn.Module) and hasattr(model, "config") and hasattr(model, "main_input_name")):
        return model  # asked before transformers is imported, which takes seconds
    kind = kind_of(*(each.__name__ for each in type(model).__mro__))
    if kind is None:
        return model
    return NextToken(model) if kind == "ForCausalLM" else Keywords(model)
