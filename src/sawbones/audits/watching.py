"""One audit of windows, as a job that comes back: what is new since the last time, and its report."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sawbones.audits import windows
from sawbones.audits.case import Case
from sawbones.audits.options import AuditError
from sawbones.audits.runner import facts_of
from sawbones.audits.state import State, read_state, write_state
from sawbones.schema import Report

MOST_ALARMS = 0.5


@dataclass(frozen=True)
class Watched:
    by: str
    false_alarms: float
    state: str | None = None

    def __post_init__(self) -> None:
        if self.by not in windows.WIDTHS:
            raise AuditError(f"--by {self.by}: one of {', '.join(windows.WIDTHS)} was expected")
        if not 0 < self.false_alarms <= MOST_ALARMS:
            raise AuditError(
                f"--false-alarms {self.false_alarms:g}: a share of windows above 0 and up to "
                f"{MOST_ALARMS} was expected, e.g. 0.01"
            )


def run_windows(case: Case, origin: str, began: float, watched: Watched) -> Report:
    looked = windows.look(case, watched.by, watched.false_alarms)
    path = Path(watched.state) if watched.state is not None else None
    state = State(watched.by, case.options.time or "")
    if path is not None:
        state = read_state(path, state.by, state.time)
    before = state.num_alerts
    new = state.new(looked.windows)
    found = tuple(windows.findings(case, looked, new))
    if path is not None:
        state.take(new, [name for f in found for name in f.params["windows"]])
        write_state(path, state)
    notes = [*case.notes, _rate(looked, watched)]
    if path is not None:
        known = len(looked.windows) - len(new)
        notes.append(f"{known} windows were judged before ({before} alerts); {len(new)} are new")
    if looked.too_small:
        notes.append(
            f"{looked.too_small} windows have fewer than {windows.LEAST_ROWS} rows and were left out"
        )
    facts = {**facts_of("shift", case), "windows": [asdict(w) for w in looked.windows]}
    return Report(
        verdict="sick" if found else "healthy" if new else "inconclusive",
        script=origin,
        steps=0,
        seconds=time.monotonic() - began,
        findings=found,
        looked=() if found or not new else ("deployment.covariate-shift",),
        environment={"audit": {**facts, "false_alarm_rate": looked.rate}},
        notes=tuple(dict.fromkeys(notes)),
    )


def _rate(looked: windows.Looked, watched: Watched) -> str:
    one_in = 1 / looked.rate
    text = f"{len(looked.windows)} windows; by chance one in {one_in:.0f} would alert"
    if looked.num_reference == 0:
        return (
            text + " if rows were drawn one by one: the reference has no times to compare days by"
        )
    if looked.rate > watched.false_alarms:
        return text + (
            f": the reference has {looked.num_reference} windows, and that many cannot say "
            f"more (one in {1 / watched.false_alarms:.0f} was asked for)"
        )
    return text + f" (limit from {looked.num_reference} windows of the reference)"
