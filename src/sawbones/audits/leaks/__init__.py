"""Data that must not be known yet: records, targets, groups, times and statistics that cross from
one split to another.
"""
