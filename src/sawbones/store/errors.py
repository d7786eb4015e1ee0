"""What goes wrong with run folders, each in one clear line."""

from __future__ import annotations

from sawbones.schema.errors import SawbonesError


class RunNotFound(SawbonesError):
    """No recorded run where one was expected."""


class RunNotReadable(RunNotFound):
    """A run folder that is damaged, or made to be read and not recorded."""
