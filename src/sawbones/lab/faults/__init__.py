"""Faults as runnable scripts, by layer. lab/faults/loss/double_softmax.py is the patient for
loss.double-softmax.
"""
