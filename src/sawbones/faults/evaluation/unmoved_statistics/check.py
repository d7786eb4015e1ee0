"""An evaluated copy of the model whose batch-norm statistics never moved

## What it sees
Under diagnose, every model that answers in eval mode, was not trained itself, and holds the
parameters of the trained one (an average of its weights, a target network, a reloaded state): the
running means of its batch norms are all exactly 0 and the variances all 1, while those of the
trained model have moved. Fires when that is still so the last time it answers. From the first
evaluation after step 0.

## Why it matters
The copy normalises with numbers that have nothing to do with the data. Its scores are those of no
model that was ever trained, and may be near chance.

## Looks like
The averaged model is far worse than the one that is trained, and does not get better; it is right
at once in train mode.

## Example
    for mine, theirs in zip(average.parameters(), model.parameters()):
        mine.lerp_(theirs, 0.01)
    score(average.eval())

## Use instead
    for mine, theirs in zip(average.parameters(), model.parameters()):
        mine.lerp_(theirs, 0.01)
    for mine, theirs in zip(average.buffers(), model.buffers()):
        mine.copy_(theirs)
    score(average.eval())

## Confirm it
Statistics that were gathered from data are never exactly 0 and 1: nothing is left to confirm.

## False alarms
A model as it was before training, kept for comparison, has the parameters of the first day and is
no copy; one that was started anew has others altogether. Copies that take the whole state, buffers
too, have statistics that moved. Evaluations before the first step are not looked at.

## References
The documentation of torch.optim.swa_utils: `AveragedModel` averages parameters, and `update_bn` is
called at the end for the statistics.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import exact, finding
from sawbones.schema import Finding, Fix, Run
from sawbones.trace.locate import locate

NEEDS = ("norm_copies",)
EXPLAINS = ("deployment.serving-parity", "evaluation.collapsed-prediction", "evaluation.eval-mode")
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    for copy in run.norm_copies or ():
        if not copy.unmoved or not copy.moved_in_trained:
            continue
        yield finding(
            "The copy that is evaluated normalises with statistics that never moved",
            locate(copy.written, copy.site),
            (
                exact(
                    f"{copy.unmoved} of {copy.layers} batch norms of the copy ({copy.cls}) have "
                    f"means of 0 and variances of 1 when it answers after step {copy.step}; of the "
                    f"trained model {copy.moved_in_trained} have moved",
                    copy.unmoved,
                    signal="norm_copies",
                    steps=(copy.step,),
                ),
            ),
            Fix(
                "Copy the buffers along with the parameters (for mine, theirs in "
                "zip(copy.buffers(), model.buffers()): mine.copy_(theirs)), or gather statistics "
                "before the copy answers: torch.optim.swa_utils.update_bn(loader, copy)."
            ),
        )
        return
