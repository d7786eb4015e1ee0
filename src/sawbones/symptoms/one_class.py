"""One class for everything

## What it measures
The answers of the last training steps, the class with the largest output: 99 of 100 are the same,
although no class has more than four fifths of the labels.

## Null
The shares of the labels themselves.

## What it may mean
The outputs do not depend on the inputs: dead units, a saturated layer, far too large a step, wrong
class weights.

## First commands
- `sawbones try overfit-one-batch train.py`: learned, the answers can differ, so look at imbalance
  and weights; not learned, the outputs do not depend on the inputs.
- `sawbones try zero-inputs train.py`: no worse, the inputs never reach the outputs.
- `sawbones try lr=0.1 train.py`: healed, a large step killed the units.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.schema.samples import Samples

CLASS = "notable"
CALLED = (
    "one class",
    "always predicts the same",
    "same prediction",
    "constant prediction",
    "predicts the majority",
    "majority class",
    "collapsed",
    "recall zero",
)
NEEDS = ("steps",)
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "optimizer.*", "loop.*", "evaluation.*")


def look(run: Run) -> Symptom | None:
    rows = (run.samples or Samples()).predictions.classes
    asked = sum(row.wanted for row in rows.values())
    given = {name: row.given for name, row in rows.items()}
    if not limits.ANSWERS_TO_TELL.reached_by(asked):
        raise NothingToJudge("the answers of the last steps were not counted")
    if not limits.STEPS_TO_TELL.reached_by(run.num_steps):
        raise NothingToJudge(f"{run.num_steps} steps are too few to tell")
    most = max(row.wanted for row in rows.values()) / asked
    favourite = max(given, key=lambda name: given[name])
    share = given[favourite] / max(sum(given.values()), 1)
    if limits.ONE_CLASS_PREVAILS.passed_by(most) or not limits.ONE_ANSWER.reached_by(share):
        return None
    wanted = rows[favourite].wanted / asked
    text = (
        f"{share:.1%} of {asked} answers are class {favourite}, which has {wanted:.1%} of "
        "the labels"
    )
    return Symptom("", CLASS, text, share, wanted, (run.num_steps - 1,))
