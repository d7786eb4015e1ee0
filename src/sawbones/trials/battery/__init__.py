"""Trials that belong to no single fault, one file each: people run them by `sawbones try`, and the
differential runs them where a symptom has no cause yet.
"""
