"""Checks of the layer loop."""
