"""Checks of the layer pipeline."""
