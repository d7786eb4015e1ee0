"""Properties that a model must have, each measured in one place: called while observing, by trials,
by the assertions of `sawbones.testing` and by the triage.
"""
