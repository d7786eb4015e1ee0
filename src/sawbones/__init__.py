"""Sawbones: a debugger for PyTorch training runs."""

__version__ = "0.1.0"

__all__ = ["__version__"]
