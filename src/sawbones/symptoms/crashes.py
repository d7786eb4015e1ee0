"""The script ends in an error

## What it measures
How the script ended: an exception that nobody caught, a signal, or an exit status other than 0.
Out of memory is a symptom of its own.

## Null
A script that is done ends by itself.

## What it may mean
The traceback names the line that failed; the module chain with its shapes shows what went in. The
cause often lies some lines earlier.

## First commands
- `sawbones diagnose train.py` reads the values that were bound when it died, and says what the
  operation takes, what it got, and where that came from.
- `sawbones try short train.py` reaches evaluation, checkpoint and resume within a minute, so that a
  crash there does not wait for the end of an epoch.
"""

from __future__ import annotations

from sawbones.schema import Run, Symptom
from sawbones.stats.failures import ran_out_of_memory

CLASS = "ill"
CALLED = (
    "crash",
    "crashes",
    "exception",
    "traceback",
    "error",
    "runtimeerror",
    "shape mismatch",
    "stops with an error",
)
NEEDS = ()
CAUSES = ("*",)


def look(run: Run) -> Symptom | None:
    ending, died = run.ending, run.died or run.aborted
    if ran_out_of_memory(run):
        return None
    at = f"after {run.num_steps} steps" if run.num_steps else "before the first step"
    if ending.kind == "exception":
        said = (ending.message or "").split("\n")[0][:160]
        where = f" ({ending.site})" if ending.site is not None else ""
        text = f"the script crashed {at}: {ending.exception}: {said}{where}"
    elif ending.kind == "exit" and ending.exit_code:
        text = f"the script gave up {at} with exit status {ending.exit_code}"
    elif ending.kind == "killed" and died:
        text = f"the script was killed {at} ({str(died).splitlines()[0]})"
    else:
        return None
    return Symptom("", CLASS, text, None, None, (max(run.num_steps - 1, 0),))
