"""Disk <-> schema: the run folder, its database, and the codec between records and JSON.

The reader needs numpy, which a script that is about to start may not have imported yet: it is
imported when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sawbones.store.codec import from_plain, to_plain
from sawbones.store.errors import RunNotFound
from sawbones.store.opening import find_runs
from sawbones.store.writer import RunWriter

if TYPE_CHECKING:
    from sawbones.store.reader import read_run

__all__ = ["RunNotFound", "RunWriter", "find_runs", "from_plain", "read_run", "to_plain"]


def __getattr__(name: str) -> Any:
    if name != "read_run":
        raise AttributeError(name)
    return importlib.import_module("sawbones.store.reader").read_run
