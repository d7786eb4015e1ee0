"""Checks of the layer data."""
