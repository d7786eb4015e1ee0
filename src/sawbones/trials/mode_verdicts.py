"""What a trial says of calls that a remedy found in the other mode."""

from __future__ import annotations

from sawbones.schema import Verdict
from sawbones.schema.one_off import Modes

MATTERS = 1e-4  # distance of two answers, over their size


def judge_modes(trial: str, seen: Modes, calls: str, mode: str) -> Verdict:
    if not seen.calls:
        return Verdict(trial, "open", f"no model {calls.replace('calls', 'call')} was seen")
    outcome = "confirmed" if seen.changed and seen.distance > MATTERS else "refuted"
    text = (
        f"{seen.changed} of {seen.calls} {calls} were not in {mode}; the right mode moves the "
        f"answer by {seen.distance:.2g}"
    )
    return Verdict(trial, outcome, text, seen.distance, 0.0)
