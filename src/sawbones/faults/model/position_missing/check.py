"""A model of sequences that can't tell the order of its input

## What it sees
On the first deep step, attention that looks both ways, and no way for order to enter: nothing that
differs along time is added, multiplied or joined to the data, no position ids, no causal mask, no
bias on the scores, no recurrent or overlapping convolutional layer, and the sequence is not
flattened into features. Such a model gives the same answer for every order of its input. That is
right for sets, so the check only suspects, and the experiment decides; unless codes are added to
the data and the sum is never used, or they come from a fixed table that holds one and the same
number throughout, which is proof. Step 0.

## Why it matters
Words become a bag of words, patches a bag of patches: whatever depends on place can't be learned.

## Looks like
Loss stops early at what the mere presence of tokens tells; shuffling the input changes nothing.

## Example
    h = self.embed(ids)
    return self.head(self.encoder(h).mean(1))

## Use instead
    h = self.embed(ids) + self.positions[: ids.shape[1]]
    return self.head(self.encoder(h).mean(1))

## Confirm it
The script runs again with sinusoidal codes added to the token vectors. Confirmed when the loss ends
at least a fifth lower; refuted when positions bring nothing, as for sets.

## False alarms
Causal models without codes learn positions from the mask and are left alone, as are relative
biases, ALiBi and rotary codes. A learned table may start at zero. Models of sets, bags and unordered tables have no use for positions;
the experiment refutes.

## References
Vaswani et al. 2017, section 3.5: "Since our model contains no recurrence and no convolution, [...]
we must inject some information".
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.orderless import Orderless, adding_params, orderless
from sawbones.stats.positions import comes_from_table
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("attention", "ops", "influence")
USES = ("buffers",)
EXPLAINS = ("optimizer.lr-too-low", "data.labels-misaligned")
EXPERIMENT = "positions_added"


def check(run: Run) -> Iterator[Finding]:
    deep = run.deep[0]
    if not deep.attention:
        raise NothingToJudge("no attention was seen on the first deep step")
    found = orderless(deep)
    if found is None:
        return
    lost = found.lost.site if found.lost is not None else None
    text = (
        f"{found.layers} attention layers look both ways over {found.length} positions, and "
        "nothing on the way from the input to them differs along time"
    )
    if lost is not None:
        text += f"; a code for each position is added at {lost}, and the sum is not used"
    elif found.blank is not None:
        lost, code = found.blank.op.site, found.blank.code
        text += f"; the codes {code.shape} added at {lost} are {code.min:.3g} everywhere"
    yield finding(
        "No positional information reaches the model",
        locate(*_tables(run, found), lost, found.start),
        # Codes that reach the attention.
        (exact(text, 0, expected=found.length, signal="ops", steps=(deep.step,)),),
        Fix(
            "Add positional codes (learned or sinusoidal) to the vectors before the first "
            "attention."
        ),
        # A set has no order: whether positions were meant is only known where codes are made.
        at_most="suspected" if lost is None else "proven",
        params=adding_params(run, deep, found.start),
    )


def _tables(run: Run, found: Orderless) -> list[Site]:
    """Where the table that holds one number was put among a module's buffers."""
    if found.blank is None or found.lost is not None:
        return []
    table = comes_from_table(StepGraph(run.deep[0]), found.blank, found.length)
    shape = table.shape if table is not None else found.blank.code.shape
    return [buffer.site for buffer in run.buffers if buffer.shape == shape]
