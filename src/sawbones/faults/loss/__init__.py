"""Checks of the layer loss."""
