"""Limits of stores that stall and of ranks that are slow or wrong."""

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

# loop.slow-rank
LAST_RANK = Limit(
    0.9,
    "share of the steps in which one rank comes last",
    "by chance each of n ranks is last in one of n steps, at most half of them: nine tenths of 20 "
    "happen once in 5,000 runs",
    weak=0.75,
)
LAG_SHARE = Limit(
    0.25,
    "of the time of a step",
    "ranks on one machine differ by a tenth; a quarter is one device in four standing idle",
)
LAG_MS = Limit(
    10,
    "ms, median",
    "less may come from who gets a core first on a machine that is shared",
)
MIRRORED = Limit(
    0.5,
    "of the lag",
    "ranks that wait for the last one take longer by all of it; half is left for what they do "
    "meanwhile",
)
SAME_WORK = Limit(
    1.1,
    "values in a batch, over the most of any other rank",
    "a rank with more to do is not slow: pipeline.uneven-ranks names that",
)

# loop.rank-corrupt
ANSWERS_APART = Limit(
    1e-4,
    "of the norm of a layer's answer, beyond the rounding of half precision where it is used",
    "devices of other kinds and other orders of summation leave 1e-6 to 1e-5 in float32; one that "
    "is right gives the same bits",
)
