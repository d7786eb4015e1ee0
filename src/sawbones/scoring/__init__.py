"""Scoring: diagnose over many scripts with known answers; top-1, top-3, located, false alarms,
time.
"""
