"""Disk <-> schema: the run folder, its database, and the codec between records and JSON."""

from sawbones.store.codec import from_plain, to_plain
from sawbones.store.errors import RunNotFound
from sawbones.store.opening import find_runs
from sawbones.store.reader import read_run
from sawbones.store.writer import RunWriter

__all__ = ["RunNotFound", "RunWriter", "find_runs", "from_plain", "read_run", "to_plain"]
