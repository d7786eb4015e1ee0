"""Checks of the layer model."""
