"""One split by itself: doubled and broken rows, labels that contradict each other, classes and
numbers that no model can use.
"""
