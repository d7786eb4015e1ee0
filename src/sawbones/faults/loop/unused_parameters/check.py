"""Parameters without a gradient under DistributedDataParallel

## What it sees
The error with which the reducer of DDP refuses the next forward, and the parameters that got no
gradient. The other way round too: find_unused_parameters=True although every parameter got a
gradient in every recorded step, and the operators of all deep steps were the same on every rank. That
is suspected only.

## Why it matters
The reducer waits for gradients that never come: the second step fails, or hangs. The flag that
silences it walks the graph in every step, and hides a head that stops training one day.

## Looks like
"Expected to have finished reduction in the prior iteration before starting a new one."

## Example
    model = DistributedDataParallel(model)  # model.unused_head takes no part in the loss

## Use instead
    model.unused_head.requires_grad_(False)
    model = DistributedDataParallel(model)

## Confirm it
No experiment: the reducer said so.

Find out why they are unused: a branch that is never taken, an output that is left out of the
loss, a head of another task. Use them, remove them, or freeze them before wrapping. Only where the
set of used parameters really changes from step to step (layer drop, mixtures, tasks in turn) pass
find_unused_parameters=True: it walks the graph on every step, and hides a head that should train.

## False alarms
None of the error: only the reducer's own refusal counts. With find_unused_parameters it does not
come. The flag is needed where the used set changes; a change that fell between the deep steps is not
seen, so needless use of the flag is never more than suspected.

## References
The documentation of DistributedDataParallel, find_unused_parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, context, finding, refused
from sawbones.schema import NO_GRADIENT, Event, Finding, Fix, Run
from sawbones.stats.ranks import everyone, wrapped
from sawbones.trace.locate import locate

NEEDS = ("backward",)
EXPLAINS = ("loop.rank-shape-mismatch", "loop.rank-desync", "loop.gradient-not-reduced")
EXPERIMENT = None
MIN_DEEP = 3  # steps whose operators are compared
SIGN = "expected to have finished reduction in the prior iteration"


def check(run: Run) -> Iterator[Finding]:
    failed = next((r for r in everyone(run) if SIGN in (r.ending.message or "").lower()), None)
    wrapper = wrapped(run)
    if failed is None and wrapper is None:
        raise NothingToJudge("no model is wrapped in DistributedDataParallel")
    if failed is None:
        yield from _needless_flag(run, wrapper)
        return
    unreached = _unreached(failed)
    holders = {name.rpartition(".")[0] for name in unreached} - {""}
    built = [m.built for m in failed.modules if m.path in holders]
    evidence = [
        refused((failed.ending.message or "").split(". ")[0][:200], steps=(failed.num_steps,))
    ]
    if unreached:
        text = f"no gradient reaches {', '.join(unreached[:5])}"
        evidence.append(context(text, signal="tensor_statistics"))
    yield finding(
        "Parameters get no gradient under DistributedDataParallel",
        locate(wrapper, *built, failed.ending)[:4],
        evidence,
        Fix(
            "Find out why they are unused, then use them in the loss, remove them, or freeze them "
            "before wrapping; find_unused_parameters=True only where the set changes from step "
            "to step."
        ),
    )


def _needless_flag(run: Run, wrapper: Event | None) -> Iterator[Finding]:
    if wrapper is None or not wrapper.data.get("find_unused_parameters"):
        return
    ranks = everyone(run)
    looked = min(len(rank.deep) for rank in ranks)
    if looked < MIN_DEEP or not all(map(_uses_everything, ranks)):
        return
    yield finding(
        "find_unused_parameters=True although every parameter is used",
        locate(wrapper),
        [
            context(
                f"every parameter got a gradient in every recorded step, and the operators of "
                f"{looked} deep steps are the same on {len(ranks)} ranks",
                signal="backward",
            )
        ],
        Fix("Leave find_unused_parameters out: it walks the whole graph in every step."),
        at_most="suspected",
    )


def _uses_everything(run: Run) -> bool:
    table = run.statistics.get("grad_l2")
    trained = [t.index for t in run.tensors if t.requires_grad and t.optimizer >= 0]
    if table is None or not len(table) or not trained:
        return False
    # Only what modules do: recording may begin in the middle of the first step.
    graphs = {tuple((op.module, op.name) for op in d.ops if op.module) for d in run.deep}
    reached = not any(deep.unreached for deep in run.deep)
    return reached and len(graphs) == 1 and not np.any(table[:, trained] == NO_GRADIENT)


def _unreached(run: Run) -> list[str]:
    """Parameters that had no gradient at the last optimizer step."""
    table = run.statistics.get("grad_l2")
    row = table[-1] if table is not None and len(table) else ()
    by_step = {t.name for t in run.tensors if t.index < len(row) and row[t.index] == NO_GRADIENT}
    return sorted(by_step | {name for deep in run.deep for name in deep.unreached})
