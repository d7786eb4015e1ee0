"""Evaluations as populations: rows, answers and targets of every pass over a model that is trained
no more, and what sets them apart. Under `diagnose` only.
"""
