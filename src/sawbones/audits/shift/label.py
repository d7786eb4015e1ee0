"""Class rates or label values in production that differ from those in training

## What it sees
The histogram of the label, and of the prediction, on both sides. Fires when at least `label_shift`
(5 %) of the rows would have to change their class (a quantity: Kolmogorov-Smirnov distance) and the
p-value is below `significance` (0.001).

## Why it matters
Thresholds, calibrated probabilities and expected counts are tied to the class rates of the training
set.

## Looks like
Precision falls while recall holds, or the other way round; the share of positives is off from the
first day.

## Example
    model.fit(balanced_rows, balanced_labels)
    alarms = model.predict_proba(production)[:, 1] > 0.5

## Use instead
    odds = (true_rate / (1 - true_rate)) / (train_rate / (1 - train_rate))
    scores = model.predict_proba(production)[:, 1]
    alarms = odds * scores / (odds * scores + 1 - scores) > 0.5

## Confirm it
Within each class the inputs are distributed as before; only the mix is another. The audit looks at
that and names the kind accordingly.

## False alarms
A label that moved only because the inputs did (at equal inputs it has its old rate) is evidence of
the covariate shift. A test set that was stratified on purpose differs from production on purpose.

## References
Lipton et al., "Detecting and correcting for label shift with black box predictors" (2018). Saerens
et al. (2002).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made
from sawbones.audits.options import CannotLook
from sawbones.audits.shift.moves import LEAST_ROWS, Move, move_of, sides
from sawbones.audits.shift.relation import drift
from sawbones.schema import Evidence, Finding

FAULT = "deployment.label-shift"


def look(case: Case) -> Iterator[Finding]:
    reference, current = sides(case)
    if case.options.label is None and case.options.prediction is None:
        raise CannotLook(
            "neither label nor prediction was named (--label COLUMN, --prediction COLUMN)"
        )
    if min(reference.rows, current.rows) < LEAST_ROWS:
        raise CannotLook(
            f"{reference.rows} and {current.rows} rows; {LEAST_ROWS} on each side are needed"
        )
    found = drift(case)
    predicted = _prediction(case)
    if found.label is not None and not found.label_is_consequence:
        evidence = [_evidence(case, found.label, "label")]
        if predicted is not None:
            evidence.append(_evidence(case, predicted, "prediction"))
        yield _finding(case, found.label, evidence, "likely")
    elif (
        predicted is not None and case.options.label not in current.columns and not found.covariate
    ):
        # Without labels the predictions are all there is to see of the classes.
        yield _finding(case, predicted, [_evidence(case, predicted, "prediction")], "likely")


def _prediction(case: Case) -> Move | None:
    name = case.options.prediction
    if name is None or any(
        name not in s.columns or s.columns[name].kind in ("empty", "key", "text")
        for s in case.splits.values()
    ):
        return None
    move = move_of(case, name)
    return (
        move
        if move.p < case.thresholds.significance and move.effect >= case.thresholds.label_shift
        else None
    )


def _evidence(case: Case, move: Move, signal: str) -> Evidence:
    what = (
        "Kolmogorov-Smirnov distance" if move.kind == "number" else "share of rows in another class"
    )
    return Evidence(
        f"{move.column}: {what} {move.ks:.3f}, PSI {move.psi:.3f}, corrected p {move.p:.1g}",
        signal,
        value=move.ks,
        expected=case.thresholds.label_shift,
    )


def _finding(case: Case, move: Move, evidence: list[Evidence], status: str) -> Finding:
    return made(
        FAULT,
        status,
        0.9,
        (
            f"{move.column} is distributed differently: {100 * move.ks:.1f} % of the rows "
            "would have to change"
        ),
        evidence,
        (
            "Correct the scores for the new rates (multiply the odds by the ratio of rates), "
            "choose the threshold again, or retrain."
        ),
        column=move.column,
        distance=move.ks,
        psi=move.psi,
        threshold=case.thresholds.label_shift,
    )
