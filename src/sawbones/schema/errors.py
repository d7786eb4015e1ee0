"""The one exception base of the package.

Whatever Sawbones raises on purpose is a SawbonesError, so one except clause tells its refusals from
bugs. The first line of a message stands alone: what happened, with the value; what was expected;
what to do.
"""


class SawbonesError(Exception):
    """The base of every error that Sawbones raises on purpose; the first line stands alone."""
