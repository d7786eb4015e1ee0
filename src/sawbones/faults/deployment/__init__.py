"""Checks of the layer deployment."""
