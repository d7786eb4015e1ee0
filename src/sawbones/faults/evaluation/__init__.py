"""Checks of the layer evaluation."""
