"""Other people's models and data, made ready to measure."""

from teeter.integrations.adapters import Keywords, NextToken, adapt
from teeter.integrations.efficientnet import EFFICIENTNET_FORMAT, efficientnet_lite0
from teeter.integrations.images import ImageFormat, find_images, read_images
from teeter.integrations.loading import Loaded, load, load_inputs
from teeter.integrations.model_by_name import load_model
from teeter.integrations.pretrained import encoder, pretrained
from teeter.integrations.probe import Probe, encode, fit_probe
from teeter.integrations.text import read_labels, read_texts, special_tokens, tokenize, tokenizer_of, words
from teeter.integrations.timm_models import timm_classifier, timm_directory
from teeter.integrations.weights import fill, read_weights

__all__ = [
    "EFFICIENTNET_FORMAT",
    "ImageFormat",
    "Keywords",
    "Loaded",
    "NextToken",
    "Probe",
    "adapt",
    "efficientnet_lite0",
    "encode",
    "encoder",
    "fill",
    "find_images",
    "fit_probe",
    "load",
    "load_inputs",
    "load_model",
    "pretrained",
    "read_images",
    "read_labels",
    "read_texts",
    "read_weights",
    "special_tokens",
    "timm_classifier",
    "timm_directory",
    "tokenize",
    "tokenizer_of",
    "words",
]
