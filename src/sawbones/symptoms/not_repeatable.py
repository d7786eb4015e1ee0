"""Two runs from one seed differ

## What it measures
The script run a second time from the same start: the first batch or loss that differs, beyond the
last bits. Only where the script seeds something: otherwise it promises nothing.

## Null
A seeded script repeats bit for bit on one machine.

## What it may mean
A random stream that is not seeded, an order that depends on a set or a clock, operators that are
not deterministic.

## First commands
- `sawbones try same-seed train.py` runs twice and names the first thing that differs: order, values
  or loss.
- `sawbones try deterministic train.py`: equal then, an operator is not deterministic; still
  different, a random stream is not seeded.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom

CLASS = "notable"
CALLED = (
    "not repeatable",
    "not reproducible",
    "two runs differ",
    "different every time",
    "nondeterministic",
    "non deterministic",
    "seed has no effect",
    "reproducibility",
)
NEEDS = ("twin_run",)
CAUSES = ("loop.nondeterminism", "pipeline.worker-seed")
WORDS = {
    "batch_order": "the order of the samples",
    "batch_values": "the values of the batches",
    "loss": "the loss",
}


def look(run: Run) -> Symptom | None:
    twin = run.twin_run
    differs = twin.differs if twin is not None else None
    if twin is None or differs is None or differs.what not in WORDS:
        return None
    if not twin.seeded:
        raise NothingToJudge("the script seeds nothing")
    if differs.what == "loss" and limits.LAST_BITS.kept_by(differs.relative):
        return None
    first, second, step = differs.first, differs.second, differs.step
    numbers = f" ({first:.6g} and {second:.6g})" if isinstance(first, float) else ""
    text = (
        f"a second run from the same seed differs in {WORDS[differs.what]}{numbers} at step {step}"
    )
    return Symptom(
        "",
        CLASS,
        text,
        second if isinstance(second, float) else None,
        first if isinstance(first, float) else None,
        (step,),
    )
