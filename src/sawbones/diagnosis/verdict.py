"""One word for a whole run, by precedence: crashed, sick, unexplained, inconclusive, healthy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sawbones.diagnosis.held_back import held_back
from sawbones.schema import Finding, Run, Symptom

# Checks that have to have found something to judge. Most have nothing to do in any one program (no
# attention, no scaler, one rank); of 491 recordings the one with the fewest had 24.
ENOUGH_LOOKED = 8
# What comes behind the cut was not seen: later epochs, the evaluation, a crash. A number of steps
# that the user asked for is no cut.
_CUT_SHORT = {
    "seconds": "the time for observing it was up",
    "still recording": "it is still being recorded",
    "interrupted": "it was interrupted",
    "terminated": "it was terminated",
    "killed": "it was killed, or is still running",
    "hang": "it hung",
}


@dataclass(frozen=True)
class Judgement:
    verdict: str
    why: str = ""  # what keeps an inconclusive run from being judged


def judge(
    run: Run,
    findings: Sequence[Finding],
    symptoms: Sequence[Symptom] = (),
    *,
    looked: int,
    blind: int,
    interrupted: bool = False,
) -> Judgement:
    """`looked` and `blind`: checks that saw what they need, and checks that did not. `interrupted`:
    the user ended the diagnosis, not the script.
    """
    wanted = "; ".join(held_back(run))
    sick = any(finding.status in ("likely", "proven") for finding in findings)
    if _crashed(run, sick) and not wanted and not interrupted:
        return Judgement("crashed")
    if sick:
        return Judgement("sick")
    if any(symptom.stands for symptom in symptoms):
        return Judgement("unexplained")
    why = (
        "the diagnosis was interrupted"
        if interrupted
        else wanted
        if wanted and _crashed(run, sick)
        else _too_little(run, looked, blind)
    )
    return Judgement("inconclusive", why) if why else Judgement("healthy")


def _crashed(run: Run, sick: bool) -> bool:
    """A script that died is reported as such, with its cause among the findings; one that gave up
    by itself is sick or not.
    """
    died = run.ending.kind == "killed" and bool(run.aborted or run.died)
    return run.ending.kind == "exception" or died or (run.ending.kind == "exit" and not sick)


def _too_little(run: Run, looked: int, blind: int) -> str:
    """Why the run says nothing about its health; "" where it does."""
    if not run.num_steps:
        return "no optimizer step was seen"
    ending = run.ending
    why = _CUT_SHORT.get(ending.message or "seconds" if ending.kind == "budget" else ending.kind)
    if why:
        more = "; more: sawbones diagnose --seconds N" if ending.message == "seconds" else ""
        return f"{why} after {run.num_steps} steps, before the script ended{more}"
    if looked < min(ENOUGH_LOOKED, looked + blind):
        return f"only {looked} of {looked + blind} checks could look"
    return ""
