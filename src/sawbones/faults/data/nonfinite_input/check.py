"""NaN or Inf in the data that training is fed

## What it sees
The sum of every floating-point tensor of every batch, which is not finite as soon as one value is
not. Fires when a training batch held such values and the loss turned non-finite on that step or the
next, while the weights were still finite. The earliest step is the one with the first bad batch.

## Why it matters
One bad sample turns every weight into NaN with a single update; the rest of the run is lost.

## Looks like
Loss is fine for a while, then NaN for ever; another seed moves the step at which it happens.

## Example
    features = np.log(rainfall)

## Use instead
    features = np.log1p(rainfall)

## Confirm it
Nothing is left to confirm: the values are in the batch before any module ran.

## False alarms
Missing targets marked by NaN and left out of the loss keep the loss finite: silent. A loss that was
non-finite before the batch came, or weights that were, have another cause. So has a state that the
model made and is given again, as in a rollout. Masks of -inf that a
collate function builds do not make the loss non-finite.

## References
Empty cells of tables that are read as NaN, logarithms of zero counts and windows with zero spread
are the usual sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.failures import first_nonfinite
from sawbones.stats.series import first_nonfinite as first_bad
from sawbones.trace.feeding import feeding_sites, loader_sites, training_batches, warned_sites
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import lines_in, marked_lines, outside_of_models

NEEDS = ("batches", "losses")
USES = ("nonfinite", "source_lines", "data_code", "loaders")
EXPLAINS = (
    "optimizer.lr-too-high",
    "loss.value-range",  # of values that are no numbers any more
    "loss.unstable-log",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "model.unstable-norm",
    "model.over-masking",
    "loop.amp-no-scaler",
    "data.degenerate-samples",
    "data.unnormalized-input",
)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    batches = training_batches(run)
    if not batches:
        raise NothingToJudge("no training batch was recorded")
    step = first_bad(run.losses)
    if step is None:
        return
    number = int(run.steps["step"][step])
    seen = [b for b in batches if b.step <= number]
    # What the run has made itself and gives to its model again is no data.
    given = [(b, t) for b in seen for t in b.tensors if not t.get("from_graph")]
    bad = [(b, t) for b, t in given if t.get("nonfinite")]
    if not bad or number - bad[0][0].step > 1:
        return
    batch, tensor = bad[0]
    yield finding(
        f"The batch of step {batch.step} holds {tensor['nonfinite']} values that are not finite",
        _where(run),
        (
            exact(
                f"tensor {tensor['path'] or 'input'} of shape {tensor['shape']}: "
                f"{tensor['nonfinite']} NaN or Inf before any module ran; the loss is finite up "
                f"to step {number - 1} and not at step {number}",
                tensor["nonfinite"],
                signal="batches",
                steps=(batch.step, number),
            ),
            context(
                f"{len(bad)} of the first {len(seen)} training batches hold such values",
                signal="batches",
                value=len(bad),
            ),
        ),
        Fix(
            "Make the values finite where they are made (guard the logarithm or the "
            "division), or leave the sample out."
        ),
    )


def _where(run: Run) -> tuple[Site, ...]:
    """The operator that made them when it was watched, a line at which NumPy warned, else where the
    data enters.
    """
    birth = first_nonfinite(run)
    watched = birth is not None and not any(v.nonfinite for v in birth.inputs)
    functions = [run.data_code.reads, run.data_code.makes]
    if any(functions):
        own = [s for where in functions for s in lines_in(marked_lines(run, "domain"), where)]
    else:  # tables made into tensors in plain lines
        own = _before_loading(run)
    # a logarithm needs but one zero, a division a zero of what is divided by
    own.sort(key=lambda s: "log" not in s.code)
    certain = locate(birth.site if birth and watched else None, *warned_sites(run)[:1])
    return locate(
        *certain,
        *marked_lines(run, "read")[:1],
        *(() if certain else own[:1]),
        *loader_sites(run),
        *feeding_sites(run),
    )[:4]


def _before_loading(run: Run) -> list[Site]:
    """Divisions and logarithms above the loader, outside of every module; those by a spread of a
    whole column last.
    """
    built = loader_sites(run)
    if not built:
        return []
    above = [
        s for s in marked_lines(run, "domain") if s.file == built[0].file and s.line < built[0].line
    ]
    return sorted(outside_of_models(run, above), key=lambda s: "std" in s.code)
