"""Signals that are made once, at the end of a diagnosed run, when nothing of the host can be
disturbed any more.
"""
