"""Property tests of the captured model and batch: from the record, or measured now on the first
step of a short second run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sawbones.schema import Run
from sawbones.trials.bench import Bench


def measured(bench: Bench, run: Run, name: str) -> Mapping[str, Any] | str:
    """The numbers of one property test, or why there are none."""
    found = _recorded(run, name)
    if found is None and run.num_steps:
        found = _recorded(bench.rerun(max_steps=2, deep_steps=(0, 1), probe=True), name)
    if found is None:
        return (
            "the test does not apply: no model call with token ids in (batch, time) was "
            "captured, or it has no such property"
        )
    return str(found["failed"]) if "failed" in found else found


def _recorded(run: Run, name: str) -> Mapping[str, Any] | None:
    for deep in run.deep:
        found = deep.probes.get(name)
        if isinstance(found, Mapping):
            return found
    return None
