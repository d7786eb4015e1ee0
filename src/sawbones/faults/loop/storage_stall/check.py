"""Steps wait inside writes to a store that stalls

## What it sees
A hundred times a second, whether the training thread sleeps inside a call on a file, a pipe or a
socket (write, fsync, open, rename, ...; reads of plain files), in which line and for which path.
Linux says so of every thread. Fires when at least 5 of 10 or more ordinary steps sleep there, 15 ms
or more in the middle one, and these sleeps are a quarter of the time of all steps; from half of the
time and half of the steps on it is clear. On a machine with more work than cores it is never more
than suspected. The earliest step is the tenth after the first deep ones.

## Why it matters
The model stands idle until a disk, a network mount or the reader of a pipe has taken what the loop
hands it. Nothing that is done to the model makes such a run faster.

## Looks like
Low use of processor and device, although data are there at once; steps that take as long for a tiny
model as for a large one; a run that is fast on one machine and slow on another.

## Example
    for step, batch in enumerate(loader):
        train(batch)
        torch.save(model.state_dict(), "/mnt/slow/last.pt")

## Use instead
    for step, batch in enumerate(loader):
        train(batch)
        if step % 1000 == 999:
            torch.save(model.state_dict(), "/mnt/slow/last.pt")

## Confirm it
Write to the local disk, or to /dev/null, and time a step again. `cat /proc/PID/wchan` and `strace -T
-e trace=write,fsync -p PID` show the same from outside.

## False alarms
A line per step, a flush per step and a checkpoint per epoch on an ordinary disk end in the system's
buffers: the thread is never asleep in them. What worker processes and other threads write does not
count. Calls of libraries that hold Python's lock while they sleep, and files that are mapped into
memory, are not seen. Other systems than Linux do not say where a thread sleeps: the check then could
not look.

## References
Checkpoints and logs on network file systems; fsync after every record; a log pipe whose collector
is slower than the training.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.limits import pipeline as busy_limits
from sawbones.evidence.limits import stalls as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.schema.standing import StorageWait
from sawbones.stats.stalls import stalls
from sawbones.trace.locate import locate

PREVIEW = True
NEEDS = ("steps", "standing")
USES = ("cpu_time",)
EXPLAINS = ("pipeline.starved",)
EXPERIMENT = None
MIN_STEPS = 10  # ordinary ones
MIN_STALLED = 5  # fewer may be the first writes of a new file


def check(run: Run) -> Iterator[Finding]:
    found = stalls(run, MIN_STEPS)
    if found is None or run.standing is None:
        raise NothingToJudge(
            f"fewer than {MIN_STEPS} ordinary steps, or the system does not say where threads sleep"
        )
    if (
        found.stalled - MIN_STALLED < 0
        or not limits.STALLED_SHARE.suspected_by(found.share)
        or not limits.STALLED_STEPS.suspected_by(found.stalled / found.steps)
        or not limits.STALL_MS.reached_by(found.stall_ms)
    ):
        return
    waits = run.standing.waits
    first = waits[0]
    done = "read" if "read" in first.call else "written"
    text = (
        f"{found.stalled} of {found.steps} steps sleep in {first.call}() or the like, "
        f"{found.stall_ms:.0f} ms in the middle one; a step takes {found.step_ms:.0f} ms"
    )
    busy = busy_limits.BUSY_SHARE.reached_by(run.cpu_time.waiting_share)
    yield finding(
        f"Steps wait {found.share:.0%} of their time for {_target(first)} to be {done}",
        locate(*(wait.site for wait in waits))[:4],
        (
            compared(
                f"{found.share:.0%} of the time of {found.steps} steps is spent asleep there",
                found.share,
                limits.STALLED_SHARE,
                expected=0,
                signal="standing",
            ),
            counted(text, found.stalled, found.steps, limits.STALLED_STEPS, signal="standing"),
            *(
                context(
                    f"{wait.call}() to {_target(wait)}: {wait.seconds:.2g} s in {wait.steps} steps",
                    signal="standing",
                )
                for wait in waits[:3]
            ),
        ),
        Fix(
            "Write less often, to a local disk that is copied later, or in a thread or process of "
            "its own; flush and fsync once per checkpoint, not once per step."
        ),
        at_most="suspected" if busy else "likely",
    )


def _target(wait: StorageWait) -> str:
    if wait.target.startswith("/"):
        return wait.target.rpartition("/")[2]
    kind = wait.target.partition(":")[0]
    return f"a {kind}" if kind else "a file"
