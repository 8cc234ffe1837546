"""Random models of transformers, small enough to make in a moment, and a tokenizer of whole words."""

from pathlib import Path

import torch

from teeter.integrations.pretrained import quiet

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "film", "was", "good", "bad", "a", "dull", "fine", "plot", "$"]


def tokenizer(folder: Path | None = None):
    """Words split at blanks, between [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    if folder is not None:
        made.save_pretrained(folder)
    return made


def save(model, folder: Path) -> None:
    """Without the bars that save_pretrained draws."""
    with quiet():
        model.save_pretrained(folder)


def config(kind: str, **more):
    """The smallest configuration of a kind that runs; each kind takes those of the names that it knows."""
    from transformers import AutoConfig

    names = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    names |= {"intermediate_size": 24, "ffn_dim": 24, "max_position_embeddings": 32, "head_dim": 8, "state_size": 4}
    names |= {"vocab_size": 37, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "word_embed_proj_dim": 16}
    names |= {"image_size": 16, "patch_size": 4}
    known = AutoConfig.for_model(kind)
    return AutoConfig.for_model(kind, **({name: names[name] for name in names if hasattr(known, name)} | more))


def causal(kind: str, **more):
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config(kind, **more)).eval().float()


def text_classifier():
    from transformers import BertForSequenceClassification

    torch.manual_seed(0)
    return BertForSequenceClassification(config("bert", vocab_size=len(WORDS), initializer_range=0.5)).eval()


def image_classifier():
    from transformers import ViTForImageClassification

    torch.manual_seed(0)
    return ViTForImageClassification(config("vit", num_labels=3, initializer_range=0.5)).eval()
