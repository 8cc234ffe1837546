"""Other people's models and data."""

from teeter.integrations.loading import load_inputs, load_model

__all__ = ["load_inputs", "load_model"]
