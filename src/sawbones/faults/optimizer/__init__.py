"""Checks of the layer optimizer."""
