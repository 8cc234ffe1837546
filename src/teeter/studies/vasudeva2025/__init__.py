"""Vasudeva et al. (2025), Transformers Learn Low Sensitivity Functions."""
