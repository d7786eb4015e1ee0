"""Pure maths on series. Nothing here knows torch, files or the clock; nothing is poisoned by one
NaN.
"""
