"""Limits of the faults that make steps wait: for a store, or for a rank."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

# loop.storage-stall
STALLED_SHARE = Limit(
    0.5,
    "share of the time of the steps",
    "half of the time: the loop is as slow as its store; writes that the system buffers are never "
    "seen asleep, so healthy loops that log and save are at 0",
    weak=0.25,
)
STALLED_STEPS = Limit(
    0.5,
    "share of the steps",
    "a checkpoint per epoch, or a log that is flushed now and then, stalls few of them",
    weak=0.1,
)
STALL_MS = Limit(
    15,
    "ms, median of the steps that sleep",
    "a flush to a local disk takes a few milliseconds; two looks 10 ms apart have to find it",
)
